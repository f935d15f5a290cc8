/* The windows of a convolution as lines and terms of a product of bf16 or fp32 numbers, without a
 * matrix of them in memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_WINDOWS_H
#define LS_OPS_CPU_BF16_WINDOWS_H

#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/vector/bf16_windows.h"

/* A matrix with a row for each weight of a window (k, c), k * channels + c, or c * taps + k if
 * `by_channel`, and a column for each position of a grid in each sample, in their order. Position p
 * of sample n meets there the number of channel c at p step + offset[k], +0 outside of what there
 * is. */
struct ls_bf16_windows {
    const void *data; /* channel 0 of sample 0 */
    bool f32;         /* it is fp32, else bf16 */
    int64_t samples;
    int64_t sample, plane; /* elements from a sample, and from a channel, to the next */
    int64_t extent[3];     /* of a plane; the last axis is contiguous */
    int64_t grid[3], step[3];
    int64_t channels, taps;
    const int64_t (*offset)[3]; /* by tap */
    bool by_channel;
    bool ones; /* one more row, of ones */
};

/* Behind the channels. */
static inline void ls_bf16_next_group(struct ls_bf16_windows *windows)
{
    windows->data =
        ls_bf16_element(windows->data, windows->f32, windows->channels * windows->plane);
}

/* An operand whose lines are columns, and whose terms are rows; it is by_term. */
struct ls_bf16_operand ls_bf16_columns(const struct ls_bf16_windows *windows);
/* An operand whose lines are rows, and whose terms are columns; it is not by_term. */
struct ls_bf16_operand ls_bf16_rows(const struct ls_bf16_windows *windows);

/* What the positions of `rows` places along `axis` meet there, with all that lie along the axes
 * behind: a run for each row of the last axis. The first of them meets the place `stands`, which
 * may lie outside of what there is. For steps of 1. Returns how many runs. */
size_t ls_bf16_row_runs(const struct ls_bf16_windows *windows, int axis, int64_t rows,
                        const int64_t stands[3], struct ls_bf16_run *run);

static inline int64_t ls_bf16_positions(const struct ls_bf16_windows *windows)
{
    return windows->samples * windows->grid[0] * windows->grid[1] * windows->grid[2];
}

#endif
