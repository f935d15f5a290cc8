/* Ops that find boxes, learn to, and judge what was found. See ops/cuda/ops.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/detection.h"

#include <string.h>

#include "ops/cuda/ops.h"

/* Samples of rows of true boxes. */
static int64_t samples_of(const struct ls_value *rows)
{
    return ls_value_sample_rows(rows) / rows->rows;
}

/* Puts `count` words at `to`, behind `at` others; to NULL: they are counted. Returns how many there
 * are then. */
static size_t put_words(uint32_t *to, size_t at, const void *words, size_t count)
{
    if (to != NULL && count > 0)
        memcpy(to + at, words, count * sizeof *to);
    return at + count;
}

static struct ls_cuda_planes planes_of(const struct ls_card_call *call, int which)
{
    const struct ls_shape *x = &call->op->input[which]->shape;
    return (struct ls_cuda_planes){
        .samples = x->dim[0], .rows = x->dim[2], .columns = x->dim[3], .x = call->in[which]};
}

static int64_t plane_of(const struct ls_value *x)
{
    return x->shape.dim[2] * x->shape.dim[3];
}

/* ---- SSD's loss ------------------------------------------------------------------------------ */

static size_t multibox_scratch(const struct ls_op *op)
{
    return ls_cuda_multibox_scratch(&op->attr.multibox, samples_of(op->input[3]));
}

static int multibox(const struct ls_card_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    const struct ls_cuda_multibox_values of = {.loc = call->in[0],
                                               .conf = call->in[1],
                                               .prior = call->in[2],
                                               .rows = call->in[3],
                                               .dloc = call->out[0],
                                               .dconf = call->out[1]};
    double *partials = call->context->partials;
    return ls_cuda_multibox(call->stream, attr, samples_of(call->op->input[3]), &of, call->scratch,
                            partials + attr->metric_offset,
                            attr->count_offset >= 0 ? partials + attr->count_offset : NULL);
}

static size_t matches_scratch(const struct ls_op *op)
{
    return ls_cuda_multibox_scratch(&op->attr.multibox, samples_of(op->input[1]));
}

static int count_matches(const struct ls_card_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    return ls_cuda_count_matches(call->stream, attr, samples_of(call->op->input[1]), call->in[0],
                                 call->in[1], call->scratch,
                                 call->context->partials + attr->metric_offset);
}

/* dx from slopes that the loss has left. */
static int scale_slopes(const struct ls_card_call *call, float weight, int normalizer)
{
    return ls_cuda_scale_slopes(call->stream, weight, call->context->numbers, normalizer,
                                call->in[0], call->out[0],
                                ls_shape_size(&call->op->output[0]->shape));
}

static int multibox_backward(const struct ls_card_call *call)
{
    const struct ls_multibox_attr *attr = &call->op->attr.multibox;
    return scale_slopes(call, attr->loss_weight, attr->normalizer);
}

/* ---- YOLO's losses --------------------------------------------------------------------------- */

/* What the loss of a micro-batch counts. */
static double count_of(const struct ls_loss_attr *loss, int64_t samples)
{
    return loss->normalization == LS_NORM_NONE || loss->normalization == LS_NORM_WEIGHTS
               ? 0
               : (double)samples;
}

static size_t region_loss_scratch(const struct ls_op *op)
{
    const struct ls_region_attr *attr = &op->attr.region;
    return ls_cuda_planes_scratch(op->input[0]->shape.dim[0], plane_of(op->input[0]), attr->anchors,
                                  attr->classes, attr->objects);
}

static size_t region_tables(const struct ls_op *op, uint32_t *to)
{
    const struct ls_region_attr *attr = &op->attr.region;
    return put_words(to, 0, attr->anchor_sizes, 2 * (size_t)attr->anchors);
}

static int region_loss(const struct ls_card_call *call)
{
    struct ls_region_attr attr = call->op->attr.region;
    struct ls_cuda_planes of = planes_of(call, 0);
    of.truths = call->in[1];
    attr.anchor_sizes = call->constants;
    return ls_cuda_region_loss(call->stream, &attr, &of, call->scratch,
                               count_of(&attr.loss, of.samples), call->out[0],
                               call->context->partials + attr.loss.metric_offset);
}

static int region_loss_backward(const struct ls_card_call *call)
{
    const struct ls_loss_attr *loss = &call->op->attr.region.loss;
    return scale_slopes(call, loss->loss_weight, loss->normalizer);
}

static size_t yolo_loss_scratch(const struct ls_op *op)
{
    const struct ls_yolo_attr *attr = &op->attr.yolo;
    return ls_cuda_planes_scratch(op->input[0]->shape.dim[0], plane_of(op->input[0]), attr->anchors,
                                  attr->classes, attr->objects * attr->anchors);
}

static size_t yolo_tables(const struct ls_op *op, uint32_t *to)
{
    const struct ls_yolo_attr *attr = &op->attr.yolo;
    const size_t sizes = put_words(to, 0, attr->biases, 2 * (size_t)attr->all);
    return put_words(to, sizes, attr->mask, (size_t)attr->anchors);
}

static int yolo_loss(const struct ls_card_call *call)
{
    struct ls_yolo_attr attr = call->op->attr.yolo;
    struct ls_cuda_planes of = planes_of(call, 0);
    of.truths = call->in[1];
    attr.biases = call->constants;
    attr.mask = (const uint32_t *)(const void *)(call->constants + 2 * attr.all);
    return ls_cuda_yolo_loss(call->stream, &attr, &of, call->scratch,
                             count_of(&attr.loss, of.samples), call->out[0],
                             call->context->partials + attr.loss.metric_offset);
}

static int yolo_loss_backward(const struct ls_card_call *call)
{
    const struct ls_loss_attr *loss = &call->op->attr.yolo.loss;
    return scale_slopes(call, loss->loss_weight, loss->normalizer);
}

/* ---- What kernels read of the definition ----------------------------------------------------- */

/* Puts arrays of the definition, one behind the other, at `to`, if it is there; returns how many
 * words they are. */
static size_t put_tables(const struct ls_op *op, uint32_t *to)
{
    switch (op->kind) {
    case LS_OP_REGION_LOSS:
        return region_tables(op, to);
    case LS_OP_YOLO_LOSS:
        return yolo_tables(op, to);
    default:
        return 0;
    }
}

static size_t table_bytes(const struct ls_op *op)
{
    return put_tables(op, NULL) * sizeof(uint32_t);
}

static void make_table(const struct ls_op *op, void *table)
{
    put_tables(op, table);
}

const struct ls_card_op ls_card_detection[LS_OP_KINDS] = {
    [LS_OP_MULTIBOX_LOSS] = {.run = multibox, .scratch = multibox_scratch},
    [LS_OP_MULTIBOX_LOSS_BACKWARD] = {.run = multibox_backward},
    [LS_OP_COUNT_MATCHES] = {.run = count_matches,
                             .scratch = matches_scratch,
                             .bits = LS_BITS_EXACT},
    [LS_OP_REGION_LOSS] = {.run = region_loss,
                           .scratch = region_loss_scratch,
                           .table_bytes = table_bytes,
                           .make_table = make_table},
    [LS_OP_REGION_LOSS_BACKWARD] = {.run = region_loss_backward},
    [LS_OP_YOLO_LOSS] = {.run = yolo_loss,
                         .scratch = yolo_loss_scratch,
                         .table_bytes = table_bytes,
                         .make_table = make_table},
    [LS_OP_YOLO_LOSS_BACKWARD] = {.run = yolo_loss_backward},
};
