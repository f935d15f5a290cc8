/* Links between threads: gathering, exchanging, several operations under way, messages, delays, a
 * rank that hangs, a job that ends. SPDX-License-Identifier: BSD-2-Clause */
#include "transport/local.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "support/links.h"
#include "support/support.h"

enum { RANKS_MAX = 5 };

struct rank {
    pthread_t thread;
    struct ls_link *link;
    int failed; /* the line of the first check that failed; cmocka's are for the main thread */
};

#define CHECK(rank, condition)                                                                     \
    do {                                                                                           \
        if (!(condition) && (rank)->failed == 0)                                                   \
            (rank)->failed = __LINE__;                                                             \
    } while (0)

/* Runs `body` in a thread for each rank, and ends the links. */
static void run_ranks(int size, void (*prepare)(struct ls_link **), void *(*body)(void *))
{
    struct ls_link *links[RANKS_MAX];
    struct rank ranks[RANKS_MAX] = {0};
    struct ls_error error = {0};
    assert_int_equal(ls_local_links(size, links, &error), 0);
    if (prepare != NULL)
        prepare(links);
    for (int r = 0; r < size; r++) {
        ranks[r].link = links[r];
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, body, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++)
        assert_int_equal(pthread_join(ranks[r].thread, NULL), 0);
    for (int r = 0; r < size; r++)
        links[r]->calls->end(links[r]);
    for (int r = 0; r < size; r++)
        assert_int_equal(ranks[r].failed, 0);
}

static void *transfer(void *user)
{
    struct rank *rank = user;
    CHECK(rank, ls_test_link_in_turn(rank->link) == 0);
    CHECK(rank, ls_test_link_at_once(rank->link) == 0);
    CHECK(rank, ls_test_link_large(rank->link, 1 << 16) == 0);
    return NULL;
}

static void test_blocks_arrive(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++)
        run_ranks(size, NULL, transfer);
}

static void *use_two_threads(void *user)
{
    struct rank *rank = user;
    CHECK(rank, ls_test_link_two_threads(rank->link) == 0);
    return NULL;
}

static void test_channels_know_nothing_of_each_other(void **state)
{
    (void)state;
    run_ranks(4, NULL, use_two_threads);
}

static void *tell_and_hear(void *user)
{
    struct rank *rank = user;
    CHECK(rank, ls_test_link_messages(rank->link) == 0);
    return NULL;
}

static void test_messages_come_in_order(void **state)
{
    (void)state;
    run_ranks(4, NULL, tell_and_hear);
}

static void test_messages_have_limits(void **state)
{
    (void)state;
    struct ls_link *links[2];
    char message[LS_LINK_MESSAGE + 1] = "abcdef";
    int from = -1;
    assert_int_equal(ls_local_links(2, links, NULL), 0);
    assert_int_equal(links[0]->calls->tell(links[0], 1, message, sizeof message), -1);
    assert_string_not_equal(links[0]->failure, "");
    assert_int_equal(links[0]->calls->tell(links[0], 1, message, 6), 0);
    assert_int_equal(links[0]->calls->tell(links[0], 1, message, 6), 0); /* lost */
    memset(message, 0, 7);
    assert_int_equal(links[1]->calls->hear(links[1], &from, message, 4), 4);
    assert_string_equal(message, "abcd");
    assert_int_equal(from, 0);
    for (int r = 0; r < 2; r++)
        links[r]->calls->end(links[r]);
}

static void await(struct rank *rank, struct ls_link_op **op)
{
    enum ls_link_result result;
    while ((result = rank->link->calls->test(rank->link, op)) == LS_LINK_RUNNING)
        sched_yield();
    CHECK(rank, result == LS_LINK_DONE && *op == NULL);
}

static void slow_down(struct ls_link **links)
{
    ls_local_delay(links[0], 0.002, 1e6);
}

/* Bytes at a million a second: the second of two waits for the first, a small one goes between. */
static void *measure(void *user)
{
    static uint32_t data[4][2][5000];
    struct rank *rank = user;
    struct ls_link *link = rank->link;
    uint32_t *all = &data[link->rank][0][0];
    size_t bytes[2] = {20000, 20000}, offset[2] = {0, 20000}, few[2] = {4, 4}, place[2] = {0, 4};
    struct ls_link_blocks large = {bytes, offset}, small = {few, place};
    struct ls_link_op *first, *second, *third;
    double begin = ls_clock();
    const struct ls_link_calls *calls = link->calls;
    CHECK(rank, calls->gather(link, LS_CHANNEL_BULK, all, all, &large, &first) == 0);
    CHECK(rank, calls->exchange(link, LS_CHANNEL_BULK, all, &large, data[link->rank + 2], &large,
                                &second) == 0);
    uint32_t words[2] = {0, 0}, mine = (uint32_t)link->rank + 1;
    CHECK(rank, calls->gather(link, LS_CHANNEL_SMALL, &mine, words, &small, &third) == 0);
    await(rank, &third);
    CHECK(rank, words[0] == 1 && words[1] == 2);
    CHECK(rank, ls_clock() - begin >= 0.002);
    await(rank, &first);
    CHECK(rank, ls_clock() - begin >= 0.022);
    await(rank, &second);
    CHECK(rank, ls_clock() - begin >= 0.042);
    return NULL;
}

static void test_delays_are_kept(void **state)
{
    (void)state;
    run_ranks(2, slow_down, measure);
}

static pthread_barrier_t all_have_started;

static void mute_last(struct ls_link **links)
{
    ls_local_mute(links[2]);
}

/* Rank 2 hangs: nobody hears of it, what it takes part in never ends, until rank 0 ends the job. */
static void *wait_for_mute(void *user)
{
    struct rank *rank = user;
    struct ls_link *link = rank->link;
    CHECK(rank, link->calls->tell(link, 0, "alive", 6) == 0);
    size_t bytes[3] = {4, 4, 4}, offset[3] = {0, 4, 8};
    struct ls_link_blocks blocks = {bytes, offset};
    uint32_t mine = 1, all[3] = {0};
    struct ls_link_op *op = NULL;
    CHECK(rank, link->calls->gather(link, LS_CHANNEL_SMALL, &mine, all, &blocks, &op) == 0);
    pthread_barrier_wait(&all_have_started);
    if (link->rank == 0) {
        char message[16];
        int from = -1, heard = 0;
        while (heard < 2) {
            CHECK(rank, link->calls->test(link, &op) == LS_LINK_RUNNING);
            heard += link->calls->hear(link, &from, message, sizeof message) > 0;
            CHECK(rank, from < 2);
        }
        CHECK(rank, !ls_local_ended(link, NULL));
        link->calls->abort(link, 9);
    }
    enum ls_link_result result;
    while ((result = link->calls->test(link, &op)) == LS_LINK_RUNNING)
        sched_yield();
    int code = 0;
    CHECK(rank, result == LS_LINK_FAILED && op != NULL && link->failure[0] != '\0');
    CHECK(rank, ls_local_ended(link, &code) && code == 9);
    return NULL;
}

static void test_a_rank_hangs(void **state)
{
    (void)state;
    assert_int_equal(pthread_barrier_init(&all_have_started, NULL, 3), 0);
    run_ranks(3, mute_last, wait_for_mute);
    pthread_barrier_destroy(&all_have_started);
}

/* A mistake of whoever uses links is found. */
static void test_other_sizes_fail(void **state)
{
    (void)state;
    struct ls_link *links[2];
    struct ls_link_op *ops[2];
    uint32_t data[2][4] = {{0}};
    size_t sizes[2][2] = {{4, 4}, {4, 8}}, offsets[2] = {0, 4};
    assert_int_equal(ls_local_links(2, links, NULL), 0);
    for (int r = 0; r < 2; r++) {
        struct ls_link_blocks blocks = {sizes[r], offsets};
        assert_int_equal(links[r]->calls->gather(links[r], LS_CHANNEL_SMALL, data[r] + r, data[r],
                                                 &blocks, &ops[r]),
                         0);
    }
    assert_int_equal(links[0]->calls->test(links[0], &ops[0]), LS_LINK_FAILED);
    assert_string_not_equal(links[0]->failure, "");
    for (int r = 0; r < 2; r++)
        links[r]->calls->end(links[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_arrive),
        cmocka_unit_test(test_channels_know_nothing_of_each_other),
        cmocka_unit_test(test_messages_come_in_order),
        cmocka_unit_test(test_messages_have_limits),
        cmocka_unit_test(test_delays_are_kept),
        cmocka_unit_test(test_a_rank_hangs),
        cmocka_unit_test(test_other_sizes_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
