/* The communicator over transports between threads: each collective is compared with the result
 * of a single process, for jobs of every small size; all ranks agree on a failure; a rank gives
 * up.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "support/comm_ranks.h"
#include "support/support.h"
#include "transport/comm_job.h"
#include "transport/local.h"

enum { RANKS_MAX = 5, ITEMS = 23, WORDS = 7 };

static void run_ranks(int size, void (*body)(struct comm_rank *rank))
{
    run_comm_job(&(struct comm_job){.ranks = size, .growing = true, .body = body});
}

/* What rank `rank` hands in as word `i` of round `round`. */
static uint32_t word(int round, int rank, int i)
{
    return (uint32_t)(round * 1000003 + rank * 1009 + i);
}

/* ---- Collectives ----------------------------------------------------------------------------- */

/* Several rounds, with blocks of other sizes: the memory between ranks grows and is reused. */
static void all_gather(struct comm_rank *rank)
{
    struct ls_comm *comm = rank->comm;
    for (int round = 0; round < 5; round++) {
        uint32_t mine[WORDS], all[RANKS_MAX * WORDS];
        int words = 1 + round * 3 % WORDS;
        for (int i = 0; i < words; i++)
            mine[i] = word(round, comm->rank, i);
        CHECK(rank, ls_comm_all_gather(comm, mine, (size_t)words * 4, all, rank->error) == 0);
        for (int r = 0; r < comm->size; r++)
            for (int i = 0; i < words; i++)
                CHECK(rank, all[r * words + i] == word(round, r, i));
    }
}

/* Items of three words at a stride of five; what lies between them stays as it is. */
static void all_gather_items(struct comm_rank *rank)
{
    struct ls_comm *comm = rank->comm;
    for (int round = 0; round < 8; round++) {
        uint32_t items[ITEMS][5];
        int owner[ITEMS];
        for (int i = 0; i < ITEMS; i++) {
            owner[i] = (int)ls_random_below(1, (uint64_t)round, (uint64_t)i, (uint32_t)comm->size);
            owner[i] = round == 0 ? comm->size - 1 : owner[i]; /* all are one rank's */
            for (int k = 0; k < 5; k++)
                items[i][k] = k < 3 && owner[i] == comm->rank ? word(round, i, k) : 77;
        }
        CHECK(rank, ls_comm_all_gather_items(comm, items, sizeof items[0], 12, owner, ITEMS,
                                             rank->error) == 0);
        for (int i = 0; i < ITEMS; i++)
            for (int k = 0; k < 5; k++)
                CHECK(rank, items[i][k] == (k < 3 ? word(round, i, k) : 77));
    }
}

static void broadcast(struct comm_rank *rank)
{
    uint32_t data[WORDS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < WORDS; i++)
            data[i] = word(round, rank->comm->rank, i);
        CHECK(rank, ls_comm_broadcast(rank->comm, data, sizeof data, rank->error) == 0);
        for (int i = 0; i < WORDS; i++)
            CHECK(rank, data[i] == word(round, 0, i));
    }
}

/* Rank r has r % 3 words, so that some ranks have none; two lists of parts, of which one is used.
 */
static void gather_to_rank_0(struct comm_rank *rank)
{
    struct ls_comm *comm = rank->comm;
    struct ls_range part[2 * RANKS_MAX];
    uint32_t mine[3], all[3 * RANKS_MAX], expected[3 * RANKS_MAX];
    size_t at = 0;
    memset(all, 0, sizeof all);
    memset(expected, 0, sizeof expected);
    for (int r = 0; r < comm->size; r++) {
        size_t words = (size_t)(r + 2) % 3;
        part[2 * r] = (struct ls_range){at * 4, (at + words) * 4};
        part[2 * r + 1] = (struct ls_range){0, SIZE_MAX};
        for (size_t i = 0; i < words; i++)
            expected[at++] = word(0, r, (int)i);
    }
    for (int i = 0; i < 3; i++)
        mine[i] = word(0, comm->rank, i);
    CHECK(rank,
          ls_comm_gather(comm, mine, comm->rank == 0 ? all : NULL, part, 2, rank->error) == 0);
    CHECK(rank, comm->rank != 0 || memcmp(all, expected, sizeof all) == 0);
    CHECK(rank, ls_comm_agree(comm, 0, rank->error) == 0);
}

/* Items are shared by workers: rank r has r + 1 workers and as many items for each. */
static void items_belong_to_ranks_by_workers(struct comm_rank *rank)
{
    struct ls_comm *comm = rank->comm;
    int all = comm->size * (comm->size + 1) / 2, before = comm->rank * (comm->rank + 1) / 2;
    for (int i = 0; i < all; i++) {
        int owner = ls_comm_owner(comm, i, all);
        CHECK(rank, owner >= 0 && owner < comm->size);
        CHECK(rank, (owner == comm->rank) == (i >= before && i < before + comm->rank + 1));
    }
    struct ls_share share = ls_comm_own(comm);
    int64_t begin, end;
    ls_share_run(&share, all, &begin, &end);
    CHECK(rank, begin == (comm->size > 1 ? before : 0));
    CHECK(rank, end == (comm->size > 1 ? before + comm->rank + 1 : all));
}

static void for_all_sizes(void (*body)(struct comm_rank *rank))
{
    for (int size = 1; size <= RANKS_MAX; size++)
        run_ranks(size, body);
}

static void all_gather_brings_the_blocks_of_all_ranks_in_order(void **state)
{
    (void)state;
    for_all_sizes(all_gather);
}

static void all_gather_items_brings_each_item_of_its_owner(void **state)
{
    (void)state;
    for_all_sizes(all_gather_items);
}

static void broadcast_brings_what_rank_0_has(void **state)
{
    (void)state;
    for_all_sizes(broadcast);
}

static void gather_brings_uneven_parts_to_rank_0(void **state)
{
    (void)state;
    for_all_sizes(gather_to_rank_0);
}

static void ranks_have_items_by_their_workers(void **state)
{
    (void)state;
    for_all_sizes(items_belong_to_ranks_by_workers);
}

/* No communicator is one rank: nothing is exchanged, and its own data are all there are. */
static void no_communicator_is_one_rank(void **state)
{
    (void)state;
    uint32_t mine = 5, all = 0;
    const struct ls_range part = {0, 4};
    const int owner[2] = {0, 0};
    struct ls_comm *comm = NULL;
    assert_int_equal(ls_comm_create_alone(&comm, NULL), 0);
    assert_int_equal(ls_comm_start(comm, 3, NULL, NULL), 0);
    assert_null(comm->progress_thread);
    assert_int_equal(comm->rank, 0);
    assert_int_equal(comm->size, 1);
    assert_int_equal(ls_comm_owner(comm, 4, 5), 0);
    const struct ls_share share = ls_comm_own(comm);
    assert_true(ls_share_is_all(&share));
    uint32_t items[2] = {7, 8};
    assert_int_equal(ls_comm_all_gather_items(comm, items, 4, 4, owner, 2, NULL), 0);
    assert_true(items[0] == 7 && items[1] == 8);
    assert_int_equal(ls_comm_all_gather(comm, &mine, 4, &all, NULL), 0);
    assert_int_equal(all, 5);
    all = 0;
    assert_int_equal(ls_comm_gather(comm, &mine, &all, &part, 1, NULL), 0);
    assert_int_equal(all, 5);
    assert_int_equal(ls_comm_broadcast(comm, &mine, 4, NULL), 0);
    assert_int_equal(ls_comm_agree(comm, LOCKSTEP_DATA, NULL), LOCKSTEP_DATA);
    assert_int_equal(ls_comm_conclude(comm, LOCKSTEP_DATA, NULL), LOCKSTEP_DATA);
    assert_int_equal(ls_comm_request(comm, 5), 5); /* alone, a request is answered at once */
    assert_int_equal(ls_comm_request(comm, 0), 0);
    ls_comm_end(comm);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Ranks 1 and 2 fail for different reasons: all ranks get the status of rank 1; ranks without a
 * failure also get its message, and continue together. */
static void agree_on_failure(struct comm_rank *rank)
{
    int own = rank->comm->rank, status = 0;
    CHECK(rank, ls_comm_agree(rank->comm, 0, rank->error) == 0);
    CHECK(rank, rank->error->count == 0);
    if (own == 1 || own == 2)
        status = ls_fail(rank->error, own == 1 ? LOCKSTEP_DATA : LOCKSTEP_USAGE, "a place",
                         "a hint", "trouble of rank %d's own", own);
    CHECK(rank, ls_comm_agree(rank->comm, status, rank->error) == LOCKSTEP_DATA);
    CHECK(rank, rank->error->count == 1);
    const struct ls_problem *problem = &rank->error->problems[0];
    CHECK(rank, strstr(problem->message,
                       own == 2 ? "trouble of rank 2's own" : "trouble of rank 1's own") != NULL);
    CHECK(rank, (strstr(problem->message, "(rank 1, host ") != NULL) == (own != 1 && own != 2));
    CHECK(rank, strcmp(problem->place, "a place") == 0 && strcmp(problem->hint, "a hint") == 0);
    uint32_t mine = word(0, own, 0), all[RANKS_MAX];
    CHECK(rank, ls_comm_all_gather(rank->comm, &mine, 4, all, NULL) == 0);
    for (int r = 0; r < rank->comm->size; r++)
        CHECK(rank, all[r] == word(0, r, 0));
}

static void all_ranks_agree_on_the_first_failure(void **state)
{
    (void)state;
    run_ranks(3, agree_on_failure);
    run_ranks(RANKS_MAX, agree_on_failure);
}

/* Rank 1 fails where the others do not and wait for it: they are not left waiting. */
static void give_up_or_wait(struct comm_rank *rank)
{
    uint32_t mine = 1, all[RANKS_MAX];
    if (rank->comm->rank == 1) {
        int status = ls_fail(rank->error, LOCKSTEP_DATA, NULL, NULL, "a broken disk");
        CHECK(rank, ls_comm_conclude(rank->comm, status, rank->error) == LOCKSTEP_DATA);
        CHECK(rank, ls_local_ended(rank->transport, NULL));
        return;
    }
    CHECK(rank, ls_comm_all_gather(rank->comm, &mine, 4, all, rank->error) == LOCKSTEP_LOST);
    CHECK(rank, rank->error->count == 1);
    CHECK(rank, strstr(rank->error->problems[0].message, "rank 1") != NULL);
    CHECK(rank, ls_comm_conclude(rank->comm, LOCKSTEP_LOST, rank->error) == LOCKSTEP_LOST);
}

/* The connection failed long ago, and the failure detector knows of no rank: the calls of many
 * waits end at once. (If each waited anew they would take the better part of an hour.) */
static void lose_again_and_again(struct comm_rank *rank)
{
    rank->comm->lost_at = 1;
    for (int i = 0; i < 1000; i++)
        CHECK(rank, ls_comm_lost(rank->comm, NULL) == LOCKSTEP_LOST);
}

static void many_waits_wait_together_for_the_name_of_a_lost_rank(void **state)
{
    (void)state;
    run_ranks(2, lose_again_and_again);
}

/* What all ranks have found ends no job: all go on together after it. */
static void find_the_same(struct comm_rank *rank)
{
    uint32_t mine = 1, all[RANKS_MAX];
    int status = rank->comm->rank == 1 ? LOCKSTEP_DATA : 0;
    status = ls_comm_agree(rank->comm, status, rank->error);
    CHECK(rank, ls_comm_conclude(rank->comm, status, rank->error) == LOCKSTEP_DATA);
    status = ls_comm_common(rank->comm, LOCKSTEP_DIVERGED);
    CHECK(rank, ls_comm_conclude(rank->comm, status, rank->error) == LOCKSTEP_DIVERGED);
    CHECK(rank, !ls_local_ended(rank->transport, NULL));
    CHECK(rank, ls_comm_all_gather(rank->comm, &mine, 4, all, rank->error) == 0);
}

static void a_failure_of_all_ranks_ends_no_job(void **state)
{
    (void)state;
    run_ranks(3, find_the_same);
}

static void a_rank_that_gives_up_ends_the_wait_of_all(void **state)
{
    (void)state;
    run_ranks(3, give_up_or_wait);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather_brings_the_blocks_of_all_ranks_in_order),
        cmocka_unit_test(all_gather_items_brings_each_item_of_its_owner),
        cmocka_unit_test(broadcast_brings_what_rank_0_has),
        cmocka_unit_test(gather_brings_uneven_parts_to_rank_0),
        cmocka_unit_test(ranks_have_items_by_their_workers),
        cmocka_unit_test(no_communicator_is_one_rank),
        cmocka_unit_test(all_ranks_agree_on_the_first_failure),
        cmocka_unit_test(a_rank_that_gives_up_ends_the_wait_of_all),
        cmocka_unit_test(a_failure_of_all_ranks_ends_no_job),
        cmocka_unit_test(many_waits_wait_together_for_the_name_of_a_lost_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
