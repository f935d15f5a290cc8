/* Convolutions of bf16 or fp32 numbers of each channel by itself: sixteen channels are the lanes of
 * sums. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_DEPTHWISE_H
#define LS_OPS_CPU_VECTOR_BF16_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

enum { LS_BF16_CHANNELS = 16 };

/* What windows at positions meet. A position's window begins at place at[p] of a padded plane, and
 * weight k meets the place offset[k] further; a place has one number for each channel. */
struct ls_bf16_meetings {
    const int32_t *at;
    size_t positions;
    const int32_t *offset; /* by tap */
    size_t taps;
    bool f32; /* numbers are fp32, else bf16 widened */
};

/* Numbers of a position are [LS_BF16_CHANNELS]. */
struct ls_vector_bf16_depthwise {
    /* Widens `count` numbers of up to 16 channels, which are `plane` apart, to places that follow
     * each other; zeros for channels that are missing. */
    void (*spread)(const uint16_t *x, size_t plane, size_t channels, size_t count, float *places);
    void (*spread_floats)(const float *x, size_t plane, size_t channels, size_t count,
                          float *places);
    /* lines[c * pitch + p] = sums[p][c] for `count` positions and up to 16 channels; a register may
     * be written behind the last position. */
    void (*gather)(const float *sums, size_t channels, size_t count, float *lines, size_t pitch);
    /* sums[p] = the chain over the taps, in their order, from +0, of x w[tap]; then + 0. */
    void (*chains)(const struct ls_bf16_meetings *meetings, const float *x, const float *w,
                   float *sums);
    /* Goes on with the sums over positions of x dy, in blocks of 32 terms (ops/cpu/bf16/product.h),
     * of which the first is number `begin`. sums [tap][even, odd, c]; behind the last tap those of
     * dy alone. */
    void (*blocks)(const struct ls_bf16_meetings *meetings, const float *x, const float *dy,
                   size_t begin, float *sums);
    /* Ends the last block, of `terms` in all, and adds +0: c of all taps + 1. */
    void (*end_blocks)(size_t taps, size_t terms, float *sums);
};
LS_VECTOR_TABLES(ls_vector_bf16_depthwise)

#endif
