/* Shuffling without a list: a permutation that is computed where it is asked for.
 *
 * A Feistel network is a bijection of pairs (L, R) whatever its round function F is:
 *   (L, R) -> (R, L xor F(R)).
 * With halves of b bits it permutes 0 .. 4^b - 1; what falls outside 0 .. N-1 is sent through the
 * network again until it falls inside ("cycle walking", Black and Rogaway: Ciphers with arbitrary
 * finite domains; CT-RSA 2002), which leaves a permutation of 0 .. N-1. As 4^b < 4 N, fewer than
 * four rounds of walking are needed on average. Resuming in the middle of an epoch costs nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/order.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"

void ls_order_init(struct ls_order *order, uint64_t key, uint64_t epoch, uint64_t count)
{
    order->count = count;
    order->epoch = epoch;
    order->half_bits = 1;
    while ((UINT64_C(1) << (2 * order->half_bits)) < count)
        order->half_bits++;
    for (int round = 0; round < LS_ORDER_ROUNDS; round += 2) {
        uint32_t word[4];
        ls_philox(key, epoch, (uint64_t)round, word);
        order->round_key[round] = (uint64_t)word[1] << 32 | word[0];
        order->round_key[round + 1] = (uint64_t)word[3] << 32 | word[2];
    }
}

static uint64_t permute(const struct ls_order *order, uint64_t x)
{
    uint64_t mask = (UINT64_C(1) << order->half_bits) - 1;
    uint64_t left = x >> order->half_bits;
    uint64_t right = x & mask;
    for (int round = 0; round < LS_ORDER_ROUNDS; round++) {
        uint64_t mixed = ls_mix(right + order->round_key[round]) >> 32;
        uint64_t next = left ^ (mixed & mask);
        left = right;
        right = next;
    }
    return left << order->half_bits | right;
}

uint64_t ls_order_at(const struct ls_order *order, uint64_t position)
{
    /* The walk ends: it follows a cycle of the network's permutation that contains `position`,
     * which is inside. */
    uint64_t x = permute(order, position);
    while (x >= order->count)
        x = permute(order, x);
    return x;
}

/* The value of "0.9" or ".75", at most 15 digits behind the point; -1 for anything else. (strtod
 * would depend on the locale, and take "nan" and "0x1p-1".) */
static double decimal(const char *text)
{
    const char *point = strchr(text, '.');
    if (point == NULL || point - text > 1 || (point > text && text[0] != '0'))
        return -1;
    double digits = 0, unit = 1;
    for (const char *p = point + 1; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || p - point > 15)
            return -1;
        digits = digits * 10 + (*p - '0');
        unit *= 10;
    }
    return digits / unit; /* two exact numbers: correctly rounded */
}

int ls_split_parse(const char *text, const char *place, struct ls_split *split,
                   struct ls_error *error)
{
    *split = (struct ls_split){.all = true};
    if (text == NULL || text[0] == '\0')
        return 0;
    const char *hint = "write split: \"train:0.9\" for the train layer and \"test:0.9\" for the "
                       "other tenth";
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    split->train = length == 5 && memcmp(text, "train", 5) == 0;
    bool test = length == 4 && memcmp(text, "test", 4) == 0;
    if (!split->train && !test)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, hint,
                       "split \"%.100s\" is not understood", text);
    double fraction = decimal(colon + 1);
    if (!(fraction > 0 && fraction < 1))
        return ls_fail(error, LOCKSTEP_DEFINITION, place, hint,
                       "the fraction of split \"%.100s\" is not a number between 0 and 1", text);
    split->all = false;
    split->fraction = fraction;
    split->threshold = (uint64_t)(fraction * 0x1p32); /* exact up to the cut */
    return 0;
}

bool ls_split_has(const struct ls_split *split, uint64_t record)
{
    if (split->all)
        return true;
    uint64_t key = ls_random_key(0, LS_RANDOM_SPLIT, NULL);
    return (ls_random_u32(key, record, 0) < split->threshold) == split->train;
}

uint32_t *ls_split_records(const struct ls_split *split, uint32_t count, uint32_t *kept)
{
    *kept = 0;
    if (split->all)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        *kept += ls_split_has(split, i);
    uint32_t *records = ls_alloc(*kept, sizeof *records);
    uint32_t next = 0;
    for (uint32_t i = 0; records != NULL && next < *kept; i++)
        if (ls_split_has(split, i))
            records[next++] = i;
    return records;
}
