/* Exchanges between cards by NCCL, on the fakes of CUDA's runtime and of NCCL: each rank is a
 * thread with a card. Sums and weights arrive in every order of work, behind the gradients that
 * they are of; each call fails once, and a rank that is lost leaves nothing behind.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "cuda/fake/fake.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"
#include "support/support.h"

enum { RANKS = 4, MOST = 200, ROUNDS = 5, SEEDS = 15 };

struct job {
    int ranks;
    size_t cut[RANKS + 1];
    unsigned char id[LS_CONNECTION_ID];
    int absent;             /* this rank gives nothing from round 2 on; -1: none */
    _Atomic bool lost;      /* some rank has failed, and all give up */
    _Atomic int wrong;      /* numbers */
    _Atomic int arrived[3]; /* ranks at places that all wait for */
};

struct rank {
    struct job *job;
    int rank;
    pthread_t thread;
    int status;
    struct ls_error error;
};

/* What a rank adds to element i in a round. */
static int64_t term(int rank, int round, size_t i)
{
    return ((int64_t)rank + 1) * 1000003 * (int64_t)(i + 1) - round * ((int64_t)1 << 40);
}

static float weight(int round, size_t i)
{
    return (float)(round * 1000) + (float)i / 8;
}

static void meet(struct job *job, int place)
{
    atomic_fetch_add(&job->arrived[place], 1);
    while (atomic_load(&job->arrived[place]) < job->ranks)
        sched_yield();
}

/* Waits for an exchange, until another rank is lost. */
static int wait_for(struct rank *rank, struct ls_connection *connection, int lane)
{
    for (;;) {
        switch (ls_card_collectives.test(connection, lane, &rank->error)) {
        case LS_EXCHANGE_DONE:
            return 0;
        case LS_EXCHANGE_FAILED:
            return LOCKSTEP_INTERNAL;
        default:
            break;
        }
        if (atomic_load(&rank->job->lost))
            return LOCKSTEP_LOST;
        sched_yield();
    }
}

struct arrays {
    int64_t *sums;
    float *weights;
    struct ls_stream *stream;
    struct ls_event *event;
};

static int make_arrays(struct arrays *arrays, struct ls_error *error)
{
    arrays->sums = ls_card_memory.create(MOST * sizeof *arrays->sums);
    arrays->weights = ls_card_memory.create(MOST * sizeof *arrays->weights);
    if (arrays->sums == NULL || arrays->weights == NULL)
        return LOCKSTEP_RESOURCE;
    LS_TRY(ls_card_streams.create(&arrays->stream, error));
    return ls_card_streams.event_create(&arrays->event, error);
}

static void free_arrays(struct arrays *arrays)
{
    ls_card_streams.free(arrays->stream);
    ls_card_streams.event_free(arrays->event);
    ls_card_memory.free(arrays->sums);
    ls_card_memory.free(arrays->weights);
}

/* The end of a backward pass, and the exchange behind it: the sums of all ranks, in its part. */
static int exchange_sums(struct rank *rank, struct ls_connection *connection, struct arrays *arrays,
                         int round)
{
    struct job *job = rank->job;
    int64_t here[MOST] = {0};
    const size_t begin = job->cut[rank->rank], end = job->cut[rank->rank + 1];
    for (size_t i = 0; i < job->cut[job->ranks]; i++)
        here[i] = term(rank->rank, round, i);
    LS_TRY(ls_card_memory.write(arrays->stream, arrays->sums, here, sizeof here, &rank->error));
    LS_TRY(ls_card_streams.event_record(arrays->event, arrays->stream, &rank->error));
    int status = ls_card_collectives.reduce(connection, round % 4, arrays->sums, job->cut,
                                            &arrays->event, 1, &rank->error);
    if (status == 0)
        status = wait_for(rank, connection, round % 4);
    if (status != 0) {
        (void)ls_card_streams.wait(arrays->stream, NULL); /* it reads `here` */
        return status;
    }
    LS_TRY(ls_card_memory.read(NULL, here, arrays->sums, sizeof here, &rank->error));
    for (size_t i = begin; i < end; i++) {
        int64_t sum = 0;
        for (int r = 0; r < job->ranks; r++)
            sum += term(r, round, i);
        atomic_fetch_add(&job->wrong, here[i] != sum);
    }
    return 0;
}

static int exchange_weights(struct rank *rank, struct ls_connection *connection,
                            struct arrays *arrays, int round)
{
    struct job *job = rank->job;
    float here[MOST] = {0};
    const size_t begin = job->cut[rank->rank], end = job->cut[rank->rank + 1];
    for (size_t i = begin; i < end; i++)
        here[i] = weight(round, i);
    LS_TRY(ls_card_memory.write(NULL, arrays->weights, here, sizeof here, &rank->error));
    LS_TRY(ls_card_collectives.gather(connection, (round + 2) % 4, arrays->weights, job->cut, NULL,
                                      0, &rank->error));
    LS_TRY(wait_for(rank, connection, (round + 2) % 4));
    LS_TRY(ls_card_memory.read(NULL, here, arrays->weights, sizeof here, &rank->error));
    for (size_t i = job->cut[0]; i < job->cut[job->ranks]; i++)
        atomic_fetch_add(&job->wrong, here[i] != weight(round, i));
    return 0;
}

static int be_connected(struct rank *rank, struct ls_connection *connection)
{
    struct arrays arrays = {0};
    int status = make_arrays(&arrays, &rank->error);
    for (int round = 0; round < ROUNDS && status == 0; round++) {
        if (round >= 2 && rank->rank == rank->job->absent) {
            status = LOCKSTEP_DATA;
            break;
        }
        status = exchange_sums(rank, connection, &arrays, round);
        if (status == 0)
            status = exchange_weights(rank, connection, &arrays, round);
    }
    if (status != 0)
        atomic_store(&rank->job->lost, true);
    meet(rank->job, 1);
    ls_card_collectives.leave(connection,
                              atomic_load(&rank->job->lost) || atomic_load(&rank->job->wrong) > 0);
    free_arrays(&arrays);
    return status;
}

static void *be_rank(void *argument)
{
    struct rank *rank = argument;
    struct ls_connection *connection = NULL;
    ls_thread_set_card(rank->job->ranks - 1 - rank->rank);
    if (rank->rank == 0)
        rank->status = ls_card_collectives.name(rank->job->id, &rank->error);
    if (rank->status != 0)
        atomic_store(&rank->job->lost, true);
    meet(rank->job, 0);
    if (!atomic_load(&rank->job->lost)) {
        rank->status = ls_card_collectives.join(rank->job->id, rank->rank, rank->job->ranks,
                                                &connection, &rank->error);
        if (connection != NULL)
            rank->status = be_connected(rank, connection);
        else
            atomic_store(&rank->job->lost, true);
        if (connection == NULL)
            meet(rank->job, 1);
    }
    ls_card_end_thread();
    return NULL;
}

/* Runs a job; the status of the first rank that failed by itself. */
static int run(struct job *job, char *message, size_t room)
{
    struct rank *ranks = calloc(RANKS, sizeof *ranks);
    int status = 0;
    assert_non_null(ranks);
    for (int r = 0; r < job->ranks; r++) {
        ranks[r].job = job;
        ranks[r].rank = r;
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, be_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < job->ranks; r++)
        assert_int_equal(pthread_join(ranks[r].thread, NULL), 0);
    for (int r = 0; r < job->ranks; r++)
        if (ranks[r].status != 0 && (status == 0 || status == LOCKSTEP_LOST)) {
            status = ranks[r].status;
            snprintf(message, room, "%s", ranks[r].error.problems[0].message);
        }
    free(ranks);
    return status;
}

static const struct job jobs[] = {
    {.ranks = 2, .cut = {0, 64, 128}, .absent = -1},
    {.ranks = 2, .cut = {16, 16, 150}, .absent = -1},
    {.ranks = 3, .cut = {0, 10, 10, 200}, .absent = -1},
    {.ranks = 4, .cut = {8, 56, 104, 152, 200}, .absent = -1},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void sums_and_weights_arrive_in_every_order(void **state)
{
    (void)state;
    char message[1024] = "";
    for (int seed = 0; seed < SEEDS; seed++)
        for (int j = 0; j < JOBS; j++) {
            struct job job = jobs[j];
            fake_begin(job.ranks, 1 << 22, (uint64_t)(seed * JOBS + j));
            if (run(&job, message, sizeof message) != 0)
                fail_msg("job %d, seed %d: %s", j, seed, message);
            if (job.wrong != 0)
                fail_msg("job %d, seed %d: %d numbers are wrong", j, seed, job.wrong);
            fake_end();
        }
}

static const char *const calls[] = {
    "ncclGetUniqueId", "ncclReduceScatter",   "ncclAllGather",   "ncclReduce",
    "ncclBroadcast",   "ncclGroupStart",      "ncclGroupEnd",    "ncclCommGetAsyncError",
    "cudaEventQuery",  "cudaStreamWaitEvent", "cudaEventRecord", "cudaMemcpyAsync",
};

static void a_call_that_fails_ends_all_ranks_and_leaves_nothing(void **state)
{
    (void)state;
    char message[1024] = "";
    int failures = 0;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (int after = 0; after < 12; after += 3)
            for (int j = 0; j < JOBS; j += 2) {
                struct job job = jobs[j];
                fake_begin(job.ranks, 1 << 22, c);
                /* While ranks connect a failure of one would keep the others waiting. */
                fake_fail(calls[c],
                          strcmp(calls[c], "ncclCommGetAsyncError") == 0 ? after + 200 : after);
                const int status = run(&job, message, sizeof message);
                if (fake_has_failed()) {
                    failures++;
                    if (status == 0 || message[0] == '\0')
                        fail_msg("%s after %d, job %d: no failure", calls[c], after, j);
                }
                fake_end();
            }
    assert_true(failures > 20);
}

static void a_rank_that_is_lost_is_given_up(void **state)
{
    (void)state;
    char message[1024] = "";
    for (int absent = 0; absent < 3; absent++) {
        struct job job = jobs[2];
        job.absent = absent;
        fake_begin(job.ranks, 1 << 22, (uint64_t)absent);
        assert_int_equal(run(&job, message, sizeof message), LOCKSTEP_DATA);
        fake_end();
    }
}

static void cards_are_told_apart(void **state)
{
    (void)state;
    unsigned char place[2][LS_CONNECTION_PLACE], again[LS_CONNECTION_PLACE];
    fake_begin(2, 1 << 22, 1);
    for (int card = 0; card < 2; card++) {
        ls_thread_set_card(card);
        assert_int_equal(ls_card_collectives.place(place[card], NULL), 0);
    }
    assert_int_equal(ls_card_collectives.place(again, NULL), 0);
    assert_memory_not_equal(place[0], place[1], sizeof again);
    assert_memory_equal(place[1], again, sizeof again);
    ls_thread_set_card(0);
    assert_int_equal(ls_card_enter(NULL), 0);
    fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_weights_arrive_in_every_order),
        cmocka_unit_test(a_call_that_fails_ends_all_ranks_and_leaves_nothing),
        cmocka_unit_test(a_rank_that_is_lost_is_given_up),
        cmocka_unit_test(cards_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
