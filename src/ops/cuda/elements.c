/* Functions of one number, what is done element by element, and sums along axes. See
 * ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/elements.h"

#include <string.h>

#include "ir/layer.h"
#include "ops/cuda/ops.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* A value's shape around some axes. */
static struct ls_cuda_axes axes_of(const struct ls_value *value, int axis, int axes)
{
    const struct ls_shape *shape = &value->shape;
    return (struct ls_cuda_axes){ls_shape_count(shape, 0, axis),
                                 ls_shape_count(shape, axis, axis + axes),
                                 ls_shape_count(shape, axis + axes, shape->rank)};
}

/* ---- Functions of one number ----------------------------------------------------------------- */

static int activation(const struct ls_card_call *call)
{
    return ls_cuda_activation(call->stream, &call->op->attr.activation, call->in[0], call->out[0],
                              size_of(call->op->output[0]));
}

static int activation_backward(const struct ls_card_call *call)
{
    return ls_cuda_activation_backward(call->stream, &call->op->attr.activation, call->in[0],
                                       call->in[1], call->out[0], size_of(call->op->output[0]));
}

/* Channels, or one number for all. */
static struct ls_cuda_axes slopes_of(const struct ls_value *x, const struct ls_value *slope)
{
    return slope->shape.rank == 0 ? (struct ls_cuda_axes){size_of(x), 1, 1} : axes_of(x, 1, 1);
}

/* in: x or dy, (x), slope. */
static int prelu(const struct ls_card_call *call)
{
    const int last = call->op->inputs - 1;
    const struct ls_cuda_axes of = slopes_of(call->op->input[0], call->op->input[last]);
    return ls_cuda_prelu(call->stream, &of, call->in[0], call->in[last - 1], call->in[last],
                         call->out[0]);
}

static int prelu_slope(const struct ls_card_call *call)
{
    const struct ls_cuda_axes of = axes_of(call->op->input[1], 1, 1);
    return ls_cuda_prelu_slope(call->stream, &of, call->op->output[0]->shape.rank == 0, call->in[0],
                               call->in[1], call->out[0]);
}

static int dropout(const struct ls_card_call *call)
{
    const struct ls_value *value = call->op->input[0];
    const int axis = value->sample_axis;
    struct ls_cuda_dropout of = {.ratio = call->op->attr.dropout.ratio,
                                 .key = call->op->attr.dropout.key,
                                 .n = size_of(value),
                                 .samples = 1,
                                 .run = size_of(value)};
    if (axis >= 0) {
        of.samples = value->shape.dim[axis] / value->rows;
        of.run = ls_shape_count(&value->shape, axis + 1, value->shape.rank) * value->rows;
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
    const struct ls_cuda_axes of = axes_of(call->op->input[0], attr->axis, attr->axes);
    return ls_cuda_scale(call->stream, &of, call->in[0], ls_card_in(call, 1), ls_card_in(call, 2),
                         call->out[0]);
}

static int scale_sums(const struct ls_card_call *call)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_cuda_axes of = axes_of(call->op->input[0], attr->axis, attr->axes);
    return ls_cuda_scale_sums(call->stream, &of, call->in[0], ls_card_in(call, 1),
                              ls_card_out(call, 0), ls_card_out(call, 1));
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static struct ls_cuda_part part_of(const struct ls_value *whole, const struct ls_value *part,
                                   const int64_t *offset)
{
    struct ls_cuda_part of = {.rank = whole->shape.rank, .bytes = (int)ls_dtype_size(whole->type)};
    for (int a = 0; a < of.rank; a++) {
        of.whole[a] = whole->shape.dim[a];
        of.part[a] = part->shape.dim[a];
        of.offset[a] = offset[a];
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
    const int64_t run = ls_shape_count(&dx->shape, attr->axis, dx->shape.rank);
    return ls_cuda_tile_backward(call->stream, size_of(dx) / run, attr->tiles, run, call->in[0],
                                 call->out[0]);
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

const struct ls_card_op ls_card_elements[LS_OP_KINDS] = {
    [LS_OP_ACTIVATION] = {.run = activation},
    [LS_OP_ACTIVATION_BACKWARD] = {.run = activation_backward},
    [LS_OP_PRELU] = {.run = prelu},
    [LS_OP_PRELU_DATA] = {.run = prelu},
    [LS_OP_PRELU_SLOPE] = {.run = prelu_slope},
    [LS_OP_DROPOUT] = {.run = dropout},
    [LS_OP_ELTWISE] = {.run = eltwise, .check = check_inputs},
    [LS_OP_ELTWISE_BACKWARD] = {.run = eltwise_backward, .check = check_inputs},
    [LS_OP_SCALE] = {.run = scale},
    [LS_OP_SCALE_SUMS] = {.run = scale_sums},
    [LS_OP_CONCAT] = {.run = concat, .bits = LS_BITS_EXACT},
    [LS_OP_SLICE] = {.run = slice, .bits = LS_BITS_EXACT},
    [LS_OP_TILE] = {.run = tile, .bits = LS_BITS_EXACT},
    [LS_OP_TILE_BACKWARD] = {.run = tile_backward},
    [LS_OP_CROP] = {.run = crop, .bits = LS_BITS_EXACT},
    [LS_OP_CROP_BACKWARD] = {.run = crop_backward, .bits = LS_BITS_EXACT},
    [LS_OP_REDUCE] = {.run = reduce},
    [LS_OP_REDUCE_BACKWARD] = {.run = reduce_backward},
    [LS_OP_REDUCE_LOSS] = {.run = reduce_loss},
    [LS_OP_REDUCE_LOSS_BACKWARD] = {.run = reduce_backward},
};
