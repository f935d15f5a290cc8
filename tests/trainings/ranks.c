/* Trainings on several ranks: see ranks.h. SPDX-License-Identifier: BSD-2-Clause */
#include "solver/evaluate.h"
#include "trainings/ranks.h"

#include <time.h>

#include "base/thread.h"
#include "engine/copies.h"
#include "transport/comm_job.h"
#include "transport/failure_detector.h"
#include "transport/local.h"

void put(struct rank *rank, const void *data, size_t bytes)
{
    char *longer = realloc(rank->bytes.data, rank->bytes.size + bytes);
    if (longer == NULL)
        abort();
    memcpy(longer + rank->bytes.size, data, bytes);
    rank->bytes.data = longer;
    rank->bytes.size += bytes;
}

static void before_micro_batch(void *user, int worker, int micro_batch)
{
    struct rank *rank = user;
    if (rank->job->before != NULL)
        rank->job->before(rank);
    if (rank->job->delays == 0)
        return;
    uint32_t key = rank->job->delays + (uint32_t)rank->rank * 16 + (uint32_t)worker;
    uint32_t wait = ls_random_below(key, (uint64_t)micro_batch, rank->delayed[worker]++, 8);
    if (wait >= 5)
        nanosleep(&(struct timespec){.tv_nsec = (wait - 4) * 400000}, NULL);
}

int put_weights(struct rank *rank, const struct ls_trainer *trainer)
{
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        size_t bytes = (size_t)ls_shape_size(&trainer->parameters->items[i]->shape) * sizeof(float);
        float *plain = malloc(bytes);
        if (plain == NULL)
            abort();
        int status = ls_copies_read(trainer->engine, (int)i, LS_WEIGHTS, plain, rank->error);
        if (status == 0)
            put(rank, plain, bytes);
        free(plain);
        LS_TRY(status);
    }
    return 0;
}

static int put_tests(struct rank *rank, struct ls_trainer *trainer)
{
    for (size_t i = 0; i < trainer->test_count; i++) {
        int64_t samples = 0;
        LS_TRY(ls_trainer_evaluate(trainer, i, &samples, rank->error));
        put(rank, &samples, sizeof samples);
        for (size_t k = 0; k < trainer->figures.outputs.count; k++)
            put(rank, trainer->figures.outputs.items[k].values,
                trainer->figures.outputs.items[k].count * sizeof(double));
    }
    return 0;
}

static int train_rank(struct rank *rank, struct ls_trainer *trainer)
{
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    for (int i = 0; i < rank->job->updates; i++) {
        rank->update = i;
        LS_TRY(ls_trainer_update(trainer, rank->error));
        put(rank, trainer->figures.totals.record, (size_t)graph->record_size * sizeof(double));
        put(rank, trainer->figures.totals.normalizers, graph->normalizer_count * sizeof(double));
    }
    rank->update = rank->job->updates;
    LS_TRY(put_tests(rank, trainer));
    return put_weights(rank, trainer);
}

static int run_rank_with(struct rank *rank, struct ls_comm *comm)
{
    const struct job *job = rank->job;
    const struct lockstep_solver *solver = job->other[rank->rank];
    const char *prefix = job->prefix[rank->rank];
    struct lockstep_train_options options;
    struct ls_trainer *trainer = NULL;
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = job->workers[rank->rank];
    options.memory = job->memory[rank->rank];
    options.audit = job->audit;
    options.snapshot_prefix = prefix != NULL ? prefix : "unnamed";
    solver = solver != NULL ? solver : job->solver;
    LS_TRY(ls_trainer_join(solver->definition, &options, comm, &trainer, rank->error));
    trainer->engine->before_micro_batch = before_micro_batch;
    trainer->engine->user = rank;
    if (job->prepare != NULL)
        job->prepare(trainer, rank->rank);
    int status = job->act != NULL ? job->act(rank, trainer) : train_rank(rank, trainer);
    for (int w = 0; w < options.workers; w++)
        rank->micro_batches += trainer->engine->micro_batches[w];
    ls_trainer_free(trainer);
    return status;
}

/* A rank that has failed gives rank 0 some seconds to end its process, which here goes on. So the
 * clock of failure detectors is a fast one; the timeout is as long as ever. */
enum { HASTE = 10, TIMEOUT = 60 };

static double fast_clock(void *user)
{
    (void)user;
    return HASTE * ls_clock();
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    struct ls_comm *comm = NULL;
    struct ls_comm_options options = {.timeout = HASTE * TIMEOUT, .dynamic = rank->job->dynamic};
    const struct ls_detector_senses senses = {.clock = fast_clock};
    rank->status =
        rank->transport == NULL ? 0 : ls_comm_create(rank->transport, &options, &comm, rank->error);
    if (rank->status == 0 && comm != NULL)
        ls_detector_set_senses(comm->detector, &senses);
    if (rank->status == 0)
        rank->status = run_rank_with(rank, comm);
    for (int t = 0; t < LS_TRAFFICS && comm != NULL; t++)
        rank->sent[t] = atomic_load(&comm->sent[t]);
    if (rank->status != 0 && rank->transport != NULL && !rank->job->together)
        rank->transport->calls->abort(rank->transport,
                                      rank->status); /* no rank waits for this one */
    ls_comm_end(comm);
    return NULL;
}

void run_job(const struct job *job, struct rank *ranks)
{
    struct ls_transport *transports[RANKS_MAX] = {NULL};
    if (job->ranks > 1)
        assert_int_equal(ls_local_transports(job->ranks, transports, NULL), 0);
    for (int r = 0; r < job->ranks; r++) {
        ranks[r] = (struct rank){.job = job,
                                 .rank = r,
                                 .transport = transports[r],
                                 .error = calloc(1, sizeof(struct ls_error))};
        assert_non_null(ranks[r].error);
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < job->ranks; r++)
        assert_int_equal(pthread_join(ranks[r].thread, NULL), 0);
}

void free_ranks(const struct job *job, struct rank *ranks)
{
    for (int r = 0; r < job->ranks; r++) {
        free(ranks[r].bytes.data);
        free(ranks[r].error);
    }
}

static struct bytes bytes_of(const struct job *job)
{
    struct rank rank;
    run_job(job, &rank);
    if (rank.status != 0)
        fail_msg("%s", rank.error->problems[0].message);
    free(rank.error);
    return rank.bytes;
}

struct bytes run_alone(const struct lockstep_solver *solver, int updates)
{
    return bytes_of(
        &(struct job){.solver = solver, .ranks = 1, .workers = {1}, .updates = updates});
}

struct bytes act_alone(const struct lockstep_solver *solver,
                       int (*act)(struct rank *rank, struct ls_trainer *trainer))
{
    return bytes_of(&(struct job){.solver = solver, .ranks = 1, .workers = {1}, .act = act});
}

void check_job(const struct job *job, struct bytes expected, const char *what)
{
    struct rank ranks[RANKS_MAX];
    run_job(job, ranks);
    for (int r = 0; r < job->ranks; r++) /* a rank that is only told of it says less */
        if (ranks[r].status != 0 && ranks[r].status != LOCKSTEP_LOST)
            fail_msg("%s: rank %d of %d: %s", what, r, job->ranks,
                     ranks[r].error->problems[0].message);
    for (int r = 0; r < job->ranks; r++) {
        if (ranks[r].status != 0)
            fail_msg("%s: rank %d of %d: %s", what, r, job->ranks,
                     ranks[r].error->problems[0].message);
        size_t at = 0;
        struct bytes bytes = ranks[r].bytes;
        while (at < bytes.size && at < expected.size && bytes.data[at] == expected.data[at])
            at++;
        if (!same_bytes(bytes, expected))
            fail_msg("%s: rank %d of %d with %d workers differs from byte %zu of %zu on", what, r,
                     job->ranks, job->workers[r], at, expected.size);
    }
    free_ranks(job, ranks);
}
