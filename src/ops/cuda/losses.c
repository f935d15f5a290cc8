/* Softmax, losses and counts. See ops/cuda/ops.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/losses.h"

#include <string.h>

#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/values.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

struct ls_cuda_classes ls_card_classes(const struct ls_value *typed, int axis)
{
    const struct ls_shape *shape = &typed->shape;
    return (struct ls_cuda_classes){.outer = ls_shape_count(shape, 0, axis),
                                    .dim = shape->dim[axis],
                                    .inner = ls_shape_count(shape, axis + 1, shape->rank),
                                    .last = ls_card_last(typed),
                                    .bf16 = ls_card_is_bf16(typed)};
}

static int class_axis(const struct ls_op *op)
{
    return op->kind == LS_OP_SOFTMAX || op->kind == LS_OP_SOFTMAX_BACKWARD ? op->attr.axis
           : op->kind == LS_OP_ACCURACY                                    ? op->attr.accuracy.axis
           : op->kind == LS_OP_MEAN_IOU                                    ? op->attr.mean_iou.axis
                                                                           : op->attr.loss.axis;
}

/* Others are scores, probabilities and the like. */
static unsigned label_inputs(const struct ls_op *op)
{
    return op->kind == LS_OP_SOFTMAX_BACKWARD ? 0 : ~0U << 1;
}

/* Classes may lie last where they are channels; labels and masks are plain. A mask has extents of
 * its own, in Caffe's order. */
static int class_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    const bool masked = op->kind == LS_OP_SOFTMAX && op->inputs > 1;
    const bool channels = class_axis(op) == 1 && !masked;
    (void)error;
    ls_card_lay_out(op, layouts, channels ? ls_card_layout(op, layouts) : &ls_layout_plain,
                    label_inputs(op), 0);
    return 0;
}

/* Scores, and what their gradient is: probabilities and labels are fp32. */
static bool class_takes_bf16(const struct ls_op *op)
{
    const bool backward =
        op->kind == LS_OP_SOFTMAX_BACKWARD || op->kind == LS_OP_SOFTMAX_LOSS_BACKWARD;
    return ls_card_all_bf16(op, backward ? ~0U : ~1U, backward ? 0 : ~0U);
}

static double *record_of(const struct ls_card_call *call, int offset)
{
    return call->context->partials + offset;
}

struct ls_cuda_loss ls_card_loss(const struct ls_card_call *call, int64_t samples,
                                 int64_t positions)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    return (struct ls_cuda_loss){.normalization = attr->normalization,
                                 .has_ignore = attr->has_ignore,
                                 .clamped = attr->clamped,
                                 .ignore_label = attr->ignore_label,
                                 .normalizer = attr->normalizer,
                                 .loss_weight = attr->loss_weight,
                                 .smoothing = attr->smoothing,
                                 .scale = attr->scale,
                                 .samples = samples,
                                 .positions = positions,
                                 .class_weight = call->constants};
}

const float *ls_card_class_weights(const struct ls_op *op, size_t *count)
{
    *count = op->attr.loss.class_weight != NULL ? (size_t)op->attr.loss.classes : 0;
    return op->attr.loss.class_weight;
}

/* ---- Softmax --------------------------------------------------------------------------------- */

static int softmax(const struct ls_card_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_cuda_classes of = ls_card_classes(op->input[0], op->attr.axis);
    struct ls_cuda_mask mask = {.rank = 0};
    if (op->inputs > 1) {
        mask.rank = op->input[0]->shape.rank;
        mask.numbers = call->in[1];
        for (int a = 0; a < mask.rank; a++) {
            mask.x[a] = op->input[0]->shape.dim[a];
            mask.mask[a] = op->input[1]->shape.dim[a];
        }
    }
    return ls_cuda_softmax(call->stream, &of, &mask, call->in[0], call->out[0]);
}

static int softmax_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_classes of = ls_card_classes(call->op->output[0], call->op->attr.axis);
    return ls_cuda_softmax_backward(call->stream, &of, call->in[0], call->in[1], call->out[0]);
}

/* ---- Softmax loss ---------------------------------------------------------------------------- */

static size_t softmax_loss_scratch(const struct ls_op *op)
{
    const struct ls_cuda_classes of = ls_card_classes(op->input[0], op->attr.loss.axis);
    const int64_t parts = of.inner > 1 ? of.dim * (of.inner / 256 + 1) : 0;
    return ls_cuda_loss_scratch(of.outer * of.inner,
                                op->attr.loss.smoothing > 0 ? of.outer * (1 + parts) : 0);
}

static int softmax_loss(const struct ls_card_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_cuda_classes of = ls_card_classes(call->op->input[0], attr->axis);
    const struct ls_cuda_loss loss = ls_card_loss(call, of.outer, of.outer * of.inner);
    const struct ls_cuda_mask none = {.rank = 0};
    const int code = ls_cuda_softmax(call->stream, &of, &none, call->in[0], call->out[0]);
    return code != cudaSuccess
               ? code
               : ls_cuda_softmax_loss(call->stream, &loss, &of, call->out[0], call->in[1],
                                      call->scratch, record_of(call, attr->metric_offset));
}

static int softmax_loss_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_classes of =
        ls_card_classes(call->op->output[0], call->op->attr.loss.axis);
    const struct ls_cuda_loss loss = ls_card_loss(call, of.outer, of.outer * of.inner);
    return ls_cuda_softmax_loss_backward(call->stream, &loss, &of, call->context->numbers,
                                         call->in[0], call->in[1], call->out[0]);
}

/* ---- Of probabilities ------------------------------------------------------------------------ */

static size_t log_loss_scratch(const struct ls_op *op)
{
    return ls_cuda_loss_scratch(op->input[0]->shape.dim[0], 0);
}

static int log_loss(const struct ls_card_call *call)
{
    const struct ls_value *p = call->op->input[0];
    const int64_t samples = p->shape.dim[0];
    const struct ls_cuda_loss loss = ls_card_loss(call, samples, samples);
    return ls_cuda_log_loss(call->stream, &loss, size_of(p) / samples, call->in[0], call->in[1],
                            call->scratch, record_of(call, call->op->attr.loss.metric_offset));
}

static int log_loss_backward(const struct ls_card_call *call)
{
    const struct ls_value *p = call->op->input[0];
    const int64_t samples = p->shape.dim[0];
    const struct ls_cuda_loss loss = ls_card_loss(call, samples, samples);
    return ls_cuda_log_loss_backward(call->stream, &loss, size_of(p) / samples,
                                     call->context->numbers, call->in[0], call->in[1],
                                     call->out[0]);
}

/* ---- Of numbers ------------------------------------------------------------------------------ */

static size_t sigmoid_loss_scratch(const struct ls_op *op)
{
    return ls_cuda_loss_scratch(size_of(op->input[0]), 0);
}

static int sigmoid_loss(const struct ls_card_call *call)
{
    const struct ls_value *x = call->op->input[0];
    const struct ls_cuda_loss loss = ls_card_loss(call, ls_value_sample_rows(x), size_of(x));
    return ls_cuda_sigmoid_loss(call->stream, &loss, size_of(x), call->in[0], call->in[1],
                                call->scratch, record_of(call, call->op->attr.loss.metric_offset));
}

static int sigmoid_loss_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_loss loss = ls_card_loss(call, 0, 0);
    return ls_cuda_sigmoid_loss_backward(call->stream, &loss, size_of(call->op->output[0]),
                                         call->context->numbers, call->in[0], call->in[1],
                                         call->out[0]);
}

static int euclidean_loss(const struct ls_card_call *call)
{
    const struct ls_value *x = call->op->input[0];
    const int64_t samples = ls_value_sample_rows(x);
    const struct ls_cuda_loss loss = ls_card_loss(call, samples, samples);
    return ls_cuda_euclidean_loss(call->stream, &loss, size_of(x), call->in[0], call->in[1],
                                  record_of(call, call->op->attr.loss.metric_offset));
}

static int euclidean_loss_backward(const struct ls_card_call *call)
{
    const struct ls_cuda_loss loss = ls_card_loss(call, 0, 0);
    return ls_cuda_euclidean_loss_backward(call->stream, &loss, size_of(call->op->output[0]),
                                           call->context->numbers, call->in[0], call->in[1],
                                           call->out[0]);
}

/* The sum of all numbers alone goes to the record. */
static int sum_loss(const struct ls_card_call *call)
{
    const struct ls_cuda_reduction of = {.method = LS_REDUCE_SUM,
                                         .coeff = 1,
                                         .count = 1,
                                         .run = size_of(call->op->input[0]),
                                         .uncounted = true};
    return ls_cuda_reduce_loss(call->stream, &of, call->in[0],
                               record_of(call, call->op->attr.loss.metric_offset));
}

static int sum_loss_backward(const struct ls_card_call *call)
{
    uint32_t bits;
    memcpy(&bits, &call->op->attr.loss.loss_weight, sizeof bits);
    return ls_cuda_fill_words(call->stream, call->out[0], bits,
                              (size_t)size_of(call->op->output[0]));
}

/* ---- Counts ---------------------------------------------------------------------------------- */

static struct ls_cuda_accuracy accuracy_of(const struct ls_op *op)
{
    const struct ls_accuracy_attr *attr = &op->attr.accuracy;
    return (struct ls_cuda_accuracy){.of = ls_card_classes(op->input[0], attr->axis),
                                     .top_k = attr->top_k,
                                     .ignore_label = attr->ignore_label,
                                     .has_ignore = attr->has_ignore,
                                     .class_offset = attr->class_offset - attr->metric_offset,
                                     .confusion_offset =
                                         attr->confusion_offset - attr->metric_offset,
                                     .has_class = attr->class_offset >= 0,
                                     .has_confusion = attr->confusion_offset >= 0};
}

static size_t accuracy_scratch(const struct ls_op *op)
{
    const struct ls_cuda_accuracy of = accuracy_of(op);
    return ls_cuda_accuracy_scratch(&of);
}

static int accuracy(const struct ls_card_call *call)
{
    const struct ls_cuda_accuracy of = accuracy_of(call->op);
    return ls_cuda_count_hits(call->stream, &of, call->in[0], call->in[1], call->scratch,
                              record_of(call, call->op->attr.accuracy.metric_offset));
}

static struct ls_cuda_accuracy mean_iou_of(const struct ls_op *op)
{
    const struct ls_mean_iou_attr *attr = &op->attr.mean_iou;
    return (struct ls_cuda_accuracy){.of = ls_card_classes(op->input[0], attr->axis),
                                     .ignore_label = attr->ignore_label,
                                     .has_ignore = attr->has_ignore};
}

static size_t mean_iou_scratch(const struct ls_op *op)
{
    const struct ls_cuda_accuracy of = mean_iou_of(op);
    return ls_cuda_accuracy_scratch(&of);
}

static int mean_iou(const struct ls_card_call *call)
{
    const struct ls_cuda_accuracy of = mean_iou_of(call->op);
    return ls_cuda_mean_iou(call->stream, &of, call->in[0], call->in[1], call->scratch,
                            record_of(call, call->op->attr.mean_iou.metric_offset));
}

static int count_labels(const struct ls_card_call *call)
{
    const struct ls_cuda_loss loss = ls_card_loss(call, 0, 0);
    return ls_cuda_count_labels(call->stream, &loss, call->op->attr.loss.classes,
                                size_of(call->op->input[0]), call->in[0], ls_card_in(call, 1),
                                record_of(call, call->op->attr.loss.metric_offset));
}

#define BY_CLASS .layouts = class_layouts, .takes_bf16 = class_takes_bf16

const struct ls_card_op ls_card_losses[LS_OP_KINDS] = {
    [LS_OP_SOFTMAX] = {.run = softmax, BY_CLASS},
    [LS_OP_SOFTMAX_BACKWARD] = {.run = softmax_backward, BY_CLASS},
    [LS_OP_SOFTMAX_LOSS] = {.run = softmax_loss,
                            .scratch = softmax_loss_scratch,
                            .constants = ls_card_class_weights,
                            BY_CLASS},
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = {.run = softmax_loss_backward,
                                     .constants = ls_card_class_weights,
                                     BY_CLASS},
    [LS_OP_LOG_LOSS] = {.run = log_loss,
                        .scratch = log_loss_scratch,
                        .constants = ls_card_class_weights},
    [LS_OP_LOG_LOSS_BACKWARD] = {.run = log_loss_backward, .constants = ls_card_class_weights},
    [LS_OP_SIGMOID_LOSS] = {.run = sigmoid_loss, .scratch = sigmoid_loss_scratch},
    [LS_OP_SIGMOID_LOSS_BACKWARD] = {.run = sigmoid_loss_backward},
    [LS_OP_EUCLIDEAN_LOSS] = {.run = euclidean_loss},
    [LS_OP_EUCLIDEAN_LOSS_BACKWARD] = {.run = euclidean_loss_backward},
    [LS_OP_SUM_LOSS] = {.run = sum_loss},
    [LS_OP_SUM_LOSS_BACKWARD] = {.run = sum_loss_backward},
    [LS_OP_ACCURACY] = {.run = accuracy,
                        .scratch = accuracy_scratch,
                        .bits = LS_BITS_EXACT,
                        BY_CLASS},
    [LS_OP_MEAN_IOU] = {.run = mean_iou,
                        .scratch = mean_iou_scratch,
                        .bits = LS_BITS_EXACT,
                        BY_CLASS},
    [LS_OP_COUNT_LABELS] = {.run = count_labels,
                            .constants = ls_card_class_weights,
                            .bits = LS_BITS_EXACT},
};
