/* What is known of op kinds: names, for messages and tables, and effects.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/op.h"

static const char *const kind_names[LS_OP_KINDS] = {
    [LS_OP_REORDER] = "reorder",
    [LS_OP_VIEW] = "view",
    [LS_OP_CONVOLUTION] = "convolution",
    [LS_OP_CONVOLUTION_DATA] = "convolution backward data",
    [LS_OP_CONVOLUTION_WEIGHTS] = "convolution backward weights",
    [LS_OP_DECONVOLUTION] = "deconvolution",
    [LS_OP_DECONVOLUTION_DATA] = "deconvolution backward data",
    [LS_OP_DECONVOLUTION_WEIGHTS] = "deconvolution backward weights",
    [LS_OP_INNER_PRODUCT] = "inner product",
    [LS_OP_INNER_PRODUCT_DATA] = "inner product backward data",
    [LS_OP_INNER_PRODUCT_WEIGHTS] = "inner product backward weights",
    [LS_OP_POOLING] = "pooling",
    [LS_OP_POOLING_BACKWARD] = "pooling backward",
    [LS_OP_ACTIVATION] = "activation",
    [LS_OP_ACTIVATION_BACKWARD] = "activation backward",
    [LS_OP_PRELU] = "prelu",
    [LS_OP_PRELU_DATA] = "prelu backward data",
    [LS_OP_PRELU_SLOPE] = "prelu backward slope",
    [LS_OP_LRN] = "local response normalisation",
    [LS_OP_LRN_BACKWARD] = "local response normalisation backward",
    [LS_OP_DROPOUT] = "dropout",
    [LS_OP_SOFTMAX] = "softmax",
    [LS_OP_SOFTMAX_BACKWARD] = "softmax backward",
    [LS_OP_SOFTMAX_LOSS] = "softmax loss",
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = "softmax loss backward",
    [LS_OP_LOG_LOSS] = "log loss",
    [LS_OP_LOG_LOSS_BACKWARD] = "log loss backward",
    [LS_OP_SIGMOID_LOSS] = "sigmoid cross-entropy loss",
    [LS_OP_SIGMOID_LOSS_BACKWARD] = "sigmoid cross-entropy loss backward",
    [LS_OP_EUCLIDEAN_LOSS] = "euclidean loss",
    [LS_OP_EUCLIDEAN_LOSS_BACKWARD] = "euclidean loss backward",
    [LS_OP_SUM_LOSS] = "sum loss",
    [LS_OP_SUM_LOSS_BACKWARD] = "sum loss backward",
    [LS_OP_ACCURACY] = "accuracy",
    [LS_OP_MEAN_IOU] = "mean intersection over union",
    [LS_OP_COUNT_LABELS] = "count labels",
    [LS_OP_CONCAT] = "concat",
    [LS_OP_SLICE] = "slice",
    [LS_OP_TILE] = "tile",
    [LS_OP_TILE_BACKWARD] = "tile backward",
    [LS_OP_REDUCE] = "reduction",
    [LS_OP_REDUCE_BACKWARD] = "reduction backward",
    [LS_OP_REDUCE_LOSS] = "reduction of the batch",
    [LS_OP_REDUCE_LOSS_BACKWARD] = "reduction of the batch backward",
    [LS_OP_ARGMAX] = "argmax",
    [LS_OP_RESIZE] = "resize",
    [LS_OP_RESIZE_BACKWARD] = "resize backward",
    [LS_OP_CROP] = "crop",
    [LS_OP_CROP_BACKWARD] = "crop backward",
    [LS_OP_ELTWISE] = "eltwise",
    [LS_OP_ELTWISE_BACKWARD] = "eltwise backward",
    [LS_OP_FILL] = "fill",
    [LS_OP_ACCUMULATE] = "accumulate",
    [LS_OP_RECORD] = "record factor",
    [LS_OP_SYNC] = "sync point",
    [LS_OP_MOMENTS] = "moments",
    [LS_OP_BATCH_NORM] = "batch norm",
    [LS_OP_BATCH_NORM_SUMS] = "batch norm backward sums",
    [LS_OP_BATCH_NORM_BACKWARD] = "batch norm backward data",
    [LS_OP_SCALE] = "scale",
    [LS_OP_SCALE_SUMS] = "scale backward sums",
    [LS_OP_NORMALIZE] = "normalize",
    [LS_OP_NORMALIZE_DATA] = "normalize backward data",
    [LS_OP_NORMALIZE_SUMS] = "normalize backward sums",
};

const char *ls_op_kind_name(enum ls_op_kind kind)
{
    if ((unsigned)kind >= LS_OP_KINDS)
        return "unknown op";
    return kind_names[kind];
}

bool ls_convolution_suits_winograd(const struct ls_convolution_attr *attr)
{
    const struct ls_window *window = &attr->window;
    bool fits = window->axes >= 2 && attr->group == 1;
    for (int i = 0; i < window->axes; i++)
        fits = fits && window->kernel[i] == 3 && window->stride[i] == 1 &&
               window->dilation[i] == 1 && window->pad[i] <= 1;
    return fits;
}

bool ls_op_has_effect(enum ls_op_kind kind)
{
    switch (kind) {
    case LS_OP_SOFTMAX_LOSS:
    case LS_OP_LOG_LOSS:
    case LS_OP_SIGMOID_LOSS:
    case LS_OP_EUCLIDEAN_LOSS:
    case LS_OP_SUM_LOSS:
    case LS_OP_REDUCE_LOSS:
    case LS_OP_ACCURACY:
    case LS_OP_MEAN_IOU:
    case LS_OP_COUNT_LABELS:
    case LS_OP_ACCUMULATE:
    case LS_OP_RECORD:
    case LS_OP_SYNC:
    case LS_OP_MOMENTS:
    case LS_OP_BATCH_NORM_SUMS:
        return true;
    default:
        return false;
    }
}
