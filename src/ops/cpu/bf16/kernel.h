/* What the kernels for products of bf16 numbers, and of fp32 with the algorithm PORTABLE, share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_KERNEL_H
#define LS_OPS_CPU_BF16_KERNEL_H

#include "ir/kernel.h"

enum { LS_BF16_ONE = 0x3f80 }; /* the bits of 1 */

/* `accepts`: all products of layers in bf16, those whose algorithm is PORTABLE, and convolutions
 * that oneDNN is bad at (ops/cpu/matrix_products.h). */
bool ls_bf16_accepts(const struct ls_op *op);
/* `takes_bf16`: those in bf16. */
bool ls_bf16_takes(const struct ls_op *op);
/* `layouts`: everything plain; input 1, the weights among others, as bf16 if the op is. Returns 0.
 */
int ls_bf16_layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error);

/* Element `index` of bf16 or fp32 numbers. */
static inline const void *ls_bf16_element(const void *data, bool f32, int64_t index)
{
    return f32 ? (const void *)((const float *)data + index)
               : (const void *)((const uint16_t *)data + index);
}

/* Elements [at, at + count) become 1. */
void ls_bf16_put_ones(bool f32, void *to, size_t at, size_t count);

/* The constant of a kernel; what ends with _ are functions, `release_` and `tile_` may be NULL. */
#define LS_BF16_KERNEL(kernel, kind_, name_, accepts_, layouts_, prepare_, release_, run_, tile_)  \
    const struct ls_kernel kernel = {                                                              \
        .kind = kind_,                                                                             \
        .bits = LS_BITS_DEFINED,                                                                   \
        .name = name_,                                                                             \
        .accepts = accepts_,                                                                       \
        .takes_bf16 = ls_bf16_takes,                                                               \
        .layouts = layouts_,                                                                       \
        .prepare = prepare_,                                                                       \
        .release = release_,                                                                       \
        .run = run_,                                                                               \
        .tile = tile_,                                                                             \
        .in_place = -1,                                                                            \
    }

#endif
