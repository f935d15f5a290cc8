/* Pooling, and normalisation by what is around. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/windows.h"

#include "ops/cuda/values.h"

/* ---- Pooling --------------------------------------------------------------------------------- */

static bool is_stochastic(const struct ls_op *op)
{
    return op->attr.pooling.method == LS_POOL_STOCHASTIC ||
           op->attr.pooling.method == LS_POOL_EXPECTED;
}

static struct ls_cuda_pooling pooling_of(const struct ls_op *op, const struct ls_value *x,
                                         const struct ls_value *y)
{
    const struct ls_window *window = &op->attr.pooling.window;
    struct ls_cuda_pooling of = {.maximum = op->attr.pooling.method == LS_POOL_MAX,
                                 .last = ls_card_last(x),
                                 .bf16 = ls_card_is_bf16(x),
                                 .samples = x->shape.dim[0],
                                 .channels = x->shape.dim[1]};
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

static int pool_stochastic(const struct ls_card_call *call, const struct ls_cuda_pooling *of)
{
    const struct ls_op *op = call->op;
    const struct ls_value *y = op->output[0];
    const struct ls_cuda_draws draws = {op->attr.pooling.key,
                                        ls_shape_count(&y->shape, 1, y->shape.rank) *
                                            (y->rows > 0 ? y->rows : 1)};
    if (op->attr.pooling.method == LS_POOL_EXPECTED)
        return ls_cuda_pool_expected(call->stream, of, call->in[0], call->out[0]);
    return ls_cuda_pool_drawn(call->stream, of, &draws, call->context->numbers, call->in[0],
                              call->out[0], ls_card_out(call, 1));
}

static int pooling(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_pooling of = pooling_of(op, op->input[0], op->output[0]);
    if (is_stochastic(op))
        return pool_stochastic(call, &of);
    return ls_cuda_pool(call->stream, &of, call->in[0], call->out[0],
                        of.maximum ? ls_card_out(call, 1) : NULL);
}

static int pooling_backward(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_pooling of = pooling_of(op, op->output[0], op->input[0]);
    return ls_cuda_pool_backward(call->stream, &of, call->in[0],
                                 of.maximum ? ls_card_in(call, 1) : NULL, call->out[0]);
}

/* What is drawn is plain, and fp32. (Its gradient is that of a maximum.) */
static int pooling_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error)
{
    if (!is_stochastic(op))
        return ls_card_follow(op, layouts, error);
    ls_card_lay_out(op, layouts, &ls_layout_plain, 0, 0);
    return 0;
}

static bool pooling_takes_bf16(const struct ls_op *op)
{
    return !is_stochastic(op) && ls_card_takes_bf16(op);
}

/* ---- Local response normalisation ------------------------------------------------------------ */

static struct ls_cuda_lrn lrn_of(const struct ls_op *op)
{
    const struct ls_lrn_attr *attr = &op->attr.lrn;
    const struct ls_shape *x = &op->input[0]->shape;
    struct ls_cuda_lrn of = {.within = attr->within,
                             .last = ls_card_last(op->input[0]),
                             .bf16 = ls_card_is_bf16(op->input[0]),
                             .size = attr->size,
                             .samples = x->dim[0],
                             .channels = x->dim[1],
                             .rows = 1,
                             .columns = ls_shape_count(x, 2, x->rank),
                             .alpha = attr->alpha,
                             .beta = attr->beta,
                             .k = attr->k};
    if (attr->within) {
        of.rows = x->dim[2];
        of.columns = x->dim[3];
    }
    return of;
}

static int lrn(const struct ls_card_call *call)
{
    const struct ls_cuda_lrn of = lrn_of(call->op);
    return ls_cuda_lrn_forward(call->stream, &of, call->in[0], call->out[0], ls_card_out(call, 1));
}

/* in: x, y, dy, (scale). */
static int lrn_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_lrn of = lrn_of(call->op);
    return ls_cuda_lrn_backward(call->stream, &of, call->in[0], call->in[1], call->in[2],
                                of.within ? NULL : call->in[3], call->out[0]);
}

/* Not what is kept for the backward pass. */
static bool lrn_takes_bf16(const struct ls_op *op)
{
    return op->kind == LS_OP_LRN ? ls_card_all_bf16(op, 0, 1U << 1)
                                 : ls_card_all_bf16(op, 1U << 3, 0);
}

#define AS_IT_LIES .layouts = ls_card_follow, .takes_bf16 = ls_card_takes_bf16

const struct ls_card_op ls_card_windows[LS_OP_KINDS] = {
    [LS_OP_POOLING] = {.run = pooling,
                       .layouts = pooling_layouts,
                       .takes_bf16 = pooling_takes_bf16},
    [LS_OP_POOLING_BACKWARD] = {.run = pooling_backward,
                                .layouts = pooling_layouts,
                                .takes_bf16 = pooling_takes_bf16},
    [LS_OP_LRN] = {.run = lrn, .layouts = ls_card_follow, .takes_bf16 = lrn_takes_bf16},
    [LS_OP_LRN_BACKWARD] = {.run = lrn_backward,
                            .layouts = ls_card_follow,
                            .takes_bf16 = lrn_takes_bf16},
};
