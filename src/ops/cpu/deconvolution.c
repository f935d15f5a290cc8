/* Deconvolution: the primitives of a convolution with its parts exchanged (convolution.c), and a
 * bias and a ReLU of its own, which oneDNN's gradient by data has not.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/primitive.h"
#include "ops/cpu/vector/channel_bias.h"

static struct ls_channel_shape shape_of(const struct ls_value *value)
{
    const struct ls_shape *shape = &value->shape;
    return (struct ls_channel_shape){.samples = shape->dim[0],
                                     .channels = shape->dim[1],
                                     .points = ls_shape_count(shape, 2, shape->rank),
                                     .block = value->layout->block};
}

/* A layer checks that its channels are axis 1 before it emits any of these. */
static bool accepts(const struct ls_op *op)
{
    return op->input[0]->shape.rank == op->attr.convolution.window.axes + 2;
}

static int layouts(const struct ls_op *op, struct ls_op_layouts *result, struct ls_error *error)
{
    LS_TRY(ls_convolution_layouts(op, result, error));
    if (op->kind == LS_OP_DECONVOLUTION && op->inputs > 2 && op->input[2] != NULL)
        result->in[2] = &ls_layout_plain;
    if (op->kind == LS_OP_DECONVOLUTION_WEIGHTS && op->outputs > 1 && op->output[1] != NULL)
        result->out[1] = &ls_layout_plain;
    return 0;
}

static int run(const struct ls_prepared *prepared, void *local, void *const *in, void *const *out,
               void *scratch, const struct ls_context *context)
{
    const struct ls_op *op = prepared->op;
    LS_TRY(ls_primitive_run(prepared, local, in, out, scratch, context));
    if (op->inputs < 3 || op->input[2] == NULL)
        return 0;
    const struct ls_channel_shape shape = shape_of(op->output[0]);
    if (op->attr.convolution.relu)
        ls_vector_channel_bias()->add_relu(&shape, in[2], op->attr.convolution.relu_slope, out[0]);
    else
        ls_vector_channel_bias()->add(&shape, in[2], out[0]);
    return 0;
}

static int weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    const struct ls_op *op = prepared->op;
    LS_TRY(ls_primitive_run(prepared, local, in, out, scratch, context));
    if (op->outputs < 2 || op->output[1] == NULL)
        return 0;
    const struct ls_channel_shape shape = shape_of(op->input[1]);
    ls_vector_channel_bias()->sum(&shape, in[1], out[1]);
    return 0;
}

const struct ls_kernel ls_kernel_deconvolution = {
    .kind = LS_OP_DECONVOLUTION,
    .bits = LS_BITS_BY_SHAPES,
    .name = "deconvolution",
    .library = true,
    .accepts = accepts,
    .layouts = layouts,
    .prepare = ls_convolution_prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_deconvolution_data = {
    .kind = LS_OP_DECONVOLUTION_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "deconvolution backward data",
    .library = true,
    .accepts = accepts,
    .layouts = layouts,
    .prepare = ls_convolution_prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_deconvolution_weights = {
    .kind = LS_OP_DECONVOLUTION_WEIGHTS,
    .bits = LS_BITS_BY_SHAPES,
    .name = "deconvolution backward weights",
    .library = true,
    .accepts = accepts,
    .layouts = layouts,
    .prepare = ls_convolution_prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = weights_run,
    .in_place = -1,
};
