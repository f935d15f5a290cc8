/* Functions of one number, what is done element by element, and sums along axes. See
 * ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/elements.h"

#include <string.h>

#include "ir/layer.h"
#include "ops/cuda/values.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* ---- Functions of one number ----------------------------------------------------------------- */

static int activation(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    return ls_cuda_activation(call->stream, &op->attr.activation, ls_card_is_bf16(op->input[0]),
                              call->in[0], call->out[0], size_of(op->output[0]));
}

static int activation_backward(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    return ls_cuda_activation_backward(call->stream, &op->attr.activation,
                                       ls_card_is_bf16(op->input[0]), call->in[0], call->in[1],
                                       call->out[0], size_of(op->output[0]));
}

/* Channels, or one number for all. */
static struct ls_cuda_axes slopes_of(const struct ls_value *x, const struct ls_value *slope)
{
    return slope->shape.rank == 0 ? (struct ls_cuda_axes){size_of(x), 1, 1} : ls_card_axes(x, 1, 1);
}

static struct ls_cuda_sums sums_of(const struct ls_value *x, int axis, int axes)
{
    const struct ls_shape *shape = &x->shape;
    return (struct ls_cuda_sums){.outer = ls_shape_count(shape, 0, axis),
                                 .dim = ls_shape_count(shape, axis, axis + axes),
                                 .inner = ls_shape_count(shape, axis + axes, shape->rank),
                                 .last = ls_card_last(x),
                                 .bf16 = ls_card_is_bf16(x)};
}

/* in: x or dy, (x), slope. */
static int prelu(const struct ls_card_call *call)
{
    const int last = call->op->inputs - 1;
    const struct ls_value *x = call->op->input[0];
    const struct ls_cuda_axes of = slopes_of(x, call->op->input[last]);
    return ls_cuda_prelu(call->stream, &of, ls_card_is_bf16(x), call->in[0], call->in[last - 1],
                         call->in[last], call->out[0]);
}

static int prelu_slope(const struct ls_card_call *call)
{
    const struct ls_cuda_sums of = sums_of(call->op->input[1], 1, 1);
    return ls_cuda_prelu_slope(call->stream, &of, call->op->output[0]->shape.rank == 0, call->in[0],
                               call->in[1], call->out[0]);
}

/* The slope and its gradient are plain, and fp32. */
static int prelu_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    const bool sums = op->kind == LS_OP_PRELU_SLOPE;
    (void)error;
    ls_card_lay_out(op, layouts, ls_card_layout(op, layouts), sums ? 0 : 1U << (op->inputs - 1),
                    sums);
    return 0;
}

static bool prelu_takes_bf16(const struct ls_op *op)
{
    const bool sums = op->kind == LS_OP_PRELU_SLOPE;
    return ls_card_all_bf16(op, sums ? 0 : 1U << (op->inputs - 1), sums);
}

static int dropout(const struct ls_card_call *call)
{
    const struct ls_value *value = call->op->input[0];
    const struct ls_shape *shape = &value->shape;
    const int axis = value->sample_axis;
    struct ls_cuda_dropout of = {.ratio = call->op->attr.dropout.ratio,
                                 .key = call->op->attr.dropout.key,
                                 .n = size_of(value),
                                 .samples = 1,
                                 .run = size_of(value),
                                 .last = ls_card_last(value),
                                 .bf16 = ls_card_is_bf16(value)};
    if (of.last) {
        of.channels = shape->dim[1];
        of.points = ls_shape_count(shape, 2, shape->rank);
    }
    if (axis >= 0) {
        of.samples = shape->dim[axis] / value->rows;
        of.run = ls_shape_count(shape, axis + 1, shape->rank) * value->rows;
    }
    return ls_cuda_drop(call->stream, &of, call->context->numbers, call->in[0], ls_card_in(call, 1),
                        call->out[0]);
}

/* ---- Of several values ----------------------------------------------------------------------- */

static struct ls_cuda_eltwise eltwise_of(const struct ls_op *op, void *const *x, int inputs)
{
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    struct ls_cuda_eltwise of = {.method = attr->method,
                                 .weighted =
                                     attr->method == LS_ELTWISE_SUM && attr->coefficients != NULL,
                                 .relu = attr->relu,
                                 .bf16 = ls_card_is_bf16(op->input[0]),
                                 .slope = attr->relu_slope,
                                 .inputs = inputs,
                                 .which = attr->which};
    for (int k = 0; k < inputs; k++)
        of.x[k] = x[k];
    return of;
}

/* More inputs than a launch takes addresses of. */
static int check_inputs(const struct ls_op *op, struct ls_error *error)
{
    return op->inputs <= LS_CUDA_INPUTS
               ? 0
               : ls_layer_fail(op->layer, error, NULL, NULL, "sum them up in several layers",
                               "cards combine up to %d values in one layer", LS_CUDA_INPUTS);
}

static int eltwise(const struct ls_card_call *call)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    const int inputs = call->op->inputs - attr->gated;
    struct ls_cuda_eltwise of = eltwise_of(call->op, call->in, inputs);
    of.gate = attr->gated ? call->in[inputs] : NULL;
    for (int k = 0; of.weighted && k < inputs; k++)
        of.coefficient[k] = attr->coefficients[k];
    return ls_cuda_combine(call->stream, &of, call->out[0], size_of(call->op->output[0]));
}

/* in: dy, and the inputs where their values count. */
static int eltwise_backward(const struct ls_card_call *call)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    struct ls_cuda_eltwise of = eltwise_of(call->op, call->in + 1, call->op->inputs - 1);
    if (of.weighted)
        of.coefficient[attr->which] = attr->coefficients[attr->which];
    return ls_cuda_combine_backward(call->stream, &of, call->in[0], call->out[0],
                                    size_of(call->op->output[0]));
}

static int scale(const struct ls_card_call *call)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_value *x = call->op->input[0];
    const struct ls_cuda_axes of = ls_card_axes(x, attr->axis, attr->axes);
    return ls_cuda_scale(call->stream, &of, ls_card_is_bf16(x), call->in[0], ls_card_in(call, 1),
                         ls_card_in(call, 2), call->out[0]);
}

static int scale_sums(const struct ls_card_call *call)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_cuda_sums of = sums_of(call->op->input[0], attr->axis, attr->axes);
    return ls_cuda_scale_sums(call->stream, &of, call->in[0], ls_card_in(call, 1),
                              ls_card_out(call, 0), ls_card_out(call, 1));
}

/* Factors and biases are plain, and so is what they are for, unless they are those of channels. */
static int scale_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    const struct ls_scale_attr *attr = &op->attr.scale;
    const bool by_channel = attr->axis == 1 && attr->axes == 1, sums = op->kind == LS_OP_SCALE_SUMS;
    (void)error;
    ls_card_lay_out(op, layouts, by_channel ? ls_card_layout(op, layouts) : &ls_layout_plain,
                    sums ? 0 : ~1U, sums ? ~0U : 0);
    return 0;
}

static bool scale_takes_bf16(const struct ls_op *op)
{
    const bool sums = op->kind == LS_OP_SCALE_SUMS;
    return ls_card_all_bf16(op, sums ? 0 : ~1U, sums ? ~0U : 0);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Axes in the order of memory. */
static struct ls_cuda_part part_of(const struct ls_value *whole, const struct ls_value *part,
                                   const int64_t *offset)
{
    struct ls_cuda_part of = {.rank = whole->shape.rank, .bytes = (int)ls_dtype_size(whole->type)};
    int order[LS_RANK_MAX];
    ls_card_axis_order(whole, order);
    for (int a = 0; a < of.rank; a++) {
        of.whole[a] = whole->shape.dim[order[a]];
        of.part[a] = part->shape.dim[order[a]];
        of.offset[a] = offset[order[a]];
    }
    return of;
}

static int concat(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    int64_t offset[LS_RANK_MAX] = {0};
    int code = cudaSuccess;
    for (int k = 0; k < op->inputs && code == cudaSuccess; k++) {
        const struct ls_cuda_part of = part_of(op->output[0], op->input[k], offset);
        code = ls_cuda_put_part(call->stream, &of, call->in[k], call->out[0]);
        offset[op->attr.axis] += op->input[k]->shape.dim[op->attr.axis];
    }
    return code;
}

static int slice(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    int64_t offset[LS_RANK_MAX] = {0};
    int code = cudaSuccess;
    for (int k = 0; k < op->outputs && code == cudaSuccess; k++) {
        const struct ls_cuda_part of = part_of(op->input[0], op->output[k], offset);
        if (call->out[k] != NULL)
            code = ls_cuda_take_part(call->stream, &of, call->in[0], call->out[k]);
        offset[op->attr.axis] += op->output[k]->shape.dim[op->attr.axis];
    }
    return code;
}

static int tile(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_tile_attr *attr = &op->attr.tile;
    int64_t offset[LS_RANK_MAX] = {0};
    int code = cudaSuccess;
    for (int64_t t = 0; t < attr->tiles && code == cudaSuccess; t++) {
        const struct ls_cuda_part of = part_of(op->output[0], op->input[0], offset);
        code = ls_cuda_put_part(call->stream, &of, call->in[0], call->out[0]);
        offset[attr->axis] += op->input[0]->shape.dim[attr->axis];
    }
    return code;
}

static int tile_backward(const struct ls_card_call *call)
{
    const struct ls_tile_attr *attr = &call->op->attr.tile;
    const struct ls_value *dx = call->op->output[0];
    const struct ls_cuda_axes of = ls_card_axes(dx, attr->axis, 1);
    return ls_cuda_tile_backward(call->stream, ls_card_is_bf16(dx), of.outer, attr->tiles,
                                 of.dim * of.inner, call->in[0], call->out[0]);
}

static int crop(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_part of = part_of(op->input[0], op->output[0], op->attr.crop.offset);
    return ls_cuda_take_part(call->stream, &of, call->in[0], call->out[0]);
}

static int crop_backward(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_part of = part_of(op->output[0], op->input[0], op->attr.crop.offset);
    const int code = cudaMemsetAsync(call->out[0], 0, ls_value_bytes(op->output[0]), call->stream);
    return code != cudaSuccess ? code
                               : ls_cuda_put_part(call->stream, &of, call->in[0], call->out[0]);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static struct ls_cuda_reduction reduction_of(const struct ls_op *op, const struct ls_value *x)
{
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    const int64_t run = ls_shape_count(&x->shape, attr->axis, x->shape.rank);
    return (struct ls_cuda_reduction){.method = attr->method,
                                      .coeff = attr->coeff,
                                      .loss_weight = attr->loss_weight,
                                      .count = size_of(x) / run,
                                      .run = run,
                                      .normalizer = attr->normalizer};
}

static int reduce(const struct ls_card_call *call)
{
    const struct ls_cuda_reduction of = reduction_of(call->op, call->op->input[0]);
    return ls_cuda_reduce(call->stream, &of, call->in[0], call->out[0]);
}

static int reduce_loss(const struct ls_card_call *call)
{
    struct ls_cuda_reduction of = reduction_of(call->op, call->op->input[0]);
    of.run *= of.count;
    of.count = 1;
    return ls_cuda_reduce_loss(call->stream, &of, call->in[0],
                               call->context->partials + call->op->attr.reduction.metric_offset);
}

/* in: (dy), (x: ASUM, SUMSQ); dy is absent for a figure of the batch. */
static int reduce_backward(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_reduction of = reduction_of(op, op->output[0]);
    const bool loss = op->kind == LS_OP_REDUCE_LOSS_BACKWARD;
    return ls_cuda_reduce_backward(call->stream, &of, call->context->numbers,
                                   loss ? NULL : call->in[0], ls_card_in(call, op->inputs - 1),
                                   call->out[0]);
}

#define AS_IT_LIES .layouts = ls_card_follow, .takes_bf16 = ls_card_takes_bf16

const struct ls_card_op ls_card_elements[LS_OP_KINDS] = {
    [LS_OP_ACTIVATION] = {.run = activation, AS_IT_LIES},
    [LS_OP_ACTIVATION_BACKWARD] = {.run = activation_backward, AS_IT_LIES},
    [LS_OP_PRELU] = {.run = prelu, .layouts = prelu_layouts, .takes_bf16 = prelu_takes_bf16},
    [LS_OP_PRELU_DATA] = {.run = prelu, .layouts = prelu_layouts, .takes_bf16 = prelu_takes_bf16},
    [LS_OP_PRELU_SLOPE] = {.run = prelu_slope,
                           .layouts = prelu_layouts,
                           .takes_bf16 = prelu_takes_bf16},
    [LS_OP_DROPOUT] = {.run = dropout, AS_IT_LIES},
    [LS_OP_ELTWISE] = {.run = eltwise, .check = check_inputs, AS_IT_LIES},
    [LS_OP_ELTWISE_BACKWARD] = {.run = eltwise_backward, .check = check_inputs, AS_IT_LIES},
    [LS_OP_SCALE] = {.run = scale, .layouts = scale_layouts, .takes_bf16 = scale_takes_bf16},
    [LS_OP_SCALE_SUMS] = {.run = scale_sums,
                          .layouts = scale_layouts,
                          .takes_bf16 = scale_takes_bf16},
    [LS_OP_CONCAT] = {.run = concat, .bits = LS_BITS_EXACT, AS_IT_LIES},
    [LS_OP_SLICE] = {.run = slice, .bits = LS_BITS_EXACT, AS_IT_LIES},
    [LS_OP_TILE] = {.run = tile, .bits = LS_BITS_EXACT, AS_IT_LIES},
    [LS_OP_TILE_BACKWARD] = {.run = tile_backward, AS_IT_LIES},
    [LS_OP_CROP] = {.run = crop, .bits = LS_BITS_EXACT, AS_IT_LIES},
    [LS_OP_CROP_BACKWARD] = {.run = crop_backward, .bits = LS_BITS_EXACT, AS_IT_LIES},
    [LS_OP_REDUCE] = {.run = reduce},
    [LS_OP_REDUCE_BACKWARD] = {.run = reduce_backward},
    [LS_OP_REDUCE_LOSS] = {.run = reduce_loss},
    [LS_OP_REDUCE_LOSS_BACKWARD] = {.run = reduce_backward},
};
