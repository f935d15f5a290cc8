/* Reading all records of a data set; see the header.
 *
 * Threads take runs of records; what they find is sorted when all have been read.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/bad_records.h"
#include "data/dataset_inner.h"
#include "data/samples.h"

enum { RUN = 16 };

struct finding {
    int64_t record;
    char *reason;
    bool skippable;
};

struct state {
    const struct ls_dataset *dataset;
    const struct ls_check *check;
    _Atomic int64_t next, done;
    _Atomic bool stop;
    pthread_mutex_t lock; /* guards what follows */
    struct odd {
        int64_t count, record; /* records; the first of them */
        char text[400];
        struct ls_label_range labels;
    } * odd; /* by rule */
    struct finding *findings;
    size_t count, capacity;
    int status;
    struct ls_error *error;
};

/* Ends the check with a failure that no record has caused. */
static void check_fail(struct state *state, int status, const struct ls_error *error)
{
    pthread_mutex_lock(&state->lock);
    if (state->status == 0) {
        state->status = status;
        ls_error_add(state->error, error);
    }
    pthread_mutex_unlock(&state->lock);
    atomic_store(&state->stop, true);
}

static void note(struct state *state, int64_t record, const char *reason, bool skippable)
{
    char *copy = ls_copy_string(ls_bad_reason(reason));
    pthread_mutex_lock(&state->lock);
    bool kept = copy != NULL && LS_GROW(state->findings, state->count, state->capacity);
    if (kept)
        state->findings[state->count++] = (struct finding){record, copy, skippable};
    else if (state->status == 0)
        state->status = ls_fail_memory(state->error, "a list of bad records");
    pthread_mutex_unlock(&state->lock);
    if (!kept) {
        ls_free(copy);
        atomic_store(&state->stop, true);
    }
}

/* Adds the labels of a record to those of all. */
static void join_labels(struct state *state, struct ls_label_range *all,
                        const struct ls_label_range *range)
{
    if (range->count == 0)
        return;
    pthread_mutex_lock(&state->lock);
    all->least = all->count == 0 || range->least < all->least ? range->least : all->least;
    all->most = all->count == 0 || range->most > all->most ? range->most : all->most;
    all->count += range->count;
    pthread_mutex_unlock(&state->lock);
}

/* Looks for numbers that cannot be meant in a record that is good. */
static void note_odd(struct state *state, int64_t index, const struct ls_record *record)
{
    char text[400];
    for (size_t i = 0; i < state->check->rule_count; i++) {
        struct odd *odd = &state->odd[i];
        struct ls_label_range range = {0};
        ls_label_range_add(state->dataset, record, &state->check->rules[i], &range);
        join_labels(state, &odd->labels, &range);
        if (!ls_odd_numbers(state->dataset, record, &state->check->rules[i], text, sizeof text))
            continue;
        pthread_mutex_lock(&state->lock);
        if (odd->count++ == 0 || index < odd->record) {
            odd->record = index;
            memcpy(odd->text, text, sizeof text);
        }
        pthread_mutex_unlock(&state->lock);
    }
}

static void check_record(struct state *state, struct ls_source_reader *reader, int64_t index,
                         struct ls_error *error)
{
    const struct ls_dataset *dataset = state->dataset;
    struct ls_record record;
    struct ls_problem problem;
    int64_t shape[3];
    ls_error_clear(error);
    int status = ls_source_read(reader, index, LS_ALL_TENSORS, &record, error);
    if (status == LOCKSTEP_RESOURCE && !reader->bad) {
        check_fail(state, status, error);
        return;
    }
    if (status != 0) {
        note(state, index, error->problems[0].message, reader->bad);
        return;
    }
    if (ls_source_has_image(dataset->source))
        status =
            ls_transform_shape(&dataset->transform, record.tensor[0].shape.dim, shape, &problem);
    if (status == 0)
        status = ls_bad_numbers(dataset, &record, state->check->rules, state->check->rule_count,
                                &problem);
    if (status != 0)
        note(state, index, problem.message, true);
    else
        note_odd(state, index, &record);
}

static void *read_records(void *argument)
{
    static _Thread_local struct ls_error error;
    struct state *state = argument;
    const struct ls_dataset *dataset = state->dataset;
    struct ls_source_reader *reader;
    ls_unpin_thread();
    ls_set_float_mode();
    ls_error_clear(&error);
    int status = ls_source_reader_open(dataset->source, &reader, &error);
    if (status != 0) {
        check_fail(state, status, &error);
        return NULL;
    }
    while (!atomic_load(&state->stop)) {
        int64_t begin = atomic_fetch_add(&state->next, RUN);
        int64_t end = begin + RUN < dataset->size ? begin + RUN : dataset->size;
        if (begin >= dataset->size)
            break;
        for (int64_t i = begin; i < end; i++)
            check_record(state, reader, dataset->records != NULL ? dataset->records[i] : i, &error);
        atomic_fetch_add(&state->done, end - begin);
    }
    ls_source_reader_close(reader);
    return NULL;
}

static int by_record(const void *a, const void *b)
{
    int64_t x = ((const struct finding *)a)->record, y = ((const struct finding *)b)->record;
    return (x > y) - (x < y);
}

/* The caller's thread reports the progress while the others read. */
static void wait_for_all(struct state *state)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    int64_t size = state->dataset->size, done;
    do {
        nanosleep(&moment, NULL);
        done = atomic_load(&state->done);
        if (state->check->progress != NULL &&
            state->check->progress(state->check->user, done, size) != 0)
            atomic_store(&state->stop, true);
    } while (done < size && !atomic_load(&state->stop));
}

/* Whether something can be said of all labels by this rule: once for those that several layers
 * take, and where there is more than one to choose from. */
static bool knows_labels(const struct state *state, size_t which)
{
    const struct ls_number_rule *rules = state->check->rules, *rule = &rules[which];
    bool first = true;
    for (size_t i = 0; i < which; i++)
        first =
            first && (rules[i].tensor != rule->tensor || rules[i].taken.kind != rule->taken.kind);
    return first && rule->taken.kind == LS_TAKEN_CLASSES && rule->taken.count > 1 &&
           state->dataset->size > 1 && state->count == 0;
}

/* What no record is bad for. */
static void tell_odd(const struct state *state, size_t which)
{
    const struct ls_number_rule *rule = &state->check->rules[which];
    const struct odd *odd = &state->odd[which];
    struct ls_text text = {0};
    if (odd->count > 0) {
        ls_dataset_name_record(state->dataset, odd->record, &text);
        ls_text_format(&text, ": its %s", odd->text);
        if (odd->count > 1)
            ls_text_format(&text, "; %lld records have such numbers", (long long)odd->count);
    } else if (knows_labels(state, which)) {
        if (odd->labels.count == 0)
            ls_text_format(&text, "layer '%s' ignores all labels", rule->layer);
        else if (odd->labels.least == odd->labels.most)
            ls_text_format(&text, "all labels of layer '%s' are %.9g", rule->layer,
                           (double)odd->labels.least);
    }
    if (text.length > 0 && !text.failed)
        state->check->odd(state->check->user, rule, text.data);
    ls_text_free(&text);
}

static void tell(const struct state *state)
{
    if (state->count > 0)
        qsort(state->findings, state->count, sizeof *state->findings, by_record);
    for (size_t i = 0; i < state->count; i++) {
        const struct finding *finding = &state->findings[i];
        const struct ls_source *source = state->dataset->source;
        struct ls_text name = {0};
        if (source->type->name_record != NULL)
            source->type->name_record(source, finding->record, &name);
        state->check->bad(state->check->user, finding->record, name.data != NULL ? name.data : "",
                          finding->reason);
        ls_text_free(&name);
    }
    for (size_t i = 0; i < state->check->rule_count; i++)
        tell_odd(state, i);
}

int ls_dataset_check(const struct ls_dataset *dataset, const struct ls_check *check, int64_t *bad,
                     int64_t *skippable, struct ls_error *error)
{
    struct state state = {.dataset = dataset, .check = check, .error = error};
    pthread_t *threads = ls_alloc((size_t)check->threads, sizeof *threads);
    int started = 0;
    *bad = *skippable = 0;
    state.odd = ls_alloc(check->rule_count + 1, sizeof *state.odd);
    if (threads == NULL || state.odd == NULL) {
        ls_free(threads);
        ls_free(state.odd);
        return ls_fail_memory(error, "threads");
    }
    pthread_mutex_init(&state.lock, NULL);
    while (started < check->threads &&
           ls_thread_create(&threads[started], read_records, &state) == 0)
        started++;
    if (started > 0)
        wait_for_all(&state);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started == 0)
        state.status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "no thread could be started");
    if (state.status == 0) {
        tell(&state);
        *bad = (int64_t)state.count;
        if (atomic_load(&state.stop))
            state.status = LOCKSTEP_STOPPED;
    }
    for (size_t i = 0; i < state.count; i++) {
        *skippable += state.findings[i].skippable;
        ls_free(state.findings[i].reason);
    }
    ls_free(state.findings);
    ls_free(state.odd);
    ls_free(threads);
    pthread_mutex_destroy(&state.lock);
    return state.status;
}
