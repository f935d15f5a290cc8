/* Whether the data are those that a training began with. See solver/data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/class_names.h"
#include "data/cross_check.h"
#include "data/fingerprint.h"
#include "data/reader.h"
#include "engine/pass.h"
#include "engine/read.h"
#include "engine/sources.h"
#include "snapshot/archive.h"
#include "solver/events.h"
#include "solver/notes.h"
#include "solver/skipped.h"
#include "transport/comm.h"

enum { SAMPLED = 256 /* records that ranks compare at their start */ };

static const char not_now[] = "data must not change during a training; snapshots of the last two "
                              "epochs may be of mixed data";

/* ---- Beginning ------------------------------------------------------------------------------- */

static int begin_cross_check(struct ls_trainer *trainer, struct ls_error *error)
{
    const struct ls_net *net = trainer->train;
    struct ls_cross_check_options options = {.datasets = net->datasets,
                                             .dataset_count = net->dataset_count,
                                             .inputs = (const int(*)[2])net->inputs,
                                             .input_count = net->input_count};
    trainer->data.unchecked = 0; /* as long as all records of one of them take */
    for (int d = 0; d < net->dataset_count; d++) {
        int64_t size = ls_dataset_size(net->datasets[d]);
        const struct ls_own_batch *own = net->batching.own;
        if (own != NULL && own[d].batch != net->batching.batch)
            size = (size + own[d].batch - 1) / own[d].batch * net->batching.batch;
        if (size > trainer->data.unchecked)
            trainer->data.unchecked = size;
    }
    return ls_cross_check_open(&options, &trainer->data.cross_check, error);
}

int ls_data_begin(struct ls_trainer *trainer, struct ls_error *error)
{
    size_t count = (size_t)trainer->train->dataset_count;
    trainer->data.epochs = ls_alloc(count + 1, sizeof *trainer->data.epochs);
    trainer->data.read = ls_alloc(count + 1, sizeof *trainer->data.read);
    if (trainer->data.epochs == NULL || trainer->data.read == NULL)
        return ls_fail_memory(error, "a trainer");
    for (size_t i = 0; i < trainer->test_count; i++) {
        struct ls_test *test = &trainer->tests[i];
        test->digests = ls_alloc((size_t)test->net->dataset_count + 1, sizeof *test->digests);
        if (test->digests == NULL)
            return ls_fail_memory(error, "a trainer");
    }
    return trainer->comm->size > 1 && count > 0 ? begin_cross_check(trainer, error) : 0;
}

void ls_data_end(struct ls_trainer *trainer)
{
    ls_cross_check_close(trainer->data.cross_check);
    for (size_t i = 0; i < trainer->test_count; i++)
        ls_free(trainer->tests[i].digests);
    ls_free(trainer->data.epochs);
    ls_free(trainer->data.read);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

void ls_data_describe(const struct ls_trainer *trainer, struct ls_text *text)
{
    char prefix[32];
    for (int d = 0; d < trainer->train->dataset_count; d++) {
        snprintf(prefix, sizeof prefix, "source %d: ", d + 1);
        ls_dataset_describe(trainer->train->datasets[d], prefix, text);
    }
}

/* Hashes of some records, chosen by their number alone: a copy that is out of date shows at once.
 */
static int describe_some(struct ls_dataset *dataset, const char *prefix, struct ls_text *text,
                         struct ls_error *error)
{
    struct ls_reader *reader;
    uint64_t key = ls_random_key(0, LS_RANDOM_DATA, "compare"), hash;
    int64_t count = ls_dataset_records(dataset);
    LS_TRY(ls_reader_open(dataset, &reader, error));
    int status = 0;
    for (uint64_t i = 0; i < SAMPLED && (int64_t)i < count && status == 0; i++) {
        /* A source has at most UINT32_MAX records (data/source.h). */
        int64_t record =
            count <= SAMPLED ? (int64_t)i : ls_random_below(key, i, 0, (uint32_t)count);
        status = ls_reader_hash_record(reader, record, &hash, error);
        if (status == 0)
            ls_text_format(text, "%srecord %" PRId64 " %016" PRIx64 "\n", prefix, record, hash);
    }
    ls_reader_close(reader);
    return status;
}

static int describe_net(const struct ls_net *net, const char *what, struct ls_text *text,
                        struct ls_error *error)
{
    char prefix[64];
    for (int d = 0; d < net->dataset_count; d++) {
        snprintf(prefix, sizeof prefix, "%ssource %d: ", what, d + 1);
        ls_dataset_describe(net->datasets[d], prefix, text);
        LS_TRY(describe_some(net->datasets[d], prefix, text, error));
    }
    return 0;
}

int ls_data_describe_all(const struct ls_trainer *trainer, struct ls_text *text,
                         struct ls_error *error)
{
    char what[32];
    LS_TRY(describe_net(trainer->train, "", text, error));
    for (size_t i = 0; i < trainer->test_count; i++) {
        snprintf(what, sizeof what, "test net %zu, ", i);
        LS_TRY(describe_net(trainer->tests[i].net, what, text, error));
    }
    return 0;
}

void ls_data_digests(const struct ls_trainer *trainer, struct ls_text *text)
{
    for (int d = 0; d < trainer->train->dataset_count; d++) {
        const struct ls_epochs *e = &trainer->data.epochs[d];
        ls_text_format(text,
                       "source %d: running %016" PRIx64 " %016" PRIx64 " %d, epoch %016" PRIx64
                       " %016" PRIx64 " %d\n",
                       d + 1, e->running.sum, e->running.weighted, e->partial, e->whole.sum,
                       e->whole.weighted, e->known);
    }
}

/* ---- Resuming -------------------------------------------------------------------------------- */

/* A line of a text: its length, and the rest behind it. */
static size_t take_line(const char **rest, const char **line)
{
    size_t length = strcspn(*rest, "\n");
    *line = *rest;
    *rest += length + ((*rest)[length] == '\n');
    return length;
}

/* The first line in which two descriptions differ. */
static int other_data(const char *path, const char *before, const char *after,
                      struct ls_error *error)
{
    const char *a = "", *b = "";
    size_t a_length = 0, b_length = 0;
    while ((*before != '\0' || *after != '\0') && a_length == b_length &&
           memcmp(a, b, a_length) == 0) {
        a_length = take_line(&before, &a);
        b_length = take_line(&after, &b);
    }
    return ls_fail(error, LOCKSTEP_WEIGHTS, path, "use --weights to go on with other data",
                   "the snapshot was trained on other data than the definition's sources hold now: "
                   "it has '%.*s', they have '%.*s'",
                   a_length > 200 ? 200 : (int)a_length, a, b_length > 200 ? 200 : (int)b_length,
                   b);
}

/* Fails where the classes of a snapshot are those of the data in another order: that is how
 * folders named by numbers look to a snapshot of an earlier version. */
static int check_class_order(const struct ls_trainer *trainer, const struct ls_archive *archive,
                             struct ls_error *error)
{
    const struct ls_class_names own = ls_sources_class_names(trainer->train);
    const char *note = ls_archive_note(archive, LS_NOTE_CLASSES);
    struct ls_class_list list = {.count = 0};
    int same = 0, moved = -1;
    if (note == NULL || own.count == 0)
        return 0;
    LS_TRY(ls_class_list_lines(note, &list, error));
    const struct ls_class_names theirs = {.name = (const char *const *)list.name,
                                          .count = list.count};
    for (int i = own.count - 1; i >= 0 && own.count == list.count; i--) {
        const int there = ls_class_names_find(&theirs, own.name[i]);
        same += there >= 0;
        if (there != i)
            moved = i;
    }
    int status = 0;
    if (same == own.count && moved >= 0)
        status = ls_fail(error, LOCKSTEP_WEIGHTS, archive->path,
                         "earlier versions had folders named by numbers in the order of their "
                         "bytes: finish the training with the version that began it, or start from "
                         "its weights with --weights and a new name for the layer of the scores",
                         "the classes have other numbers in the snapshot: class %d is '%.200s' "
                         "there, and '%.200s' in %s",
                         moved, list.name[moved], own.name[moved], own.of);
    ls_class_list_free(&list);
    return status;
}

/* Takes the digests of a note, which may be anything. */
static bool take_digests(struct ls_trainer *trainer, const char *rest)
{
    int count = trainer->train->dataset_count;
    for (int d = 0; d < count; d++) {
        struct ls_epochs e = {.partial = false};
        int source, partial, known;
        const char *line;
        if (sscanf(rest,
                   "source %d: running %16" SCNx64 " %16" SCNx64 " %d, epoch %16" SCNx64
                   " %16" SCNx64 " %d",
                   &source, &e.running.sum, &e.running.weighted, &partial, &e.whole.sum,
                   &e.whole.weighted, &known) != 7 ||
            source != d + 1)
            return false;
        e.partial = partial != 0;
        e.known = known != 0;
        trainer->data.epochs[d] = e;
        take_line(&rest, &line);
    }
    return true;
}

void ls_data_begin_late(struct ls_trainer *trainer)
{
    for (int d = 0; d < trainer->train->dataset_count; d++)
        trainer->data.epochs[d] = (struct ls_epochs){.partial = true};
}

int ls_data_examine(struct ls_trainer *trainer, const struct ls_archive *archive,
                    struct ls_error *error)
{
    const char *before = ls_archive_note(archive, LS_NOTE_DATA);
    const char *digests = ls_archive_note(archive, LS_NOTE_DIGESTS);
    struct ls_text after = {0};
    if (trainer->train->dataset_count == 0)
        return 0;
    ls_data_describe(trainer, &after);
    int status = after.failed ? ls_fail_memory(error, "a snapshot") : 0;
    LS_ASSERT(status != 0 || after.data != NULL); /* it has a line for each source */
    bool told = before != NULL && strncmp(before, "source ", 7) == 0;
    if (status == 0 && told && strcmp(before, after.data) != 0)
        status = check_class_order(trainer, archive, error);
    if (status == 0 && told && strcmp(before, after.data) != 0)
        status = other_data(archive->path, before, after.data, error);
    ls_text_free(&after);
    LS_TRY(status);
    if (told && digests != NULL && take_digests(trainer, digests))
        return 0;
    ls_data_begin_late(trainer);
    ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                  "%s does not say what its data were (it was written by an older version): "
                  "whether they are the same now is not known",
                  archive->path);
    return 0;
}

int ls_data_share(struct ls_trainer *trainer, struct ls_error *error)
{
    size_t bytes = (size_t)trainer->train->dataset_count * sizeof *trainer->data.epochs;
    return bytes > 0 ? ls_comm_broadcast(trainer->comm, trainer->data.epochs, bytes, error) : 0;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Records are others than they were. */
static int changed(struct ls_trainer *trainer, const struct ls_dataset *dataset, const char *since,
                   const struct ls_digest *before, const struct ls_digest *now,
                   struct ls_error *error)
{
    struct ls_text which = {0};
    int64_t record = now != NULL ? ls_digest_culprit(before, now, ls_dataset_records(dataset)) : -1;
    if (record >= 0)
        ls_dataset_name_record(dataset, record, &which);
    else
        ls_text_add(&which, "several records");
    int status = ls_fail(error, LOCKSTEP_DATA, ls_dataset_name(dataset), not_now,
                         "%s: other bytes than in %s (iteration %" PRId64 ")",
                         which.data != NULL ? which.data : "a record", since, trainer->iteration);
    ls_text_free(&which);
    return ls_comm_common(trainer->comm, status); /* all ranks have all digests */
}

/* Other ranks' records are compared with those here. Only this rank knows what comes of it. */
static int cross_check(struct ls_trainer *trainer, size_t unit, struct ls_error *error)
{
    struct ls_read read = {0};
    for (int d = 0; d < trainer->train->dataset_count; d++) {
        ls_read_of(trainer->train_pass, unit, d, &read);
        trainer->data.read[d] = (struct ls_cross_read){read.begin, read.end, read.digests};
    }
    const struct ls_batch *range = &trainer->train_pass->units[unit].range;
    trainer->data.unchecked -= range->count + ls_batching_left_out(&trainer->train->batching,
                                                                   range->ordinal + range->count);
    if (read.rank == trainer->comm->rank)
        return 0;
    ls_cross_check_add(trainer->data.cross_check, read.rank, trainer->data.read);
    return ls_cross_check_found(trainer->data.cross_check, error);
}

static int note_epochs(struct ls_trainer *trainer, int dataset, size_t unit, struct ls_error *error)
{
    struct ls_epochs *epochs = &trainer->data.epochs[dataset];
    const struct ls_dataset *of = trainer->train->datasets[dataset];
    struct ls_digest found;
    struct ls_read read;
    bool several;
    ls_read_of(trainer->train_pass, unit, dataset, &read);
    ls_trainer_report_odd(trainer, trainer->train, dataset, read.end);
    trainer->data.skipped += read.digests.skipped;
    if (ls_epochs_go_on(epochs, &read.digests, read.begin, read.end, ls_dataset_size(of), &found,
                        &several))
        return 0;
    trainer->data.mixed = true;
    return changed(trainer, of, "the first epoch", &epochs->whole, several ? NULL : &found, error);
}

int ls_data_note_update(struct ls_trainer *trainer, struct ls_error *error)
{
    if (trainer->train->dataset_count == 0)
        return 0;
    size_t units = ls_pass_units(trainer->train_pass);
    ls_trainer_report_skipped(trainer);
    for (size_t unit = 0; unit < units; unit++) {
        for (int d = 0; d < trainer->train->dataset_count; d++)
            LS_TRY(note_epochs(trainer, d, unit, error));
        if (trainer->data.cross_check != NULL)
            LS_TRY(cross_check(trainer, unit, error));
    }
    if (trainer->data.cross_check == NULL || trainer->data.unchecked > 0)
        return 0;
    LS_TRY(ls_data_settle(trainer, error));
    ls_cross_check_close(trainer->data.cross_check);
    trainer->data.cross_check = NULL;
    return 0;
}

int ls_data_settle(struct ls_trainer *trainer, struct ls_error *error)
{
    if (trainer->data.cross_check == NULL) /* on all ranks */
        return 0;
    LS_TRY(ls_trainer_share_odd(trainer, trainer->train, error));
    for (int d = 0; d < trainer->train->dataset_count; d++)
        ls_trainer_report_odd(trainer, trainer->train, d, trainer->data.read[d].end);
    return ls_comm_agree(trainer->comm, ls_cross_check_finish(trainer->data.cross_check, error),
                         error);
}

int ls_data_note_test(struct ls_trainer *trainer, struct ls_test *test, struct ls_error *error)
{
    ls_trainer_report_skipped(trainer);
    if (!test->tested)
        LS_TRY(ls_trainer_share_odd(trainer, test->net, error));
    for (int d = 0; d < test->net->dataset_count; d++) {
        ls_trainer_report_odd(trainer, test->net, d, INT64_MAX);
        const struct ls_digest *now = ls_read_tested(test->pass, d);
        if (test->tested && !ls_digest_equal(&test->digests[d], now))
            return changed(trainer, test->net->datasets[d], "the test before", &test->digests[d],
                           now, error);
        test->digests[d] = *now;
    }
    test->tested = true;
    return 0;
}
