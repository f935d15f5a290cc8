/* Sums of products of bf16 numbers where one factor is read in place, without panels: both are
 * fp32 by then, and sums are made as ops/cpu/bf16/product.h says.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_DIRECT_H
#define LS_OPS_CPU_VECTOR_BF16_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"
#include "ops/cpu/vector/bf16_windows.h"

/* sum[line, p] over the terms k of w[line, k] x[offset[k] + p], finished. */
struct ls_bf16_over_positions {
    const float *w; /* [lines][depth] */
    size_t lines, depth;
    const float *x;        /* of position 0; a register may be read behind the last */
    const int32_t *offset; /* by term */
    size_t positions;      /* at most ls_vector_bf16_direct.positions */
    float *sums;           /* [lines][pitch]; a register may be written behind the last position */
    size_t pitch;
};

/* sum[line, column] over positions p of x[offset[line] + p] y[p, column], which go on from what is
 * there unless `first`. */
struct ls_bf16_over_lines {
    const float *x;
    const int32_t *offset; /* by line */
    size_t lines;
    const float *y;   /* [positions][pitch] */
    size_t positions; /* a multiple of 32 */
    size_t columns;   /* a multiple of 16 */
    float *sums;      /* [lines][pitch] */
    size_t pitch;     /* at least columns */
    bool first;
};

struct ls_vector_bf16_direct {
    size_t positions; /* that are summed up together: several registers */
    void (*over_positions)(const struct ls_bf16_over_positions *sums);
    void (*over_lines)(const struct ls_bf16_over_lines *sums);
    /* Widens runs of `rows` rows, `pitch` apart; for each row `data` is `plane` further. */
    void (*widen)(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                  size_t rows, float *to, size_t pitch);
    /* to[p * pitch + c] = x[c * plane + p] for `count` positions (a multiple of 32) of channels;
     * zeros up to a multiple of 16 channels. */
    void (*transpose_bf16)(const uint16_t *x, int64_t plane, size_t channels, size_t count,
                           float *to, size_t pitch);
    void (*transpose_f32)(const float *x, int64_t plane, size_t channels, size_t count, float *to,
                          size_t pitch);
};
LS_VECTOR_TABLES(ls_vector_bf16_direct)

#endif
