/* What convert and mean share; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/selection.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/order.h"

enum { REPORT_EVERY = 1000 };

/* What the source passed over. */
static void tell_warning(const struct ls_source *source, const struct lockstep_callbacks *callbacks)
{
    const struct lockstep_event event = {
        .kind = LOCKSTEP_EVENT_WARNING, .text = source->warning, .test_net = -1};
    if (source->warning != NULL && callbacks->event != NULL)
        callbacks->event(callbacks->user, &event);
}

static int check_names(const struct ls_source_options *options, const struct ls_source *source,
                       const struct ls_class_names *known, struct ls_error *error)
{
    const struct ls_class_names own = {(const char *const *)source->class_name, source->class_count,
                                       ls_source_options_name(options), source->tokenizer};
    return known == NULL || own.count == 0
               ? 0
               : ls_class_names_check(&own, source->vocabulary, known, error);
}

static int open_source(const struct lockstep_source_options *given,
                       const struct ls_class_names *known, struct ls_source **source,
                       struct ls_error *error)
{
    struct ls_source_options options;
    int status = ls_source_options_take(given, &options, error);
    options.known = known;
    if (status == 0)
        status = ls_source_open(&options, source, error);
    if (status == 0)
        status = check_names(&options, *source, known, error);
    ls_source_options_free(&options);
    LS_TRY(status);
    if ((*source)->tensors < 2)
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "label_source (--label-source FILE) names their file",
                       "%s: its records have no labels", (*source)->type->name);
    return 0;
}

int ls_selection_open(const struct lockstep_source_options *options,
                      const struct ls_class_names *known, struct ls_selection *selection,
                      struct ls_error *error)
{
    *selection = (struct ls_selection){.callbacks = &options->callbacks};
    struct ls_split split;
    LS_TRY(ls_split_parse(options->split, NULL, &split, error));
    LS_TRY(open_source(options, known, &selection->source, error));
    tell_warning(selection->source, &options->callbacks);
    selection->count = selection->source->count;
    selection->any_size = options->any_size != 0 || options->encoded != 0;
    if (selection->source->varies && !selection->any_size)
        return ls_fail(error, LOCKSTEP_DATA, options->source[0], "resize them",
                       "its records differ in size");
    if (!split.all) {
        uint32_t kept;
        selection->records = ls_split_records(&split, (uint32_t)selection->count, &kept);
        if (selection->records == NULL)
            return ls_fail_memory(error, "the records of a split");
        selection->count = kept;
    }
    if (selection->count == 0)
        return ls_fail(error, LOCKSTEP_DATA, NULL, NULL, "the split has no records");
    selection->shuffle = options->shuffle != 0;
    uint64_t seed = options->seed < 0 ? 1 : (uint64_t)options->seed;
    ls_order_init(&selection->order, ls_random_key(seed, LS_RANDOM_SHUFFLE, NULL), 0,
                  (uint64_t)selection->count);
    return ls_source_reader_open(selection->source, &selection->reader, error);
}

int ls_selection_check(const struct lockstep_source_options *options, struct ls_error *error)
{
    const struct ls_source_type *type =
        options->backend != NULL ? ls_source_type_named(options->backend) : NULL;
    if (type == NULL || type->unconvertible == NULL)
        return 0; /* that there is no such source is said where it is opened */
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "train on the files themselves", "%s",
                   type->unconvertible);
}

void ls_selection_close(struct ls_selection *selection)
{
    ls_source_reader_close(selection->reader);
    ls_source_close(selection->source);
    ls_free(selection->records);
    *selection = (struct ls_selection){0};
}

int64_t ls_selection_index(const struct ls_selection *selection, int64_t i)
{
    if (selection->shuffle)
        i = (int64_t)ls_order_at(&selection->order, (uint64_t)i);
    return selection->records != NULL ? (int64_t)selection->records[i] : i;
}

int ls_selection_read(struct ls_selection *selection, int64_t i, struct ls_record *record,
                      struct ls_error *error)
{
    const struct ls_source *source = selection->source;
    int64_t index = ls_selection_index(selection, i);
    LS_TRY(ls_source_read(selection->reader, index, LS_ALL_TENSORS, record, error));
    if (!selection->any_size && !ls_shape_equal(&record->tensor[0].shape, &source->tensor[0].shape))
        return ls_fail(error, LOCKSTEP_DATA, source->type->name, NULL,
                       "record %" PRId64 " has another size than the first", index);
    return 0;
}

int ls_selection_progress(const struct ls_selection *selection, int64_t done,
                          struct ls_error *error)
{
    const struct lockstep_callbacks *c = selection->callbacks;
    if (c->poll != NULL && c->poll(c->user) == LOCKSTEP_SNAPSHOT_AND_STOP)
        return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL,
                       "stopped after %" PRId64 " of %" PRId64 " records", done, selection->count);
    if (c->event == NULL || (done % REPORT_EVERY != 0 && done != selection->count))
        return 0;
    char text[64];
    snprintf(text, sizeof text, "Processed %" PRId64 " records.", done);
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_NOTICE,
                                   .text = text,
                                   .samples = done,
                                   .iteration_end = selection->count,
                                   .test_net = -1};
    c->event(c->user, &event);
    return 0;
}
