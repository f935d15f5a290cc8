/* Numbers of fp32 that a product of bf16 numbers reads, and rounds while it does.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_WIDE_H
#define LS_OPS_CPU_BF16_WIDE_H

#include "ops/cpu/bf16/product.h"

/* A matrix in fp32: lines of an operand are its rows or, by_term, its columns. */
struct ls_bf16_wide {
    const float *data;
    int64_t columns;
};

/* ls_bf16_operand.read of it; `user` is the matrix. */
void ls_bf16_read_wide(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                       int64_t begin, int64_t end, void *to, size_t pitch);

#endif
