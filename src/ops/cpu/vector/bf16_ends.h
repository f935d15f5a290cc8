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
 * to the next where they go. */
struct ls_bf16_block {
    const float *bias;
    const float *sums; /* [rows][pitch] */
    size_t pitch, rows, columns, to_pitch;
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
};
LS_VECTOR_TABLES(ls_vector_bf16_ends)

#endif
