/* The loss of scores that are a product. See ops/cuda/ops.h and device/linear_loss.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/linear_loss.h"

#include "ops/cuda/kernels/linear_loss.h"
#include "ops/cuda/ops.h"

static struct ls_cuda_linear sizes_of(const struct ls_op *op)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    return (struct ls_cuda_linear){.rows = attr->rows,
                                   .inputs = attr->inputs,
                                   .classes = attr->classes,
                                   .most = ls_linear_loss_block(attr->classes),
                                   .bf16 = op->bf16,
                                   .x_bf16 = op->input[LS_LINEAR_X]->type == LS_BF16,
                                   .hits = attr->hits,
                                   .gradients = op->kind == LS_OP_LINEAR_LOSS_GRADIENT,
                                   .has_ignore = attr->loss.has_ignore,
                                   .ignore_label = attr->loss.ignore_label,
                                   .normalizer = attr->loss.normalizer,
                                   .normalization = attr->loss.normalization,
                                   .loss_weight = attr->loss.loss_weight,
                                   .smoothing = attr->loss.smoothing,
                                   .weights = ls_linear_loss_weights(attr)};
}

static size_t linear_loss_scratch(const struct ls_op *op)
{
    const struct ls_cuda_linear of = sizes_of(op);
    return ls_cuda_linear_scratch(&of);
}

static const float *class_weights(const struct ls_op *op, size_t *count)
{
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    *count = attr->loss.class_weight != NULL ? (size_t)attr->classes : 0;
    return attr->loss.class_weight;
}

/* x and dx may be bf16; weights are rounded where they are read. */
static bool takes_bf16(const struct ls_op *op)
{
    bool takes = true;
    for (int i = LS_LINEAR_LABEL; i < op->inputs; i++)
        takes = takes && (op->input[i] == NULL || op->input[i]->type == LS_F32);
    for (int i = LS_LINEAR_DW; i < op->outputs; i++)
        takes = takes && (op->output[i] == NULL || op->output[i]->type == LS_F32);
    return takes;
}

static int linear_loss(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_linear_loss_attr *attr = &op->attr.linear_loss;
    struct ls_cuda_linear of = sizes_of(op);
    of.class_weight = call->constants;
    of.x = call->in[LS_LINEAR_X];
    of.label = call->in[LS_LINEAR_LABEL];
    of.w = call->in[LS_LINEAR_W];
    of.bias = attr->bias ? call->in[LS_LINEAR_B] : NULL;
    of.bytes = attr->bytes ? call->in[LS_LINEAR_BYTES_IN] : NULL;
    of.dx = ls_card_out(call, LS_LINEAR_DX);
    of.dx_bf16 = of.dx != NULL && op->output[LS_LINEAR_DX]->type == LS_BF16;
    of.dw = ls_card_out(call, LS_LINEAR_DW);
    of.db = ls_card_out(call, LS_LINEAR_DB);
    of.record = call->context->partials + attr->loss.metric_offset;
    of.figures = attr->figures >= 0 ? call->context->partials + attr->figures : NULL;
    of.numbers = call->context->numbers;
    of.scratch = call->scratch;
    return ls_cuda_linear_loss(call->stream, &of);
}

#define LINEAR_LOSS                                                                                \
    {                                                                                              \
        .run = linear_loss, .scratch = linear_loss_scratch, .constants = class_weights,            \
        .takes_bf16 = takes_bf16, .bits = LS_BITS_DEFINED                                          \
    }

const struct ls_card_op ls_card_linear_loss[LS_OP_KINDS] = {
    [LS_OP_LINEAR_LOSS] = LINEAR_LOSS,
    [LS_OP_LINEAR_LOSS_GRADIENT] = LINEAR_LOSS,
};
