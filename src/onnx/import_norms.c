/* Import: norms, softmax, dropout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>

#include "onnx/import_view.h"

/* A constant input with a number for each channel. */
static struct ls_onnx_value *each_channel(struct ls_importer *x, int index, int64_t channels)
{
    struct ls_onnx_value *value = ls_import_constant(x, index);
    if (value == NULL)
        return NULL;
    if (ls_shape_size(&value->shape) != channels) {
        ls_import_cannot(x, NULL, "input %d has not one number for each channel", index);
        return NULL;
    }
    return ls_import_reals_of(x, value) != NULL ? value : NULL;
}

/* The factors (input 1) or biases (2) of a norm. Biases that it has not are zeros. */
static int add_factors(struct ls_importer *x, const char *top, int index,
                       const struct ls_shape *each)
{
    const char *blob = index == 1 ? "scale" : "bias";
    const int64_t count = ls_shape_size(each);
    if (index == 2 && ls_import_input(x, 2) == NULL)
        return ls_import_weight(x, top, blob, NULL, each, ls_import_new_reals(x, count));
    struct ls_onnx_value *value = each_channel(x, index, count);
    if (value == NULL)
        return x->status;
    ls_import_find_norm_constant(value, index == 1 ? 1 : 0);
    return ls_import_weight(x, top, blob, value, each, value->reals);
}

/* Averages as a BatchNorm saves them: sums, and what they are to be divided by, so that the next
 * update of training weighs as much as it does where the model comes from. */
static int add_average(struct ls_importer *x, const char *top, const char *blob, int index,
                       int64_t channels, float factor)
{
    const struct ls_shape each = {.rank = 1, .dim = {channels}};
    const struct ls_onnx_value *value = each_channel(x, index, channels);
    float *sums = value != NULL ? ls_import_new_reals(x, channels) : NULL;
    for (int64_t i = 0; sums != NULL && i < channels; i++)
        sums[i] = factor * value->reals[i];
    x->learning = "";
    return ls_import_weight(x, top, blob, value, &each, sums);
}

static int read_batch_norm(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    if (in->shape.rank < 2)
        return ls_import_cannot(x, NULL, "its input has no channels");
    const int64_t channels = in->shape.dim[1];
    const struct ls_shape each = {.rank = 1, .dim = {channels}}, one = {.rank = 1, .dim = {1}};
    const float keep = ls_import_real(x, "momentum", 0.9F),
                eps = ls_import_real(x, "epsilon", 1e-5F);
    if (!(keep >= 0 && keep <= 1) || !(eps > 0))
        return ls_import_cannot(x, NULL, "momentum or epsilon is out of range");
    struct ls_onnx_value *scale = ls_import_constant(x, 1);
    if (scale == NULL)
        return x->status;
    char a[32], b[32];
    ls_format_float(a, eps);
    ls_format_float(b, keep);
    ls_import_call(x, scale);
    const char *top = LS_LAYER(x, "BatchNorm", in->top,
                               "batch_norm_param { scale_bias: true eps: %s "
                               "moving_average_fraction: %s }",
                               a, b);
    float *factor = ls_import_new_reals(x, 1);
    if (factor == NULL)
        return x->status;
    *factor = keep < 1 ? rintf(1024 / (1 - keep)) / 1024 : 1;
    LS_TRY(add_average(x, top, "mean", 3, channels, *factor));
    LS_TRY(add_average(x, top, "variance", 4, channels, *factor));
    x->learning = "";
    LS_TRY(ls_import_weight(x, top, "factor", NULL, &one, factor));
    LS_TRY(add_factors(x, top, 1, &each));
    LS_TRY(add_factors(x, top, 2, &each));
    return ls_import_result(x, 0, top, &in->shape);
}

static int read_layer_norm(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0), *scale = ls_import_constant(x, 1);
    if (in == NULL || scale == NULL)
        return x->status;
    const int axis = ls_import_axis(x, ls_import_integer(x, "axis", -1), in->shape.rank);
    if (axis < 0)
        return x->status;
    if (axis == 0)
        return ls_import_cannot(x, NULL, "axis 0, that of the samples, cannot be among its axes");
    struct ls_shape each = {.rank = in->shape.rank - axis};
    for (int i = axis; i < in->shape.rank; i++)
        each.dim[i - axis] = in->shape.dim[i];
    char eps[32];
    struct ls_onnx_rows rows;
    if (axis < in->shape.rank - 1)
        LS_TRY(ls_import_write(x, in));
    LS_TRY(ls_import_rows(x, in, true, &rows));
    ls_format_float(eps, ls_import_real(x, "epsilon", 1e-5F));
    ls_import_call(x, scale);
    const char *top = LS_LAYER(x, "LayerNorm", rows.top, "layer_norm_param { axis: %d eps: %s }",
                               rows.through ? rows.shape.rank - 1 : axis, eps);
    LS_TRY(add_factors(x, top, 1, &each));
    LS_TRY(add_factors(x, top, 2, &each));
    return ls_import_rows_result(x, 0, top, &rows, 0);
}

/* InstanceNormalization, and GroupNormalization of version 21 (a number for each channel). */
static int add_group_norm(struct ls_importer *x, const char *type, const char *field,
                          const char *more)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0), *scale = ls_import_constant(x, 1);
    if (in == NULL || scale == NULL)
        return x->status;
    if (in->shape.rank < 2)
        return ls_import_cannot(x, NULL, "its input has no channels");
    const struct ls_shape each = {.rank = 1, .dim = {in->shape.dim[1]}};
    char eps[32];
    ls_format_float(eps, ls_import_real(x, "epsilon", 1e-5F));
    ls_import_call(x, scale);
    const char *top =
        LS_LAYER(x, type, in->top, "%s { %s affine: true eps: %s }", field, more, eps);
    LS_TRY(add_factors(x, top, 1, &each));
    LS_TRY(add_factors(x, top, 2, &each));
    return ls_import_result(x, 0, top, &in->shape);
}

static int read_instance_norm(struct ls_importer *x)
{
    return add_group_norm(x, "InstanceNorm", "instance_norm_param", "");
}

static int read_group_norm(struct ls_importer *x)
{
    char groups[64];
    const int64_t count = ls_import_integer(x, "num_groups", 0);
    if (count < 1 || count >= INT32_MAX)
        return ls_import_cannot(x, NULL, "num_groups is out of range");
    snprintf(groups, sizeof groups, "groups: %lld", (long long)count);
    return add_group_norm(x, "GroupNorm", "group_norm_param", groups);
}

static int read_lrn(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    const int64_t size = ls_import_integer(x, "size", 0);
    char alpha[32], beta[32], k[32];
    if (size < 1 || size % 2 == 0 || size >= INT32_MAX)
        return ls_import_cannot(x, NULL, "its size must be odd");
    ls_format_float(alpha, ls_import_real(x, "alpha", 1e-4F));
    ls_format_float(beta, ls_import_real(x, "beta", 0.75F));
    ls_format_float(k, ls_import_real(x, "bias", 1));
    const char *top =
        LS_LAYER(x, "LRN", in->top, "lrn_param { local_size: %lld alpha: %s beta: %s k: %s }",
                 (long long)size, alpha, beta, k);
    return ls_import_result(x, 0, top, &in->shape);
}

/* Before version 13 a softmax took all axes from its own on as one. */
static int find_softmax_axis(struct ls_importer *x, const struct ls_shape *shape)
{
    const int axis =
        ls_import_axis(x, ls_import_integer(x, "axis", x->opset < 13 ? 1 : -1), shape->rank);
    int64_t behind = 1;
    for (int i = axis + 1; axis >= 0 && i < shape->rank; i++)
        behind *= shape->dim[i];
    if (axis < 0 || x->opset >= 13 || behind == 1)
        return axis;
    ls_import_cannot(x, "export it with opset_version 13 or later",
                     "of several axes together it has no equivalent");
    return -1;
}

static int add_softmax(struct ls_importer *x, bool logarithm)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0), *out = ls_import_output(x, 0);
    if (in == NULL)
        return x->status;
    const int axis = find_softmax_axis(x, &in->shape);
    const size_t begin = x->net->layers.length;
    if (axis < 0)
        return x->status;
    if (axis == 0)
        return ls_import_cannot(x, NULL, "it would mix the samples of a batch");
    const char *top = LS_LAYER(x, "Softmax", in->top, "softmax_param { axis: %d }", axis);
    if (logarithm && top != NULL)
        top = LS_LAYER(x, "Log", top, "%s", "");
    LS_TRY(ls_import_result(x, 0, top, &in->shape));
    if (out != NULL) {
        out->scores = in->top;
        out->begin = begin;
        out->end = x->net->layers.length;
    }
    return 0;
}

static int read_softmax(struct ls_importer *x)
{
    return add_softmax(x, false);
}

static int read_log_softmax(struct ls_importer *x)
{
    return add_softmax(x, true);
}

static int read_dropout(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0), *mask = ls_import_output(x, 1);
    double ratio;
    char text[32];
    struct ls_onnx_rows rows;
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_number(x, "ratio", 1, 0.5, &ratio));
    if (mask != NULL && mask->uses > 0)
        return ls_import_cannot(x, NULL, "its mask is not imported");
    if (!(ratio >= 0 && ratio < 1))
        return ls_import_cannot(x, NULL, "its ratio is not in [0, 1)");
    if (ratio == 0)
        return ls_import_hand_on(x, in, 0);
    ls_format_float(text, (float)ratio);
    LS_TRY(ls_import_rows(x, in, false, &rows));
    const char *top = LS_LAYER(x, "Dropout", rows.top, "dropout_param { dropout_ratio: %s }", text);
    return ls_import_rows_result(x, 0, top, &rows, 0);
}

const struct ls_onnx_operator ls_onnx_read_norms[] = {
    {"BatchNormalization", read_batch_norm},
    {"Dropout", read_dropout},
    {"GroupNormalization", read_group_norm},
    {"InstanceNormalization", read_instance_norm},
    {"LRN", read_lrn},
    {"LayerNormalization", read_layer_norm},
    {"LogSoftmax", read_log_softmax},
    {"Softmax", read_softmax},
    {NULL, NULL},
};
