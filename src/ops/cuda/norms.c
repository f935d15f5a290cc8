/* Normalisation by the batch and by sample. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/norms.h"

#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/cuda/values.h"

/* ---- By the batch ---------------------------------------------------------------------------- */

static int64_t rows_of(const struct ls_value *x)
{
    return x->rows > 0 ? x->rows : 1;
}

/* Parts of the micro-batch; by saved averages all of it is one. */
static int parts_of(const struct ls_card_call *call)
{
    const int moments = call->op->attr.batch_norm.moments;
    if (moments < 0)
        return 1;
    return call->context->parts[call->op->layer->graph->syncs[moments].grouping].count;
}

static struct ls_part part_of(const struct ls_card_call *call, const struct ls_value *x, int p)
{
    const int moments = call->op->attr.batch_norm.moments;
    if (moments < 0)
        return (struct ls_part){.count = x->shape.dim[0] / rows_of(x)};
    struct ls_part part =
        call->context->parts[call->op->layer->graph->syncs[moments].grouping].part[p];
    if (rows_of(x) == x->shape.dim[0]) /* its one sample may be the batch */
        part.count = 1;
    return part;
}

static struct ls_cuda_part_rows rows_of_part(const struct ls_value *x, const struct ls_part *part)
{
    return (struct ls_cuda_part_rows){.last = ls_card_last(x),
                                      .bf16 = ls_card_is_bf16(x),
                                      .channels = x->shape.dim[1],
                                      .points = ls_shape_count(&x->shape, 2, x->shape.rank),
                                      .first = part->first * rows_of(x),
                                      .rows = part->count * rows_of(x)};
}

static double *partial_row(const struct ls_card_call *call, const struct ls_value *x, int sync,
                           int p)
{
    return call->context->partial[sync] +
           p * (2 * ls_sync_round(x->shape.dim[1]) + LS_SYNC_ROW_END);
}

static int moments(const struct ls_card_call *call)
{
    const struct ls_value *x = call->op->input[0];
    int code = cudaSuccess;
    for (int p = 0; p < parts_of(call) && code == cudaSuccess; p++) {
        const struct ls_part part = part_of(call, x, p);
        const struct ls_cuda_part_rows of = rows_of_part(x, &part);
        code = ls_cuda_moments(call->stream, &of, call->in[0],
                               partial_row(call, x, call->op->attr.batch_norm.moments, p));
    }
    return code;
}

/* What part p is normalised by; inputs behind x (and y): averages, their divisor, scale, bias. */
static struct ls_cuda_batch_norm norm_of(const struct ls_card_call *call, int p)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const bool forward = call->op->kind == LS_OP_BATCH_NORM;
    const struct ls_value *x = call->op->input[forward ? 0 : 1];
    const int first = forward ? 1 : 3;
    const int64_t padded = ls_sync_round(x->shape.dim[1]);
    const struct ls_part part = part_of(call, x, p);
    struct ls_cuda_batch_norm of = {.rows = rows_of_part(x, &part),
                                    .scale = ls_card_in(call, first + 3),
                                    .bias = ls_card_in(call, first + 4),
                                    .eps = attr->eps,
                                    .relu = attr->relu,
                                    .slope = attr->relu_slope};
    if (attr->moments < 0) {
        of.mean = ls_card_in(call, first);
        of.variance = ls_card_in(call, first + 1);
        of.divisor = ls_card_in(call, first + 2);
        return of;
    }
    of.merged = call->context->merged[attr->moments] + part.merged * 4 * padded;
    if (call->op->kind == LS_OP_BATCH_NORM_BACKWARD)
        of.sums = call->context->merged[attr->sums] + part.merged * 2 * padded;
    return of;
}

static int batch_norm(const struct ls_card_call *call)
{
    int code = cudaSuccess;
    for (int p = 0; p < parts_of(call) && code == cudaSuccess; p++) {
        const struct ls_cuda_batch_norm of = norm_of(call, p);
        code = ls_cuda_batch_norm_forward(call->stream, &of, call->in[0], call->out[0]);
    }
    return code;
}

static int batch_norm_backward(const struct ls_card_call *call)
{
    int code = cudaSuccess;
    for (int p = 0; p < parts_of(call) && code == cudaSuccess; p++) {
        const struct ls_cuda_batch_norm of = norm_of(call, p);
        code = ls_cuda_batch_norm_backward(call->stream, &of, call->in[0], call->in[1],
                                           ls_card_in(call, 2), call->out[0]);
    }
    return code;
}

static size_t sums_scratch(const struct ls_op *op)
{
    return 2 * (size_t)op->input[1]->shape.dim[1] * sizeof(double);
}

/* out: (dscale), (dbias): the sums of dz x^ and of dz over all parts. */
static int batch_norm_sums(const struct ls_card_call *call)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const struct ls_value *x = call->op->input[1];
    const int64_t channels = x->shape.dim[1];
    const bool partial = attr->sums >= 0 && attr->moments >= 0;
    double *total = call->scratch;
    int code = cudaSuccess;
    for (int p = 0; p < parts_of(call) && code == cudaSuccess; p++) {
        const struct ls_cuda_batch_norm of = norm_of(call, p);
        code = ls_cuda_batch_norm_sums(call->stream, &of, call->in[0], call->in[1],
                                       ls_card_in(call, 2), p == 0,
                                       partial ? partial_row(call, x, attr->sums, p) : NULL, total);
    }
    if (code == cudaSuccess && ls_card_out(call, 0) != NULL)
        code = ls_cuda_round(call->stream, total + channels, channels, call->out[0]);
    if (code == cudaSuccess && ls_card_out(call, 1) != NULL)
        code = ls_cuda_round(call->stream, total, channels, call->out[1]);
    return code;
}

/* The values of an op come first: x, or dy, x, (y). */
static unsigned learned_inputs(const struct ls_op *op)
{
    return op->kind == LS_OP_MOMENTS || op->kind == LS_OP_BATCH_NORM ? ~0U << 1 : ~0U << 3;
}

/* Parameters, averages and sums are plain; all else lies as x does. */
static int batch_norm_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                              struct ls_error *error)
{
    const bool forward = op->kind == LS_OP_MOMENTS || op->kind == LS_OP_BATCH_NORM;
    const struct ls_layout *layout = layouts->in[forward ? 0 : 1];
    (void)error;
    if (layout != &ls_layout_channels_last)
        layout = &ls_layout_plain;
    ls_card_lay_out(op, layouts, layout, learned_inputs(op),
                    op->kind == LS_OP_BATCH_NORM_SUMS ? ~0U : 0);
    return 0;
}

static bool batch_norm_takes_bf16(const struct ls_op *op)
{
    return ls_card_all_bf16(op, learned_inputs(op), op->kind == LS_OP_BATCH_NORM_SUMS ? ~0U : 0);
}

/* ---- By sample ------------------------------------------------------------------------------- */

static struct ls_cuda_normalize normalize_of(const struct ls_op *op)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    const struct ls_shape *x = &op->input[0]->shape;
    return (struct ls_cuda_normalize){.outer = ls_shape_count(x, 0, attr->axis),
                                      .dim = x->dim[attr->axis],
                                      .inner = ls_shape_count(x, attr->axis + 1, x->rank),
                                      .groups = attr->groups,
                                      .bf16 = ls_card_is_bf16(op->input[0]),
                                      .variance = attr->variance,
                                      .behind = attr->behind,
                                      .elements = attr->elements,
                                      .around_zero = attr->around_zero,
                                      .eps = attr->eps};
}

static int normalize(const struct ls_card_call *call)
{
    const struct ls_cuda_normalize of = normalize_of(call->op);
    return ls_cuda_normalize_forward(call->stream, &of, call->in[0], ls_card_in(call, 1),
                                     ls_card_in(call, 2), call->out[0], ls_card_out(call, 1));
}

/* in: dy, x, stats, (scale). */
static int normalize_data(const struct ls_card_call *call)
{
    const struct ls_cuda_normalize of = normalize_of(call->op);
    return ls_cuda_normalize_data(call->stream, &of, call->in[0], call->in[1], call->in[2],
                                  ls_card_in(call, 3), call->out[0]);
}

static int normalize_sums(const struct ls_card_call *call)
{
    const struct ls_cuda_normalize of = normalize_of(call->op);
    return ls_cuda_normalize_sums(call->stream, &of, call->in[0], call->in[1], call->in[2],
                                  ls_card_out(call, 0), ls_card_out(call, 1));
}

/* Not scale, bias, their gradients and what is kept for the backward pass. */
static bool normalize_takes_bf16(const struct ls_op *op)
{
    const bool forward = op->kind == LS_OP_NORMALIZE, sums = op->kind == LS_OP_NORMALIZE_SUMS;
    return ls_card_all_bf16(op, forward ? ~0U << 1 : ~0U << 2, forward ? ~0U << 1 : sums ? ~0U : 0);
}

#define BY_THE_BATCH .layouts = batch_norm_layouts, .takes_bf16 = batch_norm_takes_bf16

const struct ls_card_op ls_card_norms[LS_OP_KINDS] = {
    [LS_OP_MOMENTS] = {.run = moments, BY_THE_BATCH},
    [LS_OP_BATCH_NORM] = {.run = batch_norm, BY_THE_BATCH},
    [LS_OP_BATCH_NORM_SUMS] = {.run = batch_norm_sums, .scratch = sums_scratch, BY_THE_BATCH},
    [LS_OP_BATCH_NORM_BACKWARD] = {.run = batch_norm_backward, BY_THE_BATCH},
    [LS_OP_NORMALIZE] = {.run = normalize, .takes_bf16 = normalize_takes_bf16},
    [LS_OP_NORMALIZE_DATA] = {.run = normalize_data, .takes_bf16 = normalize_takes_bf16},
    [LS_OP_NORMALIZE_SUMS] = {.run = normalize_sums, .takes_bf16 = normalize_takes_bf16},
};
