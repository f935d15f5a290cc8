/* How values lie for kernels of this device: plain or channels-last, fp32 or bf16.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_VALUES_H
#define LS_OPS_CUDA_VALUES_H

#include "ops/cuda/kernels/elements.h"
#include "ops/cuda/ops.h"

/* Whether the channels of a value, of three axes or more, are last in memory. (With two they are so
 * in Caffe's order, too.) */
bool ls_card_last(const struct ls_value *value);
bool ls_card_is_bf16(const struct ls_value *value);

/* A value's shape around some axes as they lie in memory. Of a value in channels-last these are
 * one axis, or all from axis 1 on or all in front of one. */
struct ls_cuda_axes ls_card_axes(const struct ls_value *value, int axis, int axes);
/* The order of axes in memory: axis a of memory is axis order[a] of the shape. */
void ls_card_axis_order(const struct ls_value *value, int order[LS_RANK_MAX]);

/* For `layouts` of ops: that of the value that an output is the gradient of, else that of input 0;
 * plain, if it is none that the kernels here know. */
const struct ls_layout *ls_card_layout(const struct ls_op *op, const struct ls_op_layouts *layouts);
/* All values lie so, but inputs and outputs with bits here, which are plain. */
void ls_card_lay_out(const struct ls_op *op, struct ls_op_layouts *layouts,
                     const struct ls_layout *layout, unsigned plain_in, unsigned plain_out);
/* `layouts` of ops all of whose values lie as ls_card_layout says. */
int ls_card_follow(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error);

/* For `takes_bf16`: all floating-point values are bf16, but inputs and outputs with bits here,
 * which are fp32. */
bool ls_card_all_bf16(const struct ls_op *op, unsigned wide_in, unsigned wide_out);
/* `takes_bf16` of ops without such exceptions. */
bool ls_card_takes_bf16(const struct ls_op *op);

#endif
