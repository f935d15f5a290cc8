/* Normalisation by saved averages, by sample, and by what is around.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/exporter.h"

/* ---- By saved averages ----------------------------------------------------------------------- */

/* A weight of so many equal numbers. */
static const char *equal_numbers(struct ls_exporter *x, int64_t count, float number)
{
    float *numbers = ls_onnx_new_numbers(x, (size_t)count);
    const struct ls_shape shape = {.rank = 1, .dim = {count}};
    for (int64_t i = 0; i < count && numbers != NULL; i++)
        numbers[i] = number;
    return numbers != NULL ? ls_onnx_constant(x->writer, &shape, numbers) : "";
}

/* Numbers by channel, which may have axes of extent 1. */
static const char *by_channel(struct ls_exporter *x, int index)
{
    const char *in = ls_onnx_in(x, index);
    return x->op->input[index]->shape.rank == 1 ? in
                                                : ls_onnx_reshape(x, in, NULL, (int64_t[]){-1}, 1);
}

/* Input `index` of a batch norm, mean or variance, divided by the factor; a factor of 0 means that
 * there is none yet. */
static const char *statistic(struct ls_exporter *x, const struct ls_op *op, int index, float none)
{
    enum { FACTOR = 3 };
    const struct ls_value *value = op->input[index];
    if (!ls_onnx_has(op, FACTOR))
        return by_channel(x, index);
    const float *numbers = ls_onnx_weights(x, value);
    const float *factor = ls_onnx_weights(x, op->input[FACTOR]);
    const int64_t count = ls_shape_size(&value->shape);
    const struct ls_shape shape = {.rank = 1, .dim = {count}};
    float *mean = ls_onnx_new_numbers(x, (size_t)count);
    for (int64_t i = 0; i < count && mean != NULL && numbers != NULL && factor != NULL; i++)
        mean[i] = factor[0] == 0 ? none : numbers[i] / factor[0];
    return ls_onnx_add_weights(x, value->name, &shape, mean);
}

static void batch_norm(struct ls_exporter *x, const struct ls_op *op)
{
    enum { MEAN = 1, VARIANCE, FACTOR, SCALE, BIAS };
    const struct ls_batch_norm_attr *attr = &op->attr.batch_norm;
    if (attr->moments >= 0 || !ls_onnx_has(op, MEAN)) {
        ls_onnx_refuse(
            x, "use_global_stats: true",
            "it normalises by statistics of the batch: what a sample gives would depend on those "
            "that are run with it");
        return;
    }
    const int64_t channels = ls_shape_size(&op->input[MEAN]->shape);
    const char *scale =
        ls_onnx_has(op, SCALE) ? by_channel(x, SCALE) : equal_numbers(x, channels, 1);
    const char *bias = ls_onnx_has(op, BIAS) ? by_channel(x, BIAS) : equal_numbers(x, channels, 0);
    const char *mean = statistic(x, op, MEAN, 0), *variance = statistic(x, op, VARIANCE, 1);
    const char *y = LS_EMIT(x, "BatchNormalization", attr->relu ? NULL : ls_onnx_out(x, 0),
                            ls_onnx_in(x, 0), scale, bias, mean, variance);
    ls_onnx_set_float(x->writer, "epsilon", attr->eps);
    if (attr->relu)
        ls_onnx_relu(x, y, ls_onnx_out(x, 0), attr->relu_slope);
}

/* ---- By sample ------------------------------------------------------------------------------- */

static const char *mean_of(struct ls_exporter *x, const char *in, int first, int rank)
{
    int64_t axes[LS_RANK_MAX];
    for (int i = first; i < rank; i++)
        axes[i - first] = i;
    const char *mean = LS_EMIT(x, "ReduceMean", NULL, in);
    ls_onnx_set_ints(x->writer, "axes", axes, (size_t)(rank - first));
    ls_onnx_set_int(x->writer, "keepdims", 1);
    return mean;
}

/* (in - mean) / deviation over the axes from `first` on. */
static const char *normalized(struct ls_exporter *x, const char *in, const char *out, int first,
                              int rank)
{
    const struct ls_normalize_attr *attr = &x->op->attr.normalize;
    struct ls_onnx_writer *writer = x->writer;
    const char *d = in;
    if (!attr->around_zero)
        d = LS_EMIT(x, "Sub", attr->variance ? NULL : out, in, mean_of(x, in, first, rank));
    if (!attr->variance)
        return d;
    const char *variance = mean_of(x, LS_EMIT(x, "Mul", NULL, d, d), first, rank);
    const char *eps = ls_onnx_number(writer, attr->eps);
    const char *deviation = attr->behind
                                ? LS_EMIT(x, "Add", NULL, LS_EMIT(x, "Sqrt", NULL, variance), eps)
                                : LS_EMIT(x, "Sqrt", NULL, LS_EMIT(x, "Add", NULL, variance, eps));
    return LS_EMIT(x, "Div", out, d, deviation);
}

/* The scale or the bias: along the axes from `axis` on, or along `axis` alone. */
static const char *beside(struct ls_exporter *x, int index)
{
    const struct ls_normalize_attr *attr = &x->op->attr.normalize;
    const int behind = x->op->input[0]->shape.rank - attr->axis - 1;
    const int64_t axes[LS_RANK_MAX] = {1, 2, 3, 4, 5, 6, 7, 8};
    const char *in = ls_onnx_in(x, index);
    return attr->elements || behind == 0 ? in
                                         : ls_onnx_unsqueeze(x, in, NULL, axes, (size_t)behind);
}

/* The axes from `axis` on as groups and what is in them. */
static const char *in_groups(struct ls_exporter *x, const struct ls_op *op, const char *out)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    const struct ls_shape *shape = &op->input[0]->shape;
    int64_t dims[LS_RANK_MAX + 2];
    ls_onnx_dims(x, op->input[0], dims);
    dims[attr->axis] = attr->groups;
    dims[attr->axis + 1] = ls_shape_count(shape, attr->axis, shape->rank) / attr->groups;
    const char *grouped = ls_onnx_reshape(x, ls_onnx_in(x, 0), NULL, dims, attr->axis + 2);
    const char *y = normalized(x, grouped, NULL, attr->axis + 1, attr->axis + 2);
    return ls_onnx_reshape_as(x, y, out, op->output[0]);
}

/* LayerNormalization, which ONNX has from version 17 on. */
static bool is_layer_norm(const struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    return x->options->opset >= 17 && attr->groups == 1 && attr->variance && !attr->behind &&
           !attr->around_zero && ls_onnx_has(op, 1) &&
           (attr->elements || attr->axis == op->input[0]->shape.rank - 1);
}

static bool is_instance_norm(const struct ls_op *op)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    return attr->axis == 1 && op->input[0]->shape.rank > 2 &&
           attr->groups == op->input[0]->shape.dim[1] && attr->variance && !attr->behind &&
           !attr->around_zero && !attr->elements && ls_onnx_has(op, 1) && ls_onnx_has(op, 2);
}

static void normalize(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    const bool has_scale = ls_onnx_has(op, 1), has_bias = ls_onnx_has(op, 2);
    const char *out = ls_onnx_out(x, 0);
    if (is_layer_norm(x, op)) {
        LS_EMIT(x, "LayerNormalization", out, ls_onnx_in(x, 0), ls_onnx_in(x, 1), ls_onnx_in(x, 2));
        ls_onnx_set_int(x->writer, "axis", attr->axis);
        ls_onnx_set_float(x->writer, "epsilon", attr->eps);
        return;
    }
    if (is_instance_norm(op)) {
        LS_EMIT(x, "InstanceNormalization", out, ls_onnx_in(x, 0), ls_onnx_in(x, 1),
                ls_onnx_in(x, 2));
        ls_onnx_set_float(x->writer, "epsilon", attr->eps);
        return;
    }
    const char *plain = has_scale || has_bias ? NULL : out;
    const char *y = attr->groups == 1 ? normalized(x, ls_onnx_in(x, 0), plain, attr->axis,
                                                   op->input[0]->shape.rank)
                                      : in_groups(x, op, plain);
    if (has_scale)
        y = LS_EMIT(x, "Mul", has_bias ? NULL : out, y, beside(x, 1));
    if (has_bias)
        LS_EMIT(x, "Add", out, y, beside(x, 2));
}

/* ---- By what is around ----------------------------------------------------------------------- */

/* x / (1 + alpha / n^2 sum of x^2 over n x n positions)^beta; what is outside counts as 0. */
static void within_channels(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_lrn_attr *attr = &op->attr.lrn;
    const int64_t half = attr->size / 2;
    const char *in = ls_onnx_in(x, 0);
    const char *mean = LS_EMIT(x, "AveragePool", NULL, LS_EMIT(x, "Mul", NULL, in, in));
    ls_onnx_set_int(x->writer, "count_include_pad", 1);
    ls_onnx_set_ints(x->writer, "kernel_shape", (int64_t[]){attr->size, attr->size}, 2);
    ls_onnx_set_ints(x->writer, "pads", (int64_t[]){half, half, half, half}, 4);
    const char *share = LS_EMIT(x, "Mul", NULL, mean, ls_onnx_number(x->writer, attr->alpha));
    const char *sum = LS_EMIT(x, "Add", NULL, share, ls_onnx_number(x->writer, 1));
    const char *power = LS_EMIT(x, "Pow", NULL, sum, ls_onnx_number(x->writer, -attr->beta));
    LS_EMIT(x, "Mul", ls_onnx_out(x, 0), in, power);
}

static void lrn(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_lrn_attr *attr = &op->attr.lrn;
    if (attr->within) {
        within_channels(x, op);
        return;
    }
    LS_EMIT(x, "LRN", ls_onnx_out(x, 0), ls_onnx_in(x, 0));
    ls_onnx_set_float(x->writer, "alpha", attr->alpha);
    ls_onnx_set_float(x->writer, "beta", attr->beta);
    ls_onnx_set_float(x->writer, "bias", attr->k);
    ls_onnx_set_int(x->writer, "size", attr->size);
}

const ls_onnx_exporter ls_onnx_norms[LS_OP_KINDS] = {
    [LS_OP_BATCH_NORM] = batch_norm,
    [LS_OP_NORMALIZE] = normalize,
    [LS_OP_LRN] = lrn,
};
