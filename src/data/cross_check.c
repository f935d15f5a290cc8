/* Comparing records with those of other ranks; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/cross_check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/bad_records.h"
#include "data/reader.h"
#include "data/source.h"

enum { RUNS = 1024 /* that can wait to be compared */ };

struct ls_cross_check {
    struct ls_dataset **datasets;
    uint32_t *wanted; /* by data set: bit k is tensor k of a sample */
    int count;
    struct ls_reader **readers;
    int *ranks;                  /* a ring: whose run it is */
    struct ls_cross_read *reads; /* by run and data set */

    pthread_t thread;
    bool running;
    pthread_mutex_t lock;              /* guards what follows */
    pthread_cond_t work, done;         /* something was added, or the end; something was compared */
    int64_t added, compared, wait_for; /* runs, from the beginning; `wait_for`: wakes the waiter */
    bool stop;
    int status; /* of what was found first, with `error` */
    struct ls_error error;
};

static int differs(const struct ls_dataset *dataset, const struct ls_cross_read *run, int rank,
                   const struct ls_digest *theirs, const struct ls_digest *mine,
                   struct ls_error *error)
{
    struct ls_text which = {0};
    int64_t record = ls_digest_culprit(theirs, mine, ls_dataset_records(dataset));
    if (record >= 0)
        ls_dataset_name_record(dataset, record, &which);
    else
        ls_text_format(&which, "several records (of samples %" PRId64 " to %" PRId64 ")",
                       run->begin, run->end - 1);
    int status = ls_fail(error, LOCKSTEP_DIFFERENT, ls_dataset_name(dataset),
                         "the sources must hold the same records on all machines",
                         "%s: not the same here as on rank %d, which has trained on it",
                         which.data != NULL ? which.data : "a record", rank);
    ls_text_free(&which);
    return status;
}

/* Reads a run's records of one data set. */
static int read_run(struct ls_cross_check *check, const struct ls_cross_read *run, int dataset,
                    struct ls_digests *mine, struct ls_error *error)
{
    const struct ls_dataset *of = check->datasets[dataset];
    uint32_t wanted = check->wanted[dataset];
    *mine = (struct ls_digests){.skipped = 0};
    for (int64_t i = run->begin; i < run->end && wanted != 0; i++) {
        int64_t record;
        uint64_t hash;
        LS_TRY(ls_reader_hash(check->readers[dataset], i, wanted, &record, &hash, error));
        ls_digests_add(mine, run->begin, run->end, ls_dataset_size(of), i, record, hash);
    }
    return 0;
}

static bool is_equal(const struct ls_digests *a, const struct ls_digests *b)
{
    return ls_digest_equal(&a->first, &b->first) && ls_digest_equal(&a->middle, &b->middle) &&
           ls_digest_equal(&a->last, &b->last);
}

/* Reads a run's records of one data set and compares them. Where bad records are skipped, those
 * with the same bytes are as good here as there: only where there are others they are decoded. */
static int compare(struct ls_cross_check *check, const struct ls_cross_read *run, int rank,
                   int dataset, struct ls_error *error)
{
    const struct ls_digests *theirs = &run->digests;
    const struct ls_dataset *of = check->datasets[dataset];
    struct ls_digests mine;
    ls_reader_trust(check->readers[dataset], true);
    LS_TRY(read_run(check, run, dataset, &mine, error));
    ls_reader_trust(check->readers[dataset], false);
    if (ls_dataset_skips(of) && !is_equal(&mine, theirs))
        LS_TRY(read_run(check, run, dataset, &mine, error));
    if (!ls_digest_equal(&mine.first, &theirs->first))
        return differs(of, run, rank, &theirs->first, &mine.first, error);
    if (!ls_digest_equal(&mine.middle, &theirs->middle))
        return differs(of, run, rank, &theirs->middle, &mine.middle, error);
    if (!ls_digest_equal(&mine.last, &theirs->last))
        return differs(of, run, rank, &theirs->last, &mine.last, error);
    return 0;
}

static void *compare_runs(void *argument)
{
    struct ls_cross_check *check = argument;
    ls_unpin_thread();
    ls_enter_background();
    pthread_mutex_lock(&check->lock);
    while (!check->stop) {
        if (check->compared == check->added) {
            pthread_cond_wait(&check->work, &check->lock);
            continue;
        }
        size_t at = (size_t)(check->compared % RUNS);
        bool good = check->status == 0; /* the first difference is enough */
        pthread_mutex_unlock(&check->lock);
        int status = 0;
        for (int d = 0; d < check->count && good && status == 0; d++)
            status = compare(check, &check->reads[at * (size_t)check->count + (size_t)d],
                             check->ranks[at], d, &check->error);
        pthread_mutex_lock(&check->lock);
        check->status = good ? status : check->status;
        if (++check->compared >= check->wait_for)
            pthread_cond_broadcast(&check->done);
    }
    pthread_mutex_unlock(&check->lock);
    return NULL;
}

static int open_check(const struct ls_cross_check_options *options, struct ls_cross_check *check,
                      struct ls_error *error)
{
    size_t count = (size_t)options->dataset_count;
    check->count = options->dataset_count;
    check->datasets = ls_alloc(count + 1, sizeof *check->datasets);
    check->wanted = ls_alloc(count + 1, sizeof *check->wanted);
    check->readers = ls_alloc(count + 1, sizeof *check->readers);
    check->ranks = ls_alloc(RUNS, sizeof *check->ranks);
    check->reads = ls_alloc(RUNS * count + 1, sizeof *check->reads);
    if (check->datasets == NULL || check->wanted == NULL || check->readers == NULL ||
        check->ranks == NULL || check->reads == NULL)
        return ls_fail_memory(error, "a comparison of data");
    for (int i = 0; i < options->input_count; i++)
        if (options->inputs[i][0] >= 0)
            check->wanted[options->inputs[i][0]] |= LS_TENSOR(options->inputs[i][1]);
    for (size_t d = 0; d < count; d++) {
        check->datasets[d] = options->datasets[d];
        LS_TRY(ls_reader_open(options->datasets[d], &check->readers[d], error));
    }
    int result = ls_thread_create(&check->thread, compare_runs, check);
    if (result != 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "a thread to compare data could not be started (error %d)", result);
    check->running = true;
    return 0;
}

int ls_cross_check_open(const struct ls_cross_check_options *options, struct ls_cross_check **out,
                        struct ls_error *error)
{
    *out = NULL;
    struct ls_cross_check *check = ls_alloc(1, sizeof *check);
    if (check == NULL)
        return ls_fail_memory(error, "a comparison of data");
    pthread_mutex_init(&check->lock, NULL);
    pthread_cond_init(&check->work, NULL);
    pthread_cond_init(&check->done, NULL);
    int status = open_check(options, check, error);
    if (status != 0)
        ls_cross_check_close(check);
    else
        *out = check;
    return status;
}

void ls_cross_check_close(struct ls_cross_check *check)
{
    if (check == NULL)
        return;
    pthread_mutex_lock(&check->lock);
    check->stop = true;
    pthread_cond_broadcast(&check->work);
    pthread_mutex_unlock(&check->lock);
    if (check->running)
        pthread_join(check->thread, NULL);
    for (int d = 0; check->readers != NULL && d < check->count; d++)
        ls_reader_close(check->readers[d]);
    pthread_cond_destroy(&check->work);
    pthread_cond_destroy(&check->done);
    pthread_mutex_destroy(&check->lock);
    ls_free(check->datasets);
    ls_free(check->wanted);
    ls_free(check->readers);
    ls_free(check->ranks);
    ls_free(check->reads);
    ls_free(check);
}

/* With the lock held: waits until so many runs are compared. */
static void wait_for(struct ls_cross_check *check, int64_t compared)
{
    check->wait_for = compared;
    while (check->compared < compared)
        pthread_cond_wait(&check->done, &check->lock);
    check->wait_for = INT64_MAX;
}

void ls_cross_check_add(struct ls_cross_check *check, int rank, const struct ls_cross_read *reads)
{
    pthread_mutex_lock(&check->lock);
    wait_for(check, check->added - RUNS + 1);
    size_t at = (size_t)(check->added++ % RUNS);
    check->ranks[at] = rank;
    for (int d = 0; d < check->count; d++)
        check->reads[at * (size_t)check->count + (size_t)d] = reads[d];
    pthread_cond_signal(&check->work);
    pthread_mutex_unlock(&check->lock);
}

/* With the lock held. */
static int tell(const struct ls_cross_check *check, struct ls_error *error)
{
    if (check->status != 0)
        ls_error_add(error, &check->error);
    return check->status;
}

int ls_cross_check_found(struct ls_cross_check *check, struct ls_error *error)
{
    pthread_mutex_lock(&check->lock);
    int status = tell(check, error);
    pthread_mutex_unlock(&check->lock);
    return status;
}

int ls_cross_check_finish(struct ls_cross_check *check, struct ls_error *error)
{
    pthread_mutex_lock(&check->lock);
    wait_for(check, check->added);
    int status = tell(check, error);
    pthread_mutex_unlock(&check->lock);
    return status;
}
