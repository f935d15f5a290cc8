/* Which record a sample is: the order of an epoch, and which records belong to a split.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_ORDER_H
#define LS_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_ORDER_ROUNDS = 8 };

/* A permutation of 0 .. count-1, different in every epoch. */
struct ls_order {
    uint64_t count;
    uint64_t epoch;
    int half_bits; /* the domain is 4^half_bits >= count */
    uint64_t round_key[LS_ORDER_ROUNDS];
};

/* The permutation of an epoch under a key; `count` >= 1, at most 2^62. */
void ls_order_init(struct ls_order *order, uint64_t key, uint64_t epoch, uint64_t count);
/* Where the permutation takes `position` < count. */
uint64_t ls_order_at(const struct ls_order *order, uint64_t position);

/* A part of the records, chosen by a hash of their index that depends on nothing else: not on the
 * seed, so that no run tests on what another run of the same definition has learned. */
struct ls_split {
    bool all;           /* no split */
    bool train;         /* the records below the threshold; else the others */
    uint64_t threshold; /* fraction x 2^32 */
    double fraction;
};

/* Reads "train:0.9" or "test:0.9"; NULL or "" is everything. The fraction must lie between 0 and 1.
 * A failure has status LOCKSTEP_DEFINITION and `place`. */
int ls_split_parse(const char *text, const char *place, struct ls_split *split,
                   struct ls_error *error);
/* Whether a record belongs to the part. */
bool ls_split_has(const struct ls_split *split, uint64_t record);
/* The indices of the records of 0 .. count-1 that belong, ascending (free with ls_free), and how
 * many; NULL when there is no memory, and for a split that is everything. */
uint32_t *ls_split_records(const struct ls_split *split, uint32_t count, uint32_t *kept);

#endif
