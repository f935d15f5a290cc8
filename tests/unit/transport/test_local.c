/* Links between threads: gathering, exchanging, several operations under way, messages, delays, a
 * rank that hangs, a job that ends. SPDX-License-Identifier: BSD-2-Clause */
#include "transport/local.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "support/support.h"

enum { RANKS_MAX = 5, ROUNDS = 40, UNDER_WAY = 4, BLOCK_MAX = 64 };

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

/* The words of block (from, to) of a round, some of them none. */
static size_t words(int from, int to, int round)
{
    return (size_t)(from * 7 + to * 3 + round) % 5 == 0
               ? 0
               : (size_t)(from * 5 + to * 11 + round * 3) % BLOCK_MAX;
}
static uint32_t word(int from, int to, int round, size_t i)
{
    return (uint32_t)(from * 1000003 + to * 10007 + round * 101) + (uint32_t)i * 2654435761u;
}

/* One operation with its memory. Gathered blocks are those to rank 0. */
struct transfer {
    bool gather;
    uint32_t *out, *in;
    size_t out_bytes[RANKS_MAX], out_offset[RANKS_MAX], in_bytes[RANKS_MAX], in_offset[RANKS_MAX];
    struct ls_link_op *op;
};

static struct transfer start(struct rank *rank, enum ls_channel channel, bool gather, int round)
{
    struct ls_link *link = rank->link;
    size_t room = (size_t)link->size * BLOCK_MAX;
    struct transfer transfer = {.gather = gather,
                                .out = calloc(room, sizeof(uint32_t)),
                                .in = calloc(room, sizeof(uint32_t))};
    size_t out = 0, in = 0;
    for (int r = 0; r < link->size; r++) {
        size_t sent = words(link->rank, gather ? 0 : r, round);
        for (size_t i = 0; i < sent; i++)
            transfer.out[out / 4 + i] = word(link->rank, gather ? 0 : r, round, i);
        transfer.out_bytes[r] = 4 * sent;
        transfer.out_offset[r] = out;
        out += gather ? 0 : 4 * sent;
        transfer.in_bytes[r] = 4 * words(r, gather ? 0 : link->rank, round);
        transfer.in_offset[r] = in;
        in += transfer.in_bytes[r] + 4 * (size_t)(r % 2); /* gaps are allowed */
    }
    struct ls_link_blocks out_blocks = {transfer.out_bytes, transfer.out_offset};
    struct ls_link_blocks in_blocks = {transfer.in_bytes, transfer.in_offset};
    const struct ls_link_calls *calls = link->calls;
    int status;
    if (gather) {
        uint32_t *mine = transfer.out;
        uint32_t *place = transfer.in + transfer.in_offset[link->rank] / 4;
        if (round % 2 == 0) /* already at its place */
            mine = memcpy(place, mine, transfer.in_bytes[link->rank]);
        status = calls->gather(link, channel, mine, transfer.in, &in_blocks, &transfer.op);
    } else {
        status = calls->exchange(link, channel, transfer.out, &out_blocks, transfer.in, &in_blocks,
                                 &transfer.op);
    }
    CHECK(rank, status == 0 && transfer.op != NULL);
    /* The lists are read before the call returns. */
    memset(transfer.out_bytes, 0xff, sizeof transfer.out_bytes);
    memset(transfer.out_offset, 0xff, sizeof transfer.out_offset);
    return transfer;
}

static void await(struct rank *rank, struct ls_link_op **op)
{
    enum ls_link_result result;
    while ((result = rank->link->calls->test(rank->link, op)) == LS_LINK_RUNNING)
        sched_yield();
    CHECK(rank, result == LS_LINK_DONE && *op == NULL);
}

static void finish(struct rank *rank, struct transfer *transfer, int round)
{
    struct ls_link *link = rank->link;
    int to = transfer->gather ? 0 : link->rank;
    await(rank, &transfer->op);
    for (int r = 0; r < link->size; r++) {
        const uint32_t *block = transfer->in + transfer->in_offset[r] / 4;
        CHECK(rank, transfer->in_bytes[r] == 4 * words(r, to, round));
        for (size_t i = 0; i < words(r, to, round); i++)
            CHECK(rank, block[i] == word(r, to, round, i));
        CHECK(rank, r % 2 == 0 || block[words(r, to, round)] == 0); /* the gap */
    }
    free(transfer->out);
    free(transfer->in);
}

static void *transfer_in_turn(void *user)
{
    struct rank *rank = user;
    for (int round = 0; round < ROUNDS; round++) {
        struct transfer transfer = start(rank, LS_CHANNEL_SMALL, round % 3 == 0, round);
        finish(rank, &transfer, round);
    }
    return NULL;
}

static void test_blocks_arrive(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++)
        run_ranks(size, NULL, transfer_in_turn);
}

/* Several are under way on both channels, and are asked about in another order, which is another
 * one for each rank. */
static void *transfer_at_once(void *user)
{
    struct rank *rank = user;
    for (int round = 0; round < ROUNDS; round++) {
        struct transfer bulk[UNDER_WAY];
        for (int i = 0; i < UNDER_WAY; i++)
            bulk[i] = start(rank, LS_CHANNEL_BULK, i % 2 == 0, round + i);
        struct transfer small = start(rank, LS_CHANNEL_SMALL, round % 2 == 0, round);
        if (round % 2 == 0)
            finish(rank, &small, round);
        for (int i = 0; i < UNDER_WAY; i++) {
            int which = (i + rank->link->rank + round) % UNDER_WAY;
            finish(rank, &bulk[which], round + which);
        }
        if (round % 2 != 0)
            finish(rank, &small, round);
    }
    return NULL;
}

static void test_several_are_under_way(void **state)
{
    (void)state;
    run_ranks(3, NULL, transfer_at_once);
    run_ranks(RANKS_MAX, NULL, transfer_at_once);
}

/* Two threads of a rank: one for each channel. */
static void *transfer_bulk(void *user)
{
    struct rank *rank = user;
    for (int round = 0; round < ROUNDS; round++) {
        struct transfer transfer = start(rank, LS_CHANNEL_BULK, round % 2 == 0, round);
        finish(rank, &transfer, round);
    }
    return NULL;
}
static void *transfer_by_two_threads(void *user)
{
    struct rank *rank = user;
    struct rank courier = {.link = rank->link};
    CHECK(rank, pthread_create(&courier.thread, NULL, transfer_bulk, &courier) == 0);
    transfer_in_turn(rank);
    CHECK(rank, pthread_join(courier.thread, NULL) == 0);
    CHECK(rank, courier.failed == 0);
    return NULL;
}

static void test_channels_know_nothing_of_each_other(void **state)
{
    (void)state;
    run_ranks(4, NULL, transfer_by_two_threads);
}

/* Everybody tells everybody numbers, itself too; they come in order. */
static void *tell_and_hear(void *user)
{
    struct rank *rank = user;
    struct ls_link *link = rank->link;
    int heard[RANKS_MAX] = {0};
    int missing = link->size * ROUNDS;
    char message[LS_LINK_MESSAGE];
    for (int round = 0; round < ROUNDS || missing > 0; round++) {
        for (int r = 0; round < ROUNDS && r < link->size; r++) {
            memset(message, round, sizeof message);
            size_t bytes = round == ROUNDS - 1 ? sizeof message : (size_t)(round + 1);
            CHECK(rank, link->calls->tell(link, r, message, bytes) == 0);
        }
        int from = -1;
        int bytes = link->calls->hear(link, &from, message, sizeof message);
        if (bytes == 0)
            sched_yield();
        if (bytes <= 0)
            continue;
        int number = heard[from]++;
        missing--;
        CHECK(rank, bytes == (number == ROUNDS - 1 ? (int)sizeof message : number + 1));
        CHECK(rank, message[0] == number && message[bytes - 1] == number);
    }
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
    struct transfer transfer = start(rank, LS_CHANNEL_SMALL, true, 1);
    if (link->rank == 0) {
        char message[16];
        int from = -1, heard = 0;
        while (heard < 2) {
            CHECK(rank, link->calls->test(link, &transfer.op) == LS_LINK_RUNNING);
            heard += link->calls->hear(link, &from, message, sizeof message) > 0;
            CHECK(rank, from < 2);
        }
        CHECK(rank, !ls_local_ended(link, NULL));
        link->calls->abort(link, 9);
    }
    enum ls_link_result result;
    while ((result = link->calls->test(link, &transfer.op)) == LS_LINK_RUNNING)
        sched_yield();
    int code = 0;
    CHECK(rank, result == LS_LINK_FAILED && transfer.op != NULL && link->failure[0] != '\0');
    CHECK(rank, ls_local_ended(link, &code) && code == 9);
    free(transfer.out);
    free(transfer.in);
    return NULL;
}

static void test_a_rank_hangs(void **state)
{
    (void)state;
    run_ranks(3, mute_last, wait_for_mute);
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
        cmocka_unit_test(test_several_are_under_way),
        cmocka_unit_test(test_channels_know_nothing_of_each_other),
        cmocka_unit_test(test_messages_come_in_order),
        cmocka_unit_test(test_messages_have_limits),
        cmocka_unit_test(test_delays_are_kept),
        cmocka_unit_test(test_a_rank_hangs),
        cmocka_unit_test(test_other_sizes_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
