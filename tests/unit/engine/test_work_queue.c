/* The work queue between two ranks: a rank that is free gets all remaining micro-batches, and a
 * message of an earlier trainer of the same job changes nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/work_queue.h"

#include <pthread.h>
#include <string.h>

#include "support/comm_ranks.h"
#include "support/support.h"
#include "transport/local.h"
#include "transport/failure_detector.h"

enum { RANKS = 2, UNITS = 6, TRAINERS = 3 };

/* As engine/work_queue.c sends it: no unit is left in a round. */
struct message {
    uint32_t kind, round;
    int32_t unit;
    uint32_t count;
};

struct rank {
    struct ls_transport *transport;
    pthread_barrier_t *barrier;
    size_t taken[TRAINERS]; /* units, by trainer */
    int failed;             /* a line; cmocka's checks are for the main thread */
    int owners[UNITS];      /* of the last round */
};

static void granted(void *user, size_t unit)
{
    (void)user;
    (void)unit;
}

static void take_all(struct rank *rank, struct ls_work_queue *queue, int trainer)
{
    size_t unit = 0;
    while (unit != SIZE_MAX && rank->failed == 0) {
        CHECK(rank, ls_work_queue_take(queue, &unit, NULL) == 0);
        rank->taken[trainer] += unit != SIZE_MAX;
    }
}

/* One round, in which rank 0 is slow: rank 1 takes all micro-batches that were not given to rank
 * 0 at the start. */
static void run_round(struct rank *rank, struct ls_comm *comm, int trainer)
{
    struct ls_work_queue *queue = NULL;
    CHECK(rank, ls_work_queue_create(comm, &queue, NULL) == 0);
    CHECK(rank, ls_comm_agree(comm, 0, NULL) == 0); /* all have theirs, as trainers do it */
    CHECK(rank, ls_work_queue_begin(queue, 0, UNITS, granted, NULL, NULL) == 0);
    pthread_barrier_wait(rank->barrier);
    if (comm->rank == 0) { /* late: those of all trainers before */
        struct message late = {.kind = LS_MESSAGE_OTHERS + 1, .unit = -1};
        for (int before = 1; before <= trainer; before++) {
            late.round = (uint32_t)before;
            CHECK(rank, rank->transport->calls->tell(rank->transport, 1, &late, sizeof late) == 0);
        }
    }
    pthread_barrier_wait(rank->barrier);
    if (comm->rank == 1)
        take_all(rank, queue, trainer);
    pthread_barrier_wait(rank->barrier);
    if (comm->rank == 0)
        take_all(rank, queue, trainer);
    CHECK(rank, ls_work_queue_end(queue, rank->owners, NULL) == 0);
    ls_work_queue_free(queue);
}

static struct rank ranks[RANKS];

static void run_rank(struct comm_rank *base)
{
    struct rank *rank = &ranks[base->comm->rank];
    rank->transport = base->transport;
    rank->barrier = base->job->user;
    for (int trainer = 0; trainer < TRAINERS; trainer++)
        run_round(rank, base->comm, trainer);
    base->failed = rank->failed;
}

static void messages_of_earlier_rounds_are_ignored(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, RANKS);
    run_comm_job(
        &(struct comm_job){.ranks = RANKS, .dynamic = true, .body = run_rank, .user = &barrier});
    pthread_barrier_destroy(&barrier);
    for (int r = 0; r < RANKS; r++) {
        for (int trainer = 0; trainer < TRAINERS; trainer++)
            assert_int_equal(ranks[r].taken[trainer], r == 0 ? 1 : UNITS - 1);
        for (int unit = 0; unit < UNITS; unit++)
            assert_int_equal(ranks[r].owners[unit], unit == 0 ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_earlier_rounds_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
