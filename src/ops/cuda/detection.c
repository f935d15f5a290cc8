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

/* ---- What was found -------------------------------------------------------------------------- */

static size_t detection_scratch(const struct ls_op *op)
{
    return ls_cuda_detection_scratch(&op->attr.detection, samples_of(op->input[1]));
}

static int detect(const struct ls_card_call *call)
{
    return ls_cuda_detect(call->stream, &call->op->attr.detection, samples_of(call->op->input[1]),
                          call->context->numbers, call->in[0], call->in[1], call->in[2],
                          call->scratch, call->out[0]);
}

/* Cells of a sample, in all inputs. */
static int64_t count_cells(const struct ls_op *op)
{
    int64_t cells = 0;
    for (int i = 0; i < op->inputs; i++)
        cells += op->attr.yolo_output.anchors * plane_of(op->input[i]);
    return cells;
}

static size_t yolo_output_scratch(const struct ls_op *op)
{
    return ls_cuda_yolo_output_scratch(&op->attr.yolo_output, op->input[0]->shape.dim[0],
                                       count_cells(op));
}

/* Which sizes there are the inputs say: those of a mask, or one for each anchor. */
static size_t count_biases(const struct ls_op *op)
{
    const struct ls_yolo_output_attr *attr = &op->attr.yolo_output;
    size_t count = (size_t)attr->anchors;
    for (int i = 0; attr->mask != NULL && i < op->inputs * attr->anchors; i++)
        count = attr->mask[i] >= count ? (size_t)attr->mask[i] + 1 : count;
    return count;
}

static size_t yolo_output_tables(const struct ls_op *op, uint32_t *to)
{
    const struct ls_yolo_output_attr *attr = &op->attr.yolo_output;
    const size_t inputs = (size_t)op->inputs, masks = inputs * (size_t)attr->anchors;
    size_t at = put_words(to, 0, attr->biases, 2 * count_biases(op));
    at = put_words(to, at, attr->mask, attr->mask != NULL ? masks : 0);
    return put_words(to, at, attr->steps, attr->steps != NULL ? inputs : 0);
}

static int yolo_output(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    struct ls_yolo_output_attr attr = op->attr.yolo_output;
    const int64_t cells = count_cells(op);
    const uint32_t *words = (const uint32_t *)(const void *)call->constants;
    const size_t masks = attr.mask != NULL ? (size_t)(op->inputs * attr.anchors) : 0;
    int64_t first = 0;
    attr.biases = call->constants;
    words += 2 * count_biases(op);
    attr.mask = attr.mask != NULL ? words : NULL;
    attr.steps = attr.steps != NULL ? words + masks : NULL;
    for (int i = 0; i < op->inputs; i++) {
        const struct ls_cuda_planes of = planes_of(call, i);
        const int code =
            ls_cuda_yolo_list(call->stream, &attr, i, &of, cells, first, call->scratch);
        if (code != cudaSuccess)
            return code;
        first += attr.anchors * of.rows * of.columns;
    }
    return ls_cuda_yolo_keep(call->stream, &attr, op->input[0]->shape.dim[0], cells,
                             call->context->numbers, call->scratch, call->out[0]);
}

static size_t proposal_scratch(const struct ls_op *op)
{
    return ls_cuda_proposal_scratch(&op->attr.proposal, op->input[0]->shape.dim[0],
                                    plane_of(op->input[0]));
}

static size_t proposal_tables(const struct ls_op *op, uint32_t *to)
{
    const struct ls_proposal_attr *attr = &op->attr.proposal;
    const size_t ratios = put_words(to, 0, attr->ratio, (size_t)attr->ratios);
    return put_words(to, ratios, attr->scale, (size_t)attr->scales);
}

static int propose(const struct ls_card_call *call)
{
    struct ls_proposal_attr attr = call->op->attr.proposal;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const struct ls_cuda_proposals of = {.samples = x->dim[0],
                                         .rows = x->dim[2],
                                         .columns = x->dim[3],
                                         .score = call->in[0],
                                         .difference = call->in[1],
                                         .info = call->in[2],
                                         .region = call->out[0],
                                         .region_score = ls_card_out(call, 1)};
    attr.ratio = call->constants;
    attr.scale = call->constants + attr.ratios;
    return ls_cuda_propose(call->stream, &attr, &of, call->scratch);
}

static int hardest_regions(const struct ls_card_call *call)
{
    const struct ls_shape *rois = &call->op->input[0]->shape;
    const int64_t count = ls_shape_size(&call->op->input[1]->shape);
    const struct ls_cuda_hardest of = {.count = count,
                                       .inner = count / rois->dim[0],
                                       .each = ls_shape_size(&call->op->input[3]->shape) / count,
                                       .rois = call->in[0],
                                       .loss = call->in[1],
                                       .label = call->in[2],
                                       .weight = call->in[3],
                                       .new_label = call->out[0],
                                       .new_weight = call->out[1]};
    return ls_cuda_hardest_regions(call->stream, &call->op->attr.hardest, &of);
}

/* ---- How much of it is right ----------------------------------------------------------------- */

/* The planes of regions, or rows of what was found. */
static struct ls_cuda_planes found_of(const struct ls_card_call *call)
{
    const struct ls_value *x = call->op->input[0];
    if (call->op->kind == LS_OP_REGION_EVALUATE)
        return planes_of(call, 0);
    return (struct ls_cuda_planes){.samples = samples_of(x), .x = call->in[0]};
}

static size_t evaluation_scratch(const struct ls_op *op)
{
    const struct ls_value *x = op->input[0];
    return ls_cuda_evaluation_scratch(
        &op->attr.evaluate, op->kind == LS_OP_REGION_EVALUATE ? x->shape.dim[0] : samples_of(x));
}

/* Sizes of anchors, if there are any, and of pictures, if these count. */
static size_t evaluation_tables(const struct ls_op *op, uint32_t *to)
{
    const struct ls_evaluate_attr *attr = &op->attr.evaluate;
    const size_t anchors = put_words(to, 0, attr->anchor_sizes, 2 * (size_t)attr->anchors);
    const size_t pictures = attr->pictures.sizes != NULL ? 2 * (size_t)attr->pictures.count : 0;
    return put_words(to, anchors, attr->pictures.sizes, pictures);
}

static int evaluate(const struct ls_card_call *call)
{
    struct ls_evaluate_attr attr = call->op->attr.evaluate;
    struct ls_cuda_planes of = found_of(call);
    of.truths = call->in[1];
    attr.anchor_sizes = call->constants;
    if (attr.pictures.sizes != NULL)
        attr.pictures.sizes = (const int32_t *)(const void *)(call->constants + 2 * attr.anchors);
    return ls_cuda_evaluate(call->stream, &attr, &of, call->context->numbers, call->scratch,
                            call->context->partials + attr.truths,
                            call->context->lists + attr.list);
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
    case LS_OP_YOLO_OUTPUT:
        return yolo_output_tables(op, to);
    case LS_OP_PROPOSAL:
        return proposal_tables(op, to);
    case LS_OP_DETECTION_EVALUATE:
    case LS_OP_REGION_EVALUATE:
        return evaluation_tables(op, to);
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
    [LS_OP_DETECTION_OUTPUT] = {.run = detect, .scratch = detection_scratch},
    [LS_OP_YOLO_OUTPUT] = {.run = yolo_output,
                           .scratch = yolo_output_scratch,
                           .table_bytes = table_bytes,
                           .make_table = make_table},
    [LS_OP_PROPOSAL] = {.run = propose,
                        .scratch = proposal_scratch,
                        .table_bytes = table_bytes,
                        .make_table = make_table},
    [LS_OP_HARDEST_REGIONS] = {.run = hardest_regions, .bits = LS_BITS_EXACT},
    [LS_OP_DETECTION_EVALUATE] = {.run = evaluate,
                                  .scratch = evaluation_scratch,
                                  .table_bytes = table_bytes,
                                  .make_table = make_table},
    [LS_OP_REGION_EVALUATE] = {.run = evaluate,
                               .scratch = evaluation_scratch,
                               .table_bytes = table_bytes,
                               .make_table = make_table},
};
