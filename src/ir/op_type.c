/* The record of each kind of op, in the order of enum ls_op_kind. A kind without a record does not
 * compile.
 *
 * Counts of FLOPs are rough: enough to tell cheap ops from expensive ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/op_type.h"

/* ---- FLOPs ----------------------------------------------------------------------------------- */

static double elements(const struct ls_value *value)
{
    return value == NULL ? 0 : (double)(ls_value_bytes(value) / ls_dtype_size(value->type));
}

static double per_element(const struct ls_op *op, double flops)
{
    return op->outputs > 0 ? flops * elements(op->output[0]) : 0;
}

/* For ops whose memory traffic is nearly all of their cost. */
static double two_flops(const struct ls_op *op)
{
    return per_element(op, 2);
}

/* 2 for each product that is summed up: y positions, or x positions where it is transposed, times
 * what one of them takes part in. */
static double products(const struct ls_value *positions, const struct ls_value *weights)
{
    int64_t own = weights->shape.rank > 0 && weights->shape.dim[0] > 0 ? weights->shape.dim[0] : 1;
    return 2 * (double)ls_shape_size(&positions->shape) *
           ((double)ls_shape_size(&weights->shape) / (double)own);
}

/* A convolution by its output, which is output 0; also the data gradient of a deconvolution. */
static double convolution_flops(const struct ls_op *op)
{
    return products(op->output[0], op->input[1]);
}

/* The same where the output of the convolution, or its gradient, is input 0. */
static double transposed_flops(const struct ls_op *op)
{
    return products(op->input[0], op->input[1]);
}

static double convolution_weights_flops(const struct ls_op *op)
{
    return products(op->input[1], op->output[0]);
}

static double deconvolution_weights_flops(const struct ls_op *op)
{
    return products(op->input[0], op->output[0]);
}

static double inner_product_flops(const struct ls_op *op)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    return 2 * (double)attr->m * (double)attr->k * (double)attr->n;
}

static double pooling_flops(const struct ls_op *op)
{
    const struct ls_window *window = &op->attr.pooling.window;
    double points = 1;
    for (int i = 0; i < window->axes; i++)
        points *= (double)window->kernel[i];
    return per_element(op, points);
}

static double activation_flops(const struct ls_op *op)
{
    return per_element(op, op->attr.activation.function == LS_RELU ? 1 : 20);
}

static double lrn_flops(const struct ls_op *op)
{
    return per_element(op, 100 + 2 * (double)op->attr.lrn.size);
}

static double dropout_flops(const struct ls_op *op)
{
    return per_element(op, op->inputs > 1 ? 2 : 60); /* 60: Philox, sixteen at a time */
}

static double softmax_flops(const struct ls_op *op)
{
    return per_element(op, 20);
}

static double fill_flops(const struct ls_op *op)
{
    return per_element(op, op->attr.fill.filler == NULL ? 1 : 300); /* 300: one by one */
}

double ls_op_operand_bytes(const struct ls_op *op)
{
    double bytes = 0;
    for (int i = 0; i < op->inputs; i++)
        bytes += op->input[i] != NULL ? (double)ls_value_bytes(op->input[i]) : 0;
    for (int i = 0; i < op->outputs; i++)
        bytes += op->output[i] != NULL ? (double)ls_value_bytes(op->output[i]) : 0;
    return bytes;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static void softmax_loss_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_loss_attr *attr = &op->attr.loss;
    *labels = (struct ls_op_labels){.classes = op->input[0]->shape.dim[attr->axis],
                                    .has_ignore = attr->has_ignore,
                                    .ignore_label = attr->ignore_label};
}

static void log_loss_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_loss_attr *attr = &op->attr.loss;
    const struct ls_shape *shape = &op->input[0]->shape;
    *labels = (struct ls_op_labels){.classes = ls_shape_size(shape) / shape->dim[0],
                                    .has_ignore = attr->has_ignore,
                                    .ignore_label = attr->ignore_label};
}

static void accuracy_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_accuracy_attr *attr = &op->attr.accuracy;
    *labels = (struct ls_op_labels){attr->classes, attr->has_ignore, attr->ignore_label};
}

static void mean_iou_labels(const struct ls_op *op, struct ls_op_labels *labels)
{
    const struct ls_mean_iou_attr *attr = &op->attr.mean_iou;
    *labels = (struct ls_op_labels){attr->classes, attr->has_ignore, attr->ignore_label};
}

/* ---- The table ------------------------------------------------------------------------------- */

/* All arguments are required, the last of them is flops; what is optional follows by its name. */
#define OP(kind_, name_, effect_, timing_, traffic_, ...)                                          \
    {                                                                                              \
        .kind = LS_OP_##kind_, .name = (name_), .effect = LS_EFFECT_##effect_,                     \
        .timing = LS_TIMING_##timing_, .traffic = (traffic_), .flops = __VA_ARGS__                 \
    }

static const struct ls_op_type op_types[] = {
    OP(REORDER, "reorder", NONE, PASS, 1, two_flops),
    OP(VIEW, "view", NONE, PASS, 0, two_flops, .backward = {LS_OP_VIEW}),

    /* Products with weights. */
    OP(CONVOLUTION, "convolution", NONE, PASS, 1, convolution_flops, .heavy = true,
       .backward = {LS_OP_CONVOLUTION_DATA, LS_OP_CONVOLUTION_WEIGHTS}),
    OP(CONVOLUTION_DATA, "convolution backward data", NONE, PASS, 1, transposed_flops),
    OP(CONVOLUTION_WEIGHTS, "convolution backward weights", NONE, WEIGHTS, 1,
       convolution_weights_flops),
    OP(DECONVOLUTION, "deconvolution", NONE, PASS, 1, transposed_flops, .heavy = true,
       .backward = {LS_OP_DECONVOLUTION_DATA, LS_OP_DECONVOLUTION_WEIGHTS}),
    OP(DECONVOLUTION_DATA, "deconvolution backward data", NONE, PASS, 1, convolution_flops),
    OP(DECONVOLUTION_WEIGHTS, "deconvolution backward weights", NONE, WEIGHTS, 1,
       deconvolution_weights_flops),
    OP(INNER_PRODUCT, "inner product", NONE, PASS, 1, inner_product_flops, .heavy = true,
       .backward = {LS_OP_INNER_PRODUCT_DATA, LS_OP_INNER_PRODUCT_WEIGHTS}),
    OP(INNER_PRODUCT_DATA, "inner product backward data", NONE, PASS, 1, inner_product_flops),
    OP(INNER_PRODUCT_WEIGHTS, "inner product backward weights", NONE, WEIGHTS, 1,
       inner_product_flops),

    /* Windows, functions of one number, normalisation along channels. */
    OP(POOLING, "pooling", NONE, PASS, 1, pooling_flops, .backward = {LS_OP_POOLING_BACKWARD}),
    OP(POOLING_BACKWARD, "pooling backward", NONE, PASS, 1, pooling_flops),
    OP(ACTIVATION, "activation", NONE, PASS, 1, activation_flops,
       .backward = {LS_OP_ACTIVATION_BACKWARD}),
    OP(ACTIVATION_BACKWARD, "activation backward", NONE, PASS, 1, two_flops),
    OP(PRELU, "prelu", NONE, PASS, 1, two_flops, .backward = {LS_OP_PRELU_DATA, LS_OP_PRELU_SLOPE}),
    OP(PRELU_DATA, "prelu backward data", NONE, PASS, 1, two_flops),
    OP(PRELU_SLOPE, "prelu backward slope", NONE, WEIGHTS, 1, two_flops),
    OP(LRN, "local response normalisation", NONE, PASS, 1, lrn_flops,
       .backward = {LS_OP_LRN_BACKWARD}),
    OP(LRN_BACKWARD, "local response normalisation backward", NONE, PASS, 1, lrn_flops),
    OP(DROPOUT, "dropout", NONE, PASS, 1, dropout_flops, .backward = {LS_OP_DROPOUT}),
    OP(SOFTMAX, "softmax", NONE, PASS, 1, softmax_flops, .backward = {LS_OP_SOFTMAX_BACKWARD}),
    OP(SOFTMAX_BACKWARD, "softmax backward", NONE, PASS, 1, two_flops),

    /* Losses and other measures. */
    OP(SOFTMAX_LOSS, "softmax loss", METRIC, PASS, 1, two_flops,
       .backward = {LS_OP_SOFTMAX_LOSS_BACKWARD}, .labels = softmax_loss_labels,
       .predicts_output = true),
    OP(SOFTMAX_LOSS_BACKWARD, "softmax loss backward", NONE, PASS, 1, two_flops),
    OP(LOG_LOSS, "log loss", METRIC, PASS, 1, two_flops, .backward = {LS_OP_LOG_LOSS_BACKWARD},
       .labels = log_loss_labels, .predicts_input = 3),
    OP(LOG_LOSS_BACKWARD, "log loss backward", NONE, PASS, 1, two_flops),
    OP(SIGMOID_LOSS, "sigmoid cross-entropy loss", METRIC, PASS, 1, two_flops,
       .backward = {LS_OP_SIGMOID_LOSS_BACKWARD}, .predicts_input = 4),
    OP(SIGMOID_LOSS_BACKWARD, "sigmoid cross-entropy loss backward", NONE, PASS, 1, two_flops),
    OP(EUCLIDEAN_LOSS, "euclidean loss", METRIC, PASS, 1, two_flops,
       .backward = {LS_OP_EUCLIDEAN_LOSS_BACKWARD}, .predicts_input = LS_PREDICTS_INPUT_MAX),
    OP(EUCLIDEAN_LOSS_BACKWARD, "euclidean loss backward", NONE, PASS, 1, two_flops),
    OP(SUM_LOSS, "sum loss", METRIC, PASS, 1, two_flops, .backward = {LS_OP_SUM_LOSS_BACKWARD}),
    OP(SUM_LOSS_BACKWARD, "sum loss backward", NONE, PASS, 1, two_flops),
    OP(ACCURACY, "accuracy", METRIC, PASS, 1, two_flops, .labels = accuracy_labels,
       .predicts_input = 1),
    OP(MEAN_IOU, "mean intersection over union", METRIC, PASS, 1, two_flops,
       .labels = mean_iou_labels, .predicts_input = 2),
    OP(COUNT_LABELS, "count labels", METRIC, PASS, 1, two_flops),

    /* Shapes. */
    OP(CONCAT, "concat", NONE, PASS, 1, two_flops, .backward = {LS_OP_SLICE}),
    OP(SLICE, "slice", NONE, PASS, 1, two_flops, .backward = {LS_OP_CONCAT}),
    OP(TILE, "tile", NONE, PASS, 1, two_flops, .backward = {LS_OP_TILE_BACKWARD}),
    OP(TILE_BACKWARD, "tile backward", NONE, PASS, 1, two_flops),
    OP(REDUCE, "reduction", NONE, PASS, 1, two_flops, .backward = {LS_OP_REDUCE_BACKWARD}),
    OP(REDUCE_BACKWARD, "reduction backward", NONE, PASS, 1, two_flops),
    OP(REDUCE_LOSS, "reduction of the batch", METRIC, PASS, 1, two_flops,
       .backward = {LS_OP_REDUCE_LOSS_BACKWARD}),
    OP(REDUCE_LOSS_BACKWARD, "reduction of the batch backward", NONE, PASS, 1, two_flops),
    OP(ARGMAX, "argmax", NONE, PASS, 1, two_flops),
    OP(RESIZE, "resize", NONE, PASS, 1, two_flops, .backward = {LS_OP_RESIZE_BACKWARD}),
    OP(RESIZE_BACKWARD, "resize backward", NONE, PASS, 1, two_flops),
    OP(CROP, "crop", NONE, PASS, 1, two_flops, .backward = {LS_OP_CROP_BACKWARD}),
    OP(CROP_BACKWARD, "crop backward", NONE, PASS, 1, two_flops),
    OP(ELTWISE, "eltwise", NONE, PASS, 1, two_flops, .backward = {LS_OP_ELTWISE_BACKWARD}),
    OP(ELTWISE_BACKWARD, "eltwise backward", NONE, PASS, 1, two_flops),
    OP(FILL, "fill", NONE, PASS, 1, fill_flops),

    /* Gradients on their way to the update; a sum of 8 bytes is read and written. */
    OP(ACCUMULATE, "accumulate", GRADIENT, REDUCTION, 5, two_flops),
    OP(RECORD, "record factor", GRADIENT, REDUCTION, 2, two_flops),

    /* Normalisation by batch or sample. */
    OP(SYNC, "sync point", SYNC, PASS, 0, two_flops),
    OP(MOMENTS, "moments", SYNC, PASS, 1, two_flops),
    OP(BATCH_NORM, "batch norm", NONE, PASS, 1, two_flops,
       .backward = {LS_OP_BATCH_NORM_SUMS, LS_OP_BATCH_NORM_BACKWARD}),
    OP(BATCH_NORM_SUMS, "batch norm backward sums", SYNC, WEIGHTS_IF_MADE, 1, two_flops),
    OP(BATCH_NORM_BACKWARD, "batch norm backward data", NONE, PASS, 1, two_flops),
    OP(SCALE, "scale", NONE, PASS, 1, two_flops, .backward = {LS_OP_SCALE, LS_OP_SCALE_SUMS}),
    OP(SCALE_SUMS, "scale backward sums", NONE, WEIGHTS, 1, two_flops),
    OP(NORMALIZE, "normalize", NONE, PASS, 1, two_flops,
       .backward = {LS_OP_NORMALIZE_DATA, LS_OP_NORMALIZE_SUMS}),
    OP(NORMALIZE_DATA, "normalize backward data", NONE, PASS, 1, two_flops),
    OP(NORMALIZE_SUMS, "normalize backward sums", NONE, WEIGHTS, 1, two_flops),
};

_Static_assert(sizeof op_types / sizeof *op_types == LS_OP_KINDS, "one record for each op kind");

const struct ls_op_type *ls_op_type(enum ls_op_kind kind)
{
    return &op_types[kind];
}

const char *ls_op_kind_name(enum ls_op_kind kind)
{
    return (unsigned)kind < LS_OP_KINDS ? op_types[kind].name : "unknown op";
}

bool ls_op_has_effect(enum ls_op_kind kind)
{
    return op_types[kind].effect != LS_EFFECT_NONE;
}
