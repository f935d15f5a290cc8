/* Numbers that are put elsewhere: axes, windows, planes, rows by number. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/shaping.h"

#include "ops/cuda/values.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

/* Axes of y that follow each other in x, too, are one; those of one place are none. */
static struct ls_cuda_permutation permute_of(const struct ls_op *op)
{
    const struct ls_shape *x = &op->input[0]->shape, *y = &op->output[0]->shape;
    struct ls_cuda_permutation of = {.across = -1};
    for (int a = 0; a < y->rank; a++) {
        const int64_t dim = y->dim[a], step = ls_shape_count(x, op->attr.order[a] + 1, x->rank);
        const int before = of.rank - 1;
        if (dim == 1)
            continue;
        if (before >= 0 && of.step[before] == step * dim) {
            of.dim[before] *= dim;
            of.step[before] = step;
            continue;
        }
        of.dim[of.rank] = dim;
        of.step[of.rank++] = step;
    }
    for (int a = 0; a < of.rank; a++)
        of.across = of.step[a] == 1 ? a : of.across;
    return of;
}

static int permute(const struct ls_card_call *call)
{
    const struct ls_cuda_permutation of = permute_of(call->op);
    return ls_cuda_permute(call->stream, &of, call->in[0], call->out[0]);
}

/* ---- Windows --------------------------------------------------------------------------------- */

static struct ls_cuda_columns columns_of(const struct ls_op *op, const struct ls_value *x,
                                         const struct ls_value *y)
{
    const struct ls_window *window = &op->attr.window;
    struct ls_cuda_columns of = {.planes = ls_shape_count(&x->shape, 0, 2)};
    for (int a = 0; a < 3; a++) {
        const bool used = a < window->axes;
        of.x[a] = used ? x->shape.dim[2 + a] : 1;
        of.y[a] = used ? y->shape.dim[2 + a] : 1;
        of.kernel[a] = used ? window->kernel[a] : 1;
        of.stride[a] = used ? window->stride[a] : 1;
        of.dilation[a] = used ? window->dilation[a] : 1;
        of.pad[a] = used ? window->pad[a] : 0;
    }
    return of;
}

static int im2col(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_columns of = columns_of(op, op->input[0], op->output[0]);
    return ls_cuda_im2col(call->stream, &of, call->in[0], call->out[0]);
}

static int col2im(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_columns of = columns_of(op, op->output[0], op->input[0]);
    return ls_cuda_col2im(call->stream, &of, call->in[0], call->out[0]);
}

/* ---- Planes ---------------------------------------------------------------------------------- */

static struct ls_cuda_upsampling upsample_of(const struct ls_op *op, const struct ls_value *x)
{
    const int64_t *factor = op->attr.upsample.factor;
    return (struct ls_cuda_upsampling){.planes = ls_shape_count(&x->shape, 0, 2),
                                       .rows = x->shape.dim[2],
                                       .columns = x->shape.dim[3],
                                       .down = factor[0],
                                       .along = factor[1],
                                       .bytes = (int)ls_dtype_size(x->type)};
}

static int upsample(const struct ls_card_call *call)
{
    const struct ls_cuda_upsampling of = upsample_of(call->op, call->op->input[0]);
    return ls_cuda_upsample(call->stream, &of, call->in[0], call->out[0]);
}

static int upsample_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_upsampling of = upsample_of(call->op, call->op->output[0]);
    return ls_cuda_upsample_backward(call->stream, &of, call->in[0], call->out[0]);
}

static struct ls_cuda_unpooling unpool_of(const struct ls_value *small,
                                          const struct ls_value *large)
{
    return (struct ls_cuda_unpooling){.planes = ls_shape_count(&small->shape, 0, 2),
                                      .small = ls_shape_count(&small->shape, 2, 4),
                                      .large = ls_shape_count(&large->shape, 2, 4),
                                      .bytes = (int)ls_dtype_size(small->type)};
}

static int unpool(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_unpooling of = unpool_of(op->input[0], op->output[0]);
    const int code = cudaMemsetAsync(call->out[0], 0, ls_value_bytes(op->output[0]), call->stream);
    return code != cudaSuccess
               ? code
               : ls_cuda_unpool(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int unpool_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_unpooling of = unpool_of(call->op->output[0], call->op->input[0]);
    return ls_cuda_unpool_backward(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static struct ls_cuda_resizing resize_of(const struct ls_op *op, const struct ls_value *x,
                                         const struct ls_value *y)
{
    return (struct ls_cuda_resizing){.planes = ls_shape_count(&x->shape, 0, 2),
                                     .x = {x->shape.dim[2], x->shape.dim[3]},
                                     .y = {y->shape.dim[2], y->shape.dim[3]},
                                     .begin = op->attr.resize.begin,
                                     .end = op->attr.resize.end};
}

static int resize(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_resizing of = resize_of(op, op->input[0], op->output[0]);
    return ls_cuda_resize(call->stream, &of, call->in[0], call->out[0]);
}

static size_t resize_backward_scratch(const struct ls_op *op)
{
    const struct ls_cuda_resizing of = resize_of(op, op->output[0], op->input[0]);
    return (size_t)(of.planes * of.y[0] * of.x[1]) * sizeof(float);
}

static int resize_backward(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_resizing of = resize_of(op, op->output[0], op->input[0]);
    return ls_cuda_resize_backward(call->stream, &of, call->in[0], call->scratch, call->out[0]);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static struct ls_cuda_picks pick_of(const struct ls_value *x, const struct ls_value *y)
{
    const int64_t picks = y->shape.dim[0];
    return (struct ls_cuda_picks){
        .rows = x->shape.dim[0], .picks = picks, .run = size_of(y) / picks};
}

static int pick(const struct ls_card_call *call)
{
    const struct ls_cuda_picks of = pick_of(call->op->input[0], call->op->output[0]);
    return ls_cuda_pick(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int pick_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_picks of = pick_of(call->op->output[0], call->op->input[0]);
    return ls_cuda_pick_backward(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

static int select_rows(const struct ls_card_call *call)
{
    return ls_cuda_select(call->stream, size_of(call->op->output[0]), call->in[0],
                          ls_card_in(call, 1), call->out[0]);
}

static int filter_rows(const struct ls_card_call *call)
{
    const struct ls_value *y = call->op->output[0];
    const int64_t rows = y->shape.dim[0];
    return ls_cuda_filter(call->stream, rows, size_of(y) / rows, call->op->attr.left_out,
                          call->in[0], ls_card_in(call, 1), call->out[0]);
}

/* ---- Constants, the largest of lists --------------------------------------------------------- */

static const float *numbers_of(const struct ls_op *op, size_t *count)
{
    *count = (size_t)size_of(op->output[0]);
    return op->attr.constant.numbers;
}

static int constant(const struct ls_card_call *call)
{
    const size_t bytes = ls_value_bytes(call->op->output[0]);
    return bytes == 0 ? cudaSuccess
                      : cudaMemcpyAsync(call->out[0], call->constants, bytes,
                                        cudaMemcpyDeviceToDevice, call->stream);
}

static int argmax(const struct ls_card_call *call)
{
    const struct ls_argmax_attr *attr = &call->op->attr.argmax;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const bool along = attr->axis >= 0; /* else of all that a sample has */
    const int axis = along ? attr->axis : 1, end = along ? axis + 1 : x->rank;
    const struct ls_cuda_ranking of = {.outer = ls_shape_count(x, 0, axis),
                                       .dim = ls_shape_count(x, axis, end),
                                       .inner = ls_shape_count(x, end, x->rank),
                                       .top_k = attr->top_k,
                                       .places = !along || !attr->values,
                                       .values = attr->values};
    return ls_cuda_argmax(call->stream, &of, call->in[0], call->out[0]);
}

const struct ls_card_op ls_card_shaping[LS_OP_KINDS] = {
    [LS_OP_PERMUTE] = {.run = permute, .bits = LS_BITS_EXACT},
    [LS_OP_IM2COL] = {.run = im2col, .bits = LS_BITS_EXACT},
    [LS_OP_COL2IM] = {.run = col2im, .bits = LS_BITS_DEFINED},
    [LS_OP_UPSAMPLE] = {.run = upsample, .takes_bf16 = ls_card_takes_bf16, .bits = LS_BITS_EXACT},
    [LS_OP_UPSAMPLE_BACKWARD] = {.run = upsample_backward},
    [LS_OP_UNPOOL] = {.run = unpool, .takes_bf16 = ls_card_takes_bf16, .bits = LS_BITS_EXACT},
    [LS_OP_UNPOOL_BACKWARD] = {.run = unpool_backward,
                               .takes_bf16 = ls_card_takes_bf16,
                               .bits = LS_BITS_EXACT},
    [LS_OP_RESIZE] = {.run = resize},
    [LS_OP_RESIZE_BACKWARD] = {.run = resize_backward, .scratch = resize_backward_scratch},
    [LS_OP_PICK] = {.run = pick, .bits = LS_BITS_EXACT},
    [LS_OP_PICK_BACKWARD] = {.run = pick_backward, .bits = LS_BITS_DEFINED},
    [LS_OP_SELECT] = {.run = select_rows, .bits = LS_BITS_EXACT},
    [LS_OP_FILTER] = {.run = filter_rows, .bits = LS_BITS_EXACT},
    [LS_OP_CONSTANT] = {.run = constant, .constants = numbers_of, .bits = LS_BITS_EXACT},
    [LS_OP_ARGMAX] = {.run = argmax, .bits = LS_BITS_EXACT},
};
