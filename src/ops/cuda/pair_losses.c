/* Losses of pairs, margins and gains. See ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/pair_losses.h"

#include "ops/cuda/losses.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* A loss whose samples all count; `each`: the positions of a sample. */
static struct ls_cuda_loss loss_of_samples(const struct ls_card_call *call, int64_t each)
{
    const int64_t samples = ls_value_sample_rows(call->op->input[0]);
    return ls_card_loss(call, samples, samples * each);
}

static double *record_of(const struct ls_card_call *call)
{
    return call->context->partials + call->op->attr.loss.metric_offset;
}

static size_t scratch_of_numbers(const struct ls_op *op)
{
    return ls_cuda_pair_scratch(size_of(op->input[0]));
}

static size_t scratch_of_samples(const struct ls_op *op)
{
    return ls_cuda_pair_scratch(ls_value_sample_rows(op->input[0]));
}

/* ---- Hinge ----------------------------------------------------------------------------------- */

static struct ls_cuda_margins margins_of(const struct ls_card_call *call)
{
    const struct ls_cuda_loss loss = loss_of_samples(call, 1);
    return (struct ls_cuda_margins){.loss = loss,
                                    .classes = size_of(call->op->input[0]) / loss.samples,
                                    .squared = call->op->attr.loss.squared};
}

static int hinge(const struct ls_card_call *call)
{
    const struct ls_cuda_margins of = margins_of(call);
    return ls_cuda_hinge(call->stream, &of, call->in[0], call->in[1], call->scratch,
                         record_of(call));
}

static int hinge_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_margins of = margins_of(call);
    return ls_cuda_hinge_backward(call->stream, &of, call->context->numbers, call->in[0],
                                  call->in[1], call->out[0]);
}

/* ---- Contrastive ----------------------------------------------------------------------------- */

static struct ls_cuda_pairs pairs_of(const struct ls_card_call *call)
{
    const struct ls_cuda_loss loss = loss_of_samples(call, 1);
    return (struct ls_cuda_pairs){.loss = loss,
                                  .each = size_of(call->op->input[0]) / loss.samples,
                                  .margin = call->op->attr.loss.margin,
                                  .legacy = call->op->attr.loss.legacy};
}

static int contrastive(const struct ls_card_call *call)
{
    const struct ls_cuda_pairs of = pairs_of(call);
    return ls_cuda_contrastive(call->stream, &of, call->in[0], call->in[1], call->in[2],
                               call->scratch, record_of(call));
}

static int contrastive_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_pairs of = pairs_of(call);
    return ls_cuda_contrastive_backward(call->stream, &of, call->context->numbers, call->in[0],
                                        call->in[1], call->in[2], call->scratch, call->out[0]);
}

/* ---- Infogain, softmax position by position -------------------------------------------------- */

static const float *gains_of_definition(const struct ls_op *op, size_t *count)
{
    const int64_t classes = op->input[0]->shape.dim[op->attr.loss.axis];
    *count = op->attr.loss.matrix != NULL ? (size_t)(classes * classes) : 0;
    return op->attr.loss.matrix;
}

/* An input goes before the definition's. */
static const float *gains_of(const struct ls_card_call *call)
{
    const float *given = ls_card_in(call, 2);
    return given != NULL ? given : call->constants;
}

static struct ls_cuda_loss loss_of_classes(const struct ls_card_call *call,
                                           const struct ls_cuda_classes *of)
{
    return ls_card_loss(call, of->outer, of->outer * of->inner);
}

static int infogain(const struct ls_card_call *call)
{
    const struct ls_cuda_classes of = ls_card_classes(call->op->input[0], call->op->attr.loss.axis);
    const struct ls_cuda_loss loss = loss_of_classes(call, &of);
    return ls_cuda_infogain(call->stream, &loss, &of, call->in[0], call->in[1], gains_of(call),
                            call->scratch, call->out[0], record_of(call));
}

static int infogain_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_classes of = ls_card_classes(call->op->input[0], call->op->attr.loss.axis);
    const struct ls_cuda_loss loss = loss_of_classes(call, &of);
    return ls_cuda_infogain_backward(call->stream, &loss, &of, call->context->numbers, call->in[0],
                                     call->in[1], gains_of(call), call->out[0]);
}

static int softmax_each(const struct ls_card_call *call)
{
    const struct ls_cuda_classes of = ls_card_classes(call->op->input[0], call->op->attr.loss.axis);
    const struct ls_cuda_loss loss = loss_of_classes(call, &of);
    return ls_cuda_softmax_each(call->stream, &loss, &of, call->in[0], call->in[1], call->out[0]);
}

/* ---- Smooth L1 ------------------------------------------------------------------------------- */

/* Rows, the elements of a position along axis 1, and the positions of a row. */
static struct ls_cuda_classes row_axes(const struct ls_value *x)
{
    const int64_t rows = x->shape.dim[0];
    const int64_t inner = x->shape.rank > 2 ? ls_shape_count(&x->shape, 2, x->shape.rank) : 1;
    return (struct ls_cuda_classes){
        .outer = rows, .dim = size_of(x) / rows / inner, .inner = inner};
}

static struct ls_cuda_distances distances_of(const struct ls_card_call *call)
{
    return (struct ls_cuda_distances){.sigma2 = call->op->attr.loss.sigma2,
                                      .n = size_of(call->op->input[0]),
                                      .x = call->in[0],
                                      .target = call->in[1],
                                      .inside = ls_card_in(call, 2),
                                      .outside = ls_card_in(call, 3)};
}

static int smooth_l1(const struct ls_card_call *call)
{
    const struct ls_cuda_distances of = distances_of(call);
    const struct ls_cuda_classes axes = row_axes(call->op->input[0]);
    const struct ls_cuda_loss loss = loss_of_samples(call, axes.inner);
    return ls_cuda_smooth_l1(call->stream, &loss, &of, call->scratch, record_of(call));
}

static int smooth_l1_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_distances of = distances_of(call);
    const struct ls_cuda_loss loss = loss_of_samples(call, 1);
    return ls_cuda_smooth_l1_backward(call->stream, &loss, &of, call->context->numbers,
                                      call->out[0]);
}

static int smooth_l1_each(const struct ls_card_call *call)
{
    const struct ls_cuda_distances of = distances_of(call);
    const struct ls_cuda_classes axes = row_axes(call->op->input[0]);
    return ls_cuda_smooth_l1_each(call->stream, &of, &axes, call->out[0]);
}

#define DEFINED .bits = LS_BITS_DEFINED

const struct ls_card_op ls_card_pair_losses[LS_OP_KINDS] = {
    [LS_OP_HINGE_LOSS] = {.run = hinge, .scratch = scratch_of_numbers, DEFINED},
    [LS_OP_HINGE_LOSS_BACKWARD] = {.run = hinge_backward, DEFINED},
    [LS_OP_CONTRASTIVE_LOSS] = {.run = contrastive, .scratch = scratch_of_samples, DEFINED},
    [LS_OP_CONTRASTIVE_LOSS_BACKWARD] = {.run = contrastive_backward,
                                         .scratch = scratch_of_samples,
                                         DEFINED},
    [LS_OP_INFOGAIN_LOSS] = {.run = infogain,
                             .scratch = scratch_of_numbers,
                             .constants = gains_of_definition,
                             DEFINED},
    [LS_OP_INFOGAIN_LOSS_BACKWARD] = {.run = infogain_backward,
                                      .constants = gains_of_definition,
                                      DEFINED},
    [LS_OP_SMOOTH_L1_LOSS] = {.run = smooth_l1, .scratch = scratch_of_numbers, DEFINED},
    [LS_OP_SMOOTH_L1_LOSS_BACKWARD] = {.run = smooth_l1_backward, DEFINED},
    [LS_OP_SMOOTH_L1_EACH] = {.run = smooth_l1_each, DEFINED},
    [LS_OP_SOFTMAX_EACH] = {.run = softmax_each, .constants = ls_card_class_weights, DEFINED},
};
