/* What families of losses share. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_LOSSES_OPS_H
#define LS_OPS_CUDA_LOSSES_OPS_H

#include "ops/cuda/kernels/losses.h"
#include "ops/cuda/ops.h"

/* A shape around an axis; `typed`: the one that may be bf16 of the values that lie so. */
struct ls_cuda_classes ls_card_classes(const struct ls_value *typed, int axis);

/* The loss of a call, whose constants are weights of classes, if there are any; what FULL and
 * BATCH_SIZE count. */
struct ls_cuda_loss ls_card_loss(const struct ls_card_call *call, int64_t samples,
                                 int64_t positions);

/* For ls_card_op.constants: attr.loss.class_weight. */
const float *ls_card_class_weights(const struct ls_op *op, size_t *count);

#endif
