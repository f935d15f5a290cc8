/* What is done to a finished sum of bf16 products: bias, ReLU, rounding to bf16.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_ENDS_H
#define LS_OPS_CPU_VECTOR_BF16_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_bf16_ends {
    bool relu; /* y = y > 0 ? y : slope y; what is not a number stays so */
    float slope;
};

/* Rows of finished sums, with a bias for each (NULL: there is none), and how far it is from a row
 * to the next, and from a column to the next, where they go. What lies between columns stays. */
struct ls_bf16_block {
    const float *bias;
    const float *sums; /* [rows][pitch] */
    size_t pitch, rows, columns, to_pitch, step;
};

/* With n elements of `x`, and y apart from it. `bias` is one for each element; NULL:
 * there is none. */
struct ls_vector_bf16_ends {
    void (*to_bf16)(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                    uint16_t *restrict y, size_t n);
    void (*to_f32)(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                   float *restrict y, size_t n);
    /* The same with one bias for all. */
    void (*row_to_bf16)(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                        uint16_t *restrict y, size_t n);
    void (*row_to_f32)(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                       float *restrict y, size_t n);
    void (*block_to_bf16)(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                          uint16_t *y);
    void (*block_to_f32)(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                         float *y);
    /* y[c * y_pitch + r] = x[r * pitch + c] */
    void (*transpose)(const float *x, size_t pitch, size_t rows, size_t columns, float *y,
                      size_t y_pitch);
};
LS_VECTOR_TABLES(ls_vector_bf16_ends)

#endif
