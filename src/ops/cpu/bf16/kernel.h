/* What the kernels for products of bf16 numbers share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_KERNEL_H
#define LS_OPS_CPU_BF16_KERNEL_H

#include "ir/kernel.h"

enum { LS_BF16_ONE = 0x3f80 }; /* the bits of 1 */

/* `accepts` and `takes_bf16`: all products of layers in bf16. */
bool ls_bf16_accepts(const struct ls_op *op);
/* `layouts`: everything plain; input 1, the weights among others, as bf16. Returns 0. */
int ls_bf16_layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error);

/* The constant of a kernel; what ends with _ are functions, `release_` and `tile_` may be NULL. */
#define LS_BF16_KERNEL(kernel, kind_, name_, accepts_, layouts_, prepare_, release_, run_, tile_)  \
    const struct ls_kernel kernel = {                                                              \
        .kind = kind_,                                                                             \
        .bits = LS_BITS_DEFINED,                                                                   \
        .name = name_,                                                                             \
        .accepts = accepts_,                                                                       \
        .takes_bf16 = accepts_,                                                                    \
        .layouts = layouts_,                                                                       \
        .prepare = prepare_,                                                                       \
        .release = release_,                                                                       \
        .run = run_,                                                                               \
        .tile = tile_,                                                                             \
        .in_place = -1,                                                                            \
    }

#endif
