/* Checks of transports. See support/transports.h. cmocka's own are for one thread, hence `failed`.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/transports.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 16, ROUNDS = 40, UNDER_WAY = 4, BLOCK_MAX = 64 };

struct rank {
    struct ls_transport *transport;
    int failed; /* the line of the first check that failed */
};

#define CHECK(rank, condition)                                                                     \
    do {                                                                                           \
        if (!(condition) && (rank)->failed == 0)                                                   \
            (rank)->failed = __LINE__;                                                             \
    } while (0)

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
    int round;
    uint32_t *out, *in;
    size_t in_bytes[RANKS_MAX], in_offset[RANKS_MAX];
    struct ls_transport_op *op;
};

static void begin(struct rank *rank, struct transfer *transfer, enum ls_channel channel,
                  bool gather, int round)
{
    struct ls_transport *transport = rank->transport;
    size_t room = (size_t)transport->size * BLOCK_MAX;
    size_t out_bytes[RANKS_MAX], out_offset[RANKS_MAX], out = 0, in = 0;
    *transfer = (struct transfer){.gather = gather,
                                  .round = round,
                                  .out = calloc(room, sizeof(uint32_t)),
                                  .in = calloc(room, sizeof(uint32_t))};
    for (int r = 0; r < transport->size; r++) {
        int to = gather ? 0 : r;
        size_t sent = words(transport->rank, to, round);
        for (size_t i = 0; i < sent; i++)
            transfer->out[out / 4 + i] = word(transport->rank, to, round, i);
        out_bytes[r] = 4 * sent;
        out_offset[r] = out;
        out += gather ? 0 : 4 * sent;
        transfer->in_bytes[r] = 4 * words(r, gather ? 0 : transport->rank, round);
        transfer->in_offset[r] = in;
        in += transfer->in_bytes[r] + 4 * (size_t)(r % 2); /* gaps are allowed */
    }
    struct ls_transport_blocks outs = {out_bytes, out_offset};
    struct ls_transport_blocks ins = {transfer->in_bytes, transfer->in_offset};
    const uint32_t *mine = transfer->out;
    if (gather && round % 2 == 0) /* already at its place */
        mine = memcpy(transfer->in + transfer->in_offset[transport->rank] / 4, mine,
                      transfer->in_bytes[transport->rank]);
    int status = gather ? transport->calls->gather(transport, channel, mine, transfer->in, &ins,
                                                   &transfer->op)
                        : transport->calls->exchange(transport, channel, transfer->out, &outs,
                                                     transfer->in, &ins, &transfer->op);
    CHECK(rank, status == 0 && transfer->op != NULL);
    /* The lists have been read: they may go. */
    memset(out_bytes, 0xff, sizeof out_bytes);
    memset(out_offset, 0xff, sizeof out_offset);
}

static void await(struct rank *rank, struct ls_transport_op **op)
{
    enum ls_transport_result result;
    while ((result = rank->transport->calls->test(rank->transport, op)) == LS_TRANSPORT_RUNNING)
        sched_yield();
    CHECK(rank, result == LS_TRANSPORT_DONE && *op == NULL);
}

static void finish(struct rank *rank, struct transfer *transfer)
{
    struct ls_transport *transport = rank->transport;
    int to = transfer->gather ? 0 : transport->rank, round = transfer->round;
    await(rank, &transfer->op);
    for (int r = 0; r < transport->size; r++) {
        const uint32_t *block = transfer->in + transfer->in_offset[r] / 4;
        size_t count = words(r, to, round);
        CHECK(rank, transfer->in_bytes[r] == 4 * count);
        for (size_t i = 0; i < count; i++)
            CHECK(rank, block[i] == word(r, to, round, i));
        CHECK(rank, r % 2 == 0 || block[count] == 0); /* the gap */
    }
    free(transfer->out);
    free(transfer->in);
}

static void transfer_in_turn(struct rank *rank, enum ls_channel channel)
{
    struct transfer transfer;
    for (int round = 0; round < ROUNDS && rank->failed == 0; round++) {
        begin(rank, &transfer, channel, round % 3 == 0, round);
        finish(rank, &transfer);
    }
}

int ls_test_transport_in_turn(struct ls_transport *transport)
{
    struct rank rank = {.transport = transport};
    transfer_in_turn(&rank, LS_CHANNEL_SMALL);
    return rank.failed;
}

int ls_test_transport_at_once(struct ls_transport *transport)
{
    struct rank rank = {.transport = transport};
    for (int round = 0; round < ROUNDS && rank.failed == 0; round++) {
        struct transfer bulk[UNDER_WAY], small;
        for (int i = 0; i < UNDER_WAY; i++)
            begin(&rank, &bulk[i], LS_CHANNEL_BULK, i % 2 == 0, round + i);
        begin(&rank, &small, LS_CHANNEL_SMALL, round % 2 == 0, round);
        if (round % 2 == 0)
            finish(&rank, &small);
        for (int i = 0; i < UNDER_WAY; i++)
            finish(&rank, &bulk[(i + transport->rank + round) % UNDER_WAY]);
        if (round % 2 != 0)
            finish(&rank, &small);
    }
    return rank.failed;
}

static void *transfer_bulk(void *user)
{
    transfer_in_turn(user, LS_CHANNEL_BULK);
    return NULL;
}

int ls_test_transport_two_threads(struct ls_transport *transport)
{
    struct rank rank = {.transport = transport}, progress_thread = {.transport = transport};
    pthread_t thread;
    if (pthread_create(&thread, NULL, transfer_bulk, &progress_thread) != 0)
        return __LINE__;
    transfer_in_turn(&rank, LS_CHANNEL_SMALL);
    CHECK(&rank, ls_test_transport_messages(transport) == 0);
    pthread_join(thread, NULL);
    return rank.failed != 0 ? rank.failed : progress_thread.failed;
}

int ls_test_transport_large(struct ls_transport *transport, size_t bytes)
{
    struct rank rank = {.transport = transport};
    size_t sizes[RANKS_MAX], offsets[RANKS_MAX], count = bytes / 4, size = (size_t)transport->size;
    uint32_t *out = malloc(size * bytes), *in = calloc(size, bytes), *all = calloc(size, bytes);
    for (size_t r = 0; r < size; r++) {
        sizes[r] = bytes;
        offsets[r] = r * bytes;
        for (size_t i = 0; i < count; i++)
            out[r * count + i] = word(transport->rank, (int)r, 0, i);
    }
    struct ls_transport_blocks blocks = {sizes, offsets};
    struct ls_transport_op *first = NULL, *second = NULL;
    CHECK(&rank, transport->calls->exchange(transport, LS_CHANNEL_BULK, out, &blocks, in, &blocks,
                                            &first) == 0);
    CHECK(&rank,
          transport->calls->gather(transport, LS_CHANNEL_BULK, out, all, &blocks, &second) == 0);
    await(&rank, &first);
    await(&rank, &second);
    for (size_t r = 0; r < size; r++)
        for (size_t i = 0; i < count; i++)
            CHECK(&rank, in[r * count + i] == word((int)r, transport->rank, 0, i) &&
                             all[r * count + i] == word((int)r, 0, 0, i));
    free(out);
    free(in);
    free(all);
    return rank.failed;
}

static void meet(struct rank *rank)
{
    struct transfer transfer;
    begin(rank, &transfer, LS_CHANNEL_SMALL, true, 0);
    finish(rank, &transfer);
}

int ls_test_transport_messages(struct ls_transport *transport)
{
    struct rank rank = {.transport = transport};
    int heard[RANKS_MAX] = {0}, missing = transport->size * ROUNDS;
    char message[LS_TRANSPORT_MESSAGE];
    for (int round = 0; (round < ROUNDS || missing > 0) && rank.failed == 0; round++) {
        for (int r = 0; round < ROUNDS && r < transport->size; r++) {
            memset(message, round, sizeof message);
            size_t bytes = round == ROUNDS - 1 ? sizeof message : (size_t)(round + 1);
            CHECK(&rank, transport->calls->tell(transport, r, message, bytes) == 0);
        }
        int from = -1;
        int bytes = transport->calls->hear(transport, &from, message, sizeof message);
        CHECK(&rank, bytes >= 0);
        if (bytes <= 0) {
            sched_yield();
            continue;
        }
        int number = heard[from]++;
        missing--;
        CHECK(&rank, bytes == (number == ROUNDS - 1 ? (int)sizeof message : number + 1));
        CHECK(&rank, message[0] == number && message[bytes - 1] == number);
    }
    meet(&rank); /* what is told from now on is none of these */
    return rank.failed;
}
