/* Convolutions of bf16 or fp32 numbers without strides and of so few channels that copying what
 * windows meet would take as long as multiplying it.
 *
 * A plane is widened once for each way in which windows stand along its inner axes; then what a
 * weight meets lies in order for as many rows of positions as are there, and is read in place.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_DIRECT_H
#define LS_OPS_CPU_BF16_DIRECT_H

#include "ops/cpu/bf16/convolution.h"

struct ls_bf16_direct;

/* *direct becomes NULL where a convolution is better a product of matrices, and where this fails.
 * `convolution` outlives it. */
int ls_bf16_direct_new(const struct ls_bf16_convolution *convolution,
                       struct ls_bf16_direct **direct, struct ls_error *error);
void ls_bf16_direct_free(struct ls_bf16_direct *direct);            /* NULL: nothing */
size_t ls_bf16_direct_scratch(const struct ls_bf16_direct *direct); /* bytes, of either below */

/* Forward or by data: from x to y, or from y to x. The weights are [channel of y][tap][channel of
 * x]; bias may be NULL. */
void ls_bf16_direct_positions(const struct ls_bf16_direct *direct, const void *from, const void *w,
                              const float *bias, void *to, bool bf16, void *scratch);
/* By weights, which are [channel of y][channel of x][tap]; db may be NULL. */
void ls_bf16_direct_weights(const struct ls_bf16_direct *direct, const void *x, const void *y,
                            float *dw, float *db, void *scratch);

#endif
