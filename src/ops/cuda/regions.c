/* Maxima and averages over bins of regions. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/regions.h"

#include "ops/cuda/ops.h"

static bool is_average(const struct ls_op *op)
{
    return op->kind == LS_OP_REGION_AVERAGE || op->kind == LS_OP_REGION_AVERAGE_BACKWARD;
}

static bool is_backward(const struct ls_op *op)
{
    return op->kind == LS_OP_REGION_MAX_BACKWARD || op->kind == LS_OP_REGION_AVERAGE_BACKWARD;
}

static struct ls_cuda_regions regions_of(const struct ls_op *op)
{
    const struct ls_regions_attr *attr = &op->attr.regions;
    const int64_t *x = (is_backward(op) ? op->output[0] : op->input[0])->shape.dim;
    const int64_t *y = (is_backward(op) ? op->input[0] : op->output[0])->shape.dim;
    return (struct ls_cuda_regions){.average = is_average(op),
                                    .pictures = x[0],
                                    .planes = x[1],
                                    .plane = {x[2], x[3]},
                                    .regions = y[0],
                                    .channels = y[1],
                                    .bins = {attr->bins[0], attr->bins[1]},
                                    .scale = attr->scale};
}

static size_t scratch_of(const struct ls_op *op)
{
    const struct ls_cuda_regions of = regions_of(op);
    return ls_cuda_regions_scratch(&of);
}

static int forward(const struct ls_card_call *call)
{
    const struct ls_cuda_regions of = regions_of(call->op);
    return ls_cuda_pool_regions(call->stream, &of, call->in[0], call->in[1], call->scratch,
                                call->out[0], ls_card_out(call, 1));
}

/* in: dy, (index: of maxima), regions. */
static int backward(const struct ls_card_call *call)
{
    const struct ls_cuda_regions of = regions_of(call->op);
    return ls_cuda_pool_regions_backward(call->stream, &of, call->in[0],
                                         of.average ? NULL : call->in[1],
                                         call->in[of.average ? 1 : 2], call->scratch, call->out[0]);
}

const struct ls_card_op ls_card_regions[LS_OP_KINDS] = {
    [LS_OP_REGION_MAX] = {.run = forward, .scratch = scratch_of, .bits = LS_BITS_DEFINED},
    [LS_OP_REGION_MAX_BACKWARD] = {.run = backward, .scratch = scratch_of, .bits = LS_BITS_DEFINED},
    [LS_OP_REGION_AVERAGE] = {.run = forward, .scratch = scratch_of, .bits = LS_BITS_DEFINED},
    [LS_OP_REGION_AVERAGE_BACKWARD] = {.run = backward,
                                       .scratch = scratch_of,
                                       .bits = LS_BITS_DEFINED},
};
