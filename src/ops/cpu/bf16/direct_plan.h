/* What a convolution that is computed directly (direct.h) looks like inside.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_DIRECT_PLAN_H
#define LS_OPS_CPU_BF16_DIRECT_PLAN_H

#include "ops/cpu/bf16/convolution.h"
#include "ops/cpu/bf16/steps.h"
#include "ops/cpu/bf16/units.h"
#include "ops/cpu/vector/bf16_direct.h"

enum {
    LS_BF16_DIRECT_LANES = 16,
    LS_BF16_DIRECT_RUNS = 1024 /* of a plane, at most */
};

/* What words in scratch are: one number as fp32, or two of bf16 (bf16_pairs.h). */
enum ls_bf16_words { LS_BF16_FLOATS, LS_BF16_PAIRED_TERMS, LS_BF16_PAIRED_POSITIONS };

/* How far a block's terms reach along the axis of rows from a position, and its first step. */
struct ls_bf16_reach {
    int64_t low, high, step;
};

/* Rows of positions are along axis `axis`, the first one that there is or the one behind; a row has
 * `row` positions along the axes behind it. */
struct ls_bf16_direct {
    const struct ls_bf16_convolution *convolution;
    struct ls_bf16_windows windows; /* of one group; without data */
    int axis;
    int64_t row;
    int64_t rows;            /* of positions, at a time */
    int64_t before, further; /* rows that windows reach in front of a position's, and in all */
    int64_t fronts;          /* positions along the axis in front of it */
    int64_t variants;        /* ways in which windows stand along the other axes */
    int64_t lines, depth;    /* forward and by data: channels that come out, terms of each */
    int64_t *typical;        /* by variant: a tap that stands so */
    int64_t *variant;        /* by tap */
    /* The axis in front: windows at one position meet `ring` places that follow each other, from
     * `nearest` on. At the next position all but the last are there already, in slots that go
     * round. 1: planes are filled anew for each position. */
    int64_t ring;
    int64_t nearest;
    int64_t *slot; /* by variant: in which of the planes it lies for the first position */
    /* For each state of the ring: by term (tap, channel), and that of the ones behind the planes;
     * or by step. */
    int32_t *offset;
    int64_t offsets;                   /* of one state */
    const struct ls_bf16_pairs *pairs; /* NULL: the processor has none */
    struct ls_bf16_steps *steps;       /* of paired terms */
    struct ls_bf16_reach *reach;       /* by block of them */
    bool skips;                        /* blocks of which all numbers are padding, in some rows */
    enum ls_bf16_words words;
};

/* Words of scratch, which are floats or pairs, and where in it what lies. */
struct ls_bf16_areas {
    size_t planes, ones, weights, sums, y;
};

/* Of some positions in a plane. */
static inline int64_t ls_bf16_direct_words(const struct ls_bf16_direct *direct, int64_t positions)
{
    return direct->words == LS_BF16_PAIRED_POSITIONS ? positions / 2 : positions;
}

/* Not so many words that all planes would lie at the same places of the first cache. */
static inline int64_t ls_bf16_direct_plane(const struct ls_bf16_direct *direct)
{
    const int64_t size =
        ls_bf16_direct_words(direct, (direct->rows + direct->further) * direct->row);
    return size % 256 == 0 ? size + LS_BF16_DIRECT_LANES : size;
}

/* That are summed up together, at most. */
static inline int64_t ls_bf16_direct_positions_max(const struct ls_bf16_direct *direct)
{
    const struct ls_bf16_pairs *pairs =
        direct->words == LS_BF16_PAIRED_TERMS ? direct->pairs : NULL;
    return (int64_t)(pairs != NULL ? pairs->positions : ls_vector_bf16_direct()->positions);
}

/* Planes of each variant. */
static inline int64_t ls_bf16_direct_planes(const struct ls_bf16_direct *direct)
{
    return direct->words == LS_BF16_PAIRED_TERMS ? direct->steps->planes : direct->windows.channels;
}

/* In which of the planes a variant lies for positions at `front`. */
static inline int64_t ls_bf16_direct_slot(const struct ls_bf16_direct *direct, int64_t variant,
                                          int64_t front)
{
    const int64_t slot = direct->slot[variant], each = direct->variants / direct->ring;
    return (slot / each + front) % direct->ring * each + slot % each;
}

/* Blocks [begin, end) of paired terms: without those in front and behind of which rows [first,
 * last] meet padding alone, but at least one. */
struct ls_bf16_some {
    int64_t begin, end;
};
struct ls_bf16_some ls_bf16_direct_blocks(const struct ls_bf16_direct *direct, int64_t first,
                                          int64_t last);
/* Fills `areas`; returns the words of all. */
size_t ls_bf16_direct_find(const struct ls_bf16_direct *direct, struct ls_bf16_areas *areas);

static inline size_t ls_bf16_rounded_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
