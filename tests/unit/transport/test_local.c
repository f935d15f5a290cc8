/* Transports between threads: gathering, exchanging, several operations under way, messages,
 * delays, a rank that hangs, a job that ends. SPDX-License-Identifier: BSD-2-Clause */
#include "transport/local.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "support/transports.h"
#include "support/comm_ranks.h"
#include "support/support.h"

enum { RANKS_MAX = 5 };

struct rank {
    pthread_t thread;
    struct ls_transport *transport;
    int failed; /* the line of the first check that failed; cmocka's are for the main thread */
};

/* Runs `body` in a thread for each rank, and ends the transports. */
static void run_ranks(int size, void (*prepare)(struct ls_transport **), void *(*body)(void *))
{
    struct ls_transport *transports[RANKS_MAX];
    struct rank ranks[RANKS_MAX] = {0};
    struct ls_error error = {0};
    assert_int_equal(ls_local_transports(size, transports, &error), 0);
    if (prepare != NULL)
        prepare(transports);
    for (int r = 0; r < size; r++) {
        ranks[r].transport = transports[r];
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, body, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++)
        assert_int_equal(pthread_join(ranks[r].thread, NULL), 0);
    for (int r = 0; r < size; r++)
        transports[r]->calls->end(transports[r]);
    for (int r = 0; r < size; r++)
        assert_int_equal(ranks[r].failed, 0);
}

static void *transfer(void *user)
{
    struct rank *rank = user;
    CHECK(rank, ls_test_transport_in_turn(rank->transport) == 0);
    CHECK(rank, ls_test_transport_at_once(rank->transport) == 0);
    CHECK(rank, ls_test_transport_large(rank->transport, 1 << 16) == 0);
    return NULL;
}

static void blocks_arrive_for_any_number_of_ranks(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++)
        run_ranks(size, NULL, transfer);
}

static void *use_two_threads(void *user)
{
    struct rank *rank = user;
    CHECK(rank, ls_test_transport_two_threads(rank->transport) == 0);
    return NULL;
}

static void channels_are_independent(void **state)
{
    (void)state;
    run_ranks(4, NULL, use_two_threads);
}

static void *tell_and_hear(void *user)
{
    struct rank *rank = user;
    CHECK(rank, ls_test_transport_messages(rank->transport) == 0);
    return NULL;
}

static void messages_come_in_order(void **state)
{
    (void)state;
    run_ranks(4, NULL, tell_and_hear);
}

static void messages_that_are_too_long_are_refused(void **state)
{
    (void)state;
    struct ls_transport *transports[2];
    char message[LS_TRANSPORT_MESSAGE + 1] = "abcdef";
    int from = -1;
    assert_int_equal(ls_local_transports(2, transports, NULL), 0);
    assert_int_equal(transports[0]->calls->tell(transports[0], 1, message, sizeof message), -1);
    assert_string_not_equal(transports[0]->failure, "");
    assert_int_equal(transports[0]->calls->tell(transports[0], 1, message, 6), 0);
    assert_int_equal(transports[0]->calls->tell(transports[0], 1, message, 6), 0); /* lost */
    memset(message, 0, 7);
    assert_int_equal(transports[1]->calls->hear(transports[1], &from, message, 4), 4);
    assert_string_equal(message, "abcd");
    assert_int_equal(from, 0);
    for (int r = 0; r < 2; r++)
        transports[r]->calls->end(transports[r]);
}

static void await(struct rank *rank, struct ls_transport_op **op)
{
    enum ls_transport_result result;
    while ((result = rank->transport->calls->test(rank->transport, op)) == LS_TRANSPORT_RUNNING)
        sched_yield();
    CHECK(rank, result == LS_TRANSPORT_DONE && *op == NULL);
}

static void slow_down(struct ls_transport **transports)
{
    ls_local_delay(transports[0], 0.002, 1e6);
}

/* A million bytes a second: the second of two transfers waits for the first, a small one goes in
 * between. */
static void *measure(void *user)
{
    static uint32_t data[4][2][5000];
    struct rank *rank = user;
    struct ls_transport *transport = rank->transport;
    uint32_t *all = &data[transport->rank][0][0];
    size_t bytes[2] = {20000, 20000}, offset[2] = {0, 20000}, few[2] = {4, 4}, place[2] = {0, 4};
    struct ls_transport_blocks large = {bytes, offset}, small = {few, place};
    struct ls_transport_op *first, *second, *third;
    double begin = ls_clock();
    const struct ls_transport_calls *calls = transport->calls;
    CHECK(rank, calls->gather(transport, LS_CHANNEL_BULK, all, all, &large, &first) == 0);
    CHECK(rank, calls->exchange(transport, LS_CHANNEL_BULK, all, &large, data[transport->rank + 2],
                                &large, &second) == 0);
    uint32_t words[2] = {0, 0}, mine = (uint32_t)transport->rank + 1;
    CHECK(rank, calls->gather(transport, LS_CHANNEL_SMALL, &mine, words, &small, &third) == 0);
    await(rank, &third);
    CHECK(rank, words[0] == 1 && words[1] == 2);
    CHECK(rank, ls_clock() - begin >= 0.002);
    await(rank, &first);
    CHECK(rank, ls_clock() - begin >= 0.022);
    await(rank, &second);
    CHECK(rank, ls_clock() - begin >= 0.042);
    return NULL;
}

static void transfers_take_the_delay_that_is_set(void **state)
{
    (void)state;
    run_ranks(2, slow_down, measure);
}

static pthread_barrier_t all_have_started;

static void mute_last(struct ls_transport **transports)
{
    ls_local_mute(transports[2]);
}

/* Rank 2 hangs: it sends nothing, and its collectives do not end until rank 0 ends the job. */
static void *wait_for_mute(void *user)
{
    struct rank *rank = user;
    struct ls_transport *transport = rank->transport;
    CHECK(rank, transport->calls->tell(transport, 0, "alive", 6) == 0);
    size_t bytes[3] = {4, 4, 4}, offset[3] = {0, 4, 8};
    struct ls_transport_blocks blocks = {bytes, offset};
    uint32_t mine = 1, all[3] = {0};
    struct ls_transport_op *op = NULL;
    CHECK(rank,
          transport->calls->gather(transport, LS_CHANNEL_SMALL, &mine, all, &blocks, &op) == 0);
    pthread_barrier_wait(&all_have_started);
    if (transport->rank == 0) {
        char message[16];
        int from = -1, heard = 0;
        while (heard < 2) {
            CHECK(rank, transport->calls->test(transport, &op) == LS_TRANSPORT_RUNNING);
            heard += transport->calls->hear(transport, &from, message, sizeof message) > 0;
            CHECK(rank, from < 2);
        }
        CHECK(rank, !ls_local_ended(transport, NULL));
        transport->calls->abort(transport, 9);
    }
    enum ls_transport_result result;
    while ((result = transport->calls->test(transport, &op)) == LS_TRANSPORT_RUNNING)
        sched_yield();
    int code = 0;
    CHECK(rank, result == LS_TRANSPORT_FAILED && op != NULL && transport->failure[0] != '\0');
    CHECK(rank, ls_local_ended(transport, &code) && code == 9);
    return NULL;
}

static void a_mute_rank_keeps_others_waiting_until_the_job_ends(void **state)
{
    (void)state;
    assert_int_equal(pthread_barrier_init(&all_have_started, NULL, 3), 0);
    run_ranks(3, mute_last, wait_for_mute);
    pthread_barrier_destroy(&all_have_started);
}

/* Wrong use of a transport is found. */
static void sizes_that_differ_between_ranks_are_refused(void **state)
{
    (void)state;
    struct ls_transport *transports[2];
    struct ls_transport_op *ops[2];
    uint32_t data[2][4] = {{0}};
    size_t sizes[2][2] = {{4, 4}, {4, 8}}, offsets[2] = {0, 4};
    assert_int_equal(ls_local_transports(2, transports, NULL), 0);
    for (int r = 0; r < 2; r++) {
        struct ls_transport_blocks blocks = {sizes[r], offsets};
        assert_int_equal(transports[r]->calls->gather(transports[r], LS_CHANNEL_SMALL, data[r] + r,
                                                      data[r], &blocks, &ops[r]),
                         0);
    }
    assert_int_equal(transports[0]->calls->test(transports[0], &ops[0]), LS_TRANSPORT_FAILED);
    assert_string_not_equal(transports[0]->failure, "");
    for (int r = 0; r < 2; r++)
        transports[r]->calls->end(transports[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_arrive_for_any_number_of_ranks),
        cmocka_unit_test(channels_are_independent),
        cmocka_unit_test(messages_come_in_order),
        cmocka_unit_test(messages_that_are_too_long_are_refused),
        cmocka_unit_test(transfers_take_the_delay_that_is_set),
        cmocka_unit_test(a_mute_rank_keeps_others_waiting_until_the_job_ends),
        cmocka_unit_test(sizes_that_differ_between_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
