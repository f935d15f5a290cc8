/* Sync points: where the micro-batches of a batch exchange small numbers.
 *
 * Ops leave partial results, a row of doubles for each part of a micro-batch (a part is what it
 * shares with one group of samples). At the sync point the rows of all parts of a group are merged,
 * in the order of the micro-batches, along the fixed binary tree; ops behind it read the result.
 * Where every group lies within a micro-batch nothing is exchanged, and the bits are the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_SYNC_H
#define LS_IR_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

struct ls_layer;
struct ls_parameter;

enum ls_sync_kind {
    /* Mean and variance of each channel. Row: mean [Cp], M2 [Cp] (the sum of squared distances from
     * that mean), then the count of values behind each; Cp is the number of channels rounded up to
     * 16. Merged, floats: mean [Cp], rest [Cp] (mean + rest is the mean to double the precision),
     * 1 / sqrt(variance + eps) [Cp], variance [Cp]. Padding holds zeros. Chan, Golub, LeVeque:
     * Updating formulae and a pairwise algorithm for computing sample variances; 1979. */
    LS_SYNC_MOMENTS,
    /* Two sums of each channel. Row: sum dz [Cp], sum dz x^ [Cp], count. Merged, floats: the sums
     * divided by the count, [Cp] each. Padding holds zeros. */
    LS_SYNC_SUMS,
    /* A count of labels that depend on learned parameters: the record of the micro-batch has it;
     * merged over the whole update it becomes a normalizer. */
    LS_SYNC_COUNT
};

/* The moving averages that moments advance, once for each group, in order, after the update:
 *   mean = keep mean + add batch mean;  variance = keep variance + add m / (m - 1) batch variance
 *   factor = keep factor + add
 * with m the count of the group's values (1: no correction). */
struct ls_averages {
    struct ls_parameter *mean, *variance; /* [C]; NULL: none are kept */
    struct ls_parameter *factor;          /* [1], or NULL */
    float keep, add;
};

struct ls_sync {
    enum ls_sync_kind kind;
    const struct ls_layer *layer;
    bool backward;
    int grouping;                /* index into graph->groupings; -1: the whole update (COUNT) */
    int64_t channels;            /* MOMENTS, SUMS */
    float eps;                   /* MOMENTS */
    struct ls_averages averages; /* MOMENTS */
    int normalizer;              /* COUNT: index of the normalizer */
};

enum { LS_SYNC_BLOCK = 16, LS_SYNC_ROW_END = 8 };

/* Channels rounded up. */
LS_HOST_DEVICE int64_t ls_sync_round(int64_t channels)
{
    return (channels + LS_SYNC_BLOCK - 1) / LS_SYNC_BLOCK * LS_SYNC_BLOCK;
}

/* Cp: its channels rounded up. */
static inline int64_t ls_sync_padded(const struct ls_sync *sync)
{
    return ls_sync_round(sync->channels);
}

/* Doubles in a row of partial results; row[2 Cp] is the count. */
static inline int64_t ls_sync_row(const struct ls_sync *sync)
{
    return sync->kind == LS_SYNC_COUNT ? 0 : 2 * ls_sync_padded(sync) + LS_SYNC_ROW_END;
}

/* Floats that are merged for a group. */
static inline int64_t ls_sync_merged(const struct ls_sync *sync)
{
    return sync->kind == LS_SYNC_COUNT
               ? 0
               : (sync->kind == LS_SYNC_MOMENTS ? 4 : 2) * ls_sync_padded(sync);
}

/* What a micro-batch shares with a group. */
struct ls_part {
    int64_t first, count; /* samples of the micro-batch */
    int64_t group;        /* its number in the batch */
    int64_t merged;       /* where what is merged for its group lies, in groups */
};

struct ls_parts {
    const struct ls_part *part;
    int count;
};

#endif
