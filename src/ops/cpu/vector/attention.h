/* The softmax of attention, over tiles of scores: some queries by some keys of a block
 * (docs/numerics.md, section 25). The same bits on every instruction set.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_ATTENTION_H
#define LS_OPS_CPU_VECTOR_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/attention_power.h"
#include "ops/cpu/isa.h"

/* Rows of numbers, of which `columns` count; there is room for a multiple of 16. */
struct ls_attention_tile {
    float *x;
    size_t pitch, rows, columns;
};

/* Which pairs of a tile count, and what is added to the scores. Pointers may be NULL. */
struct ls_attention_hidden {
    bool cut; /* `begin` and `end` hide something */
    int16_t begin[LS_ATTENTION_BLOCK], end[LS_ATTENTION_BLOCK]; /* columns, by row */
    const float *shown;                                         /* by column; 0: the key is none */
    const float *mask;  /* rows, `mask_pitch` apart; 0: the pair is none */
    const float *added; /* the same; it is added */
    size_t mask_pitch;
    const float *segment, *other; /* of keys, by column; of queries, by row */
};

/* What a query has seen so far, by row of a tile. */
struct ls_attention_state {
    float largest[LS_ATTENTION_BLOCK], sum[LS_ATTENTION_BLOCK];
    float factor[LS_ATTENTION_BLOCK]; /* of what there was before the last tile */
};

struct ls_vector_attention {
    /* x = scale x + added, and -inf where a pair does not count, also behind the columns. */
    void (*scores)(const struct ls_attention_tile *tile, float scale,
                   const struct ls_attention_hidden *hidden);
    /* x = exp(x - the largest so far), 0 behind the columns; advances the state. Returns whether a
     * factor is another than 1. */
    bool (*weights)(const struct ls_attention_tile *tile, struct ls_attention_state *state);
    /* x = exp(x - log_sum), by row. */
    void (*recompute)(const struct ls_attention_tile *tile, const float *log_sum);
    /* dx = weight (dx - dot), by row; both have the same pitch. */
    void (*slopes)(const struct ls_attention_tile *dx, const float *weight, const float *dot);
    /* Rows of n numbers: x = factor[row] x. */
    void (*rescale)(float *x, size_t pitch, size_t rows, size_t n, const float *factor);
    /* The sum of a[i] b[i] in lanes; `bf16`: of such numbers. */
    float (*dot)(const void *a, const void *b, bool bf16, size_t n);
};
LS_VECTOR_TABLES(ls_vector_attention)

#endif
