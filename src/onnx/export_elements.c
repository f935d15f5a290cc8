/* What is computed number by number, and softmax.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sleef.h>

#include "onnx/exporter.h"

/* ---- Functions of one number ----------------------------------------------------------------- */

static const char *scaled(struct ls_exporter *x, const char *in, float scale)
{
    return scale == 1 ? in : LS_EMIT(x, "Mul", NULL, in, ls_onnx_number(x->writer, scale));
}

static const char *shifted(struct ls_exporter *x, const char *in, float shift)
{
    return shift == 0 ? in : LS_EMIT(x, "Add", NULL, in, ls_onnx_number(x->writer, shift));
}

static const char *swish(struct ls_exporter *x, const char *in, const char *out, float slope)
{
    return LS_EMIT(x, "Mul", out, in, LS_EMIT(x, "Sigmoid", NULL, scaled(x, in, slope)));
}

/* x (1 + erf(x / sqrt 2)) / 2; operators of its own has ONNX from version 20 on. */
static const char *gelu(struct ls_exporter *x, const char *in, const char *out)
{
    const char *erf = LS_EMIT(x, "Erf", NULL, scaled(x, in, 0.70710678F));
    const char *part = LS_EMIT(x, "Mul", NULL, in, shifted(x, erf, 1));
    return LS_EMIT(x, "Mul", out, part, ls_onnx_number(x->writer, 0.5F));
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static const char *gelu_tanh(struct ls_exporter *x, const char *in, const char *out)
{
    const char *square = LS_EMIT(x, "Mul", NULL, in, in);
    const char *inner = shifted(x, scaled(x, square, 0.044715F), 1);
    const char *tanh =
        LS_EMIT(x, "Tanh", NULL, scaled(x, LS_EMIT(x, "Mul", NULL, in, inner), 0.79788456F));
    const char *part = LS_EMIT(x, "Mul", NULL, in, shifted(x, tanh, 1));
    return LS_EMIT(x, "Mul", out, part, ls_onnx_number(x->writer, 0.5F));
}

/* (scale x + shift)^power */
static const char *power(struct ls_exporter *x, const char *in, const char *out,
                         const struct ls_activation_attr *attr)
{
    struct ls_onnx_writer *writer = x->writer;
    if (attr->power == 0 || attr->scale == 0) { /* one number, whatever x is */
        const float all =
            attr->power == 0 ? 1 : Sleef_cinz_powf1_u10purec(attr->shift, attr->power);
        const char *zeros = LS_EMIT(x, "Mul", NULL, in, ls_onnx_number(writer, 0));
        return LS_EMIT(x, "Add", out, zeros, ls_onnx_number(writer, all));
    }
    if (attr->power == 1 && attr->shift != 0)
        return LS_EMIT(x, "Add", out, scaled(x, in, attr->scale),
                       ls_onnx_number(writer, attr->shift));
    if (attr->power == 1)
        return LS_EMIT(x, "Mul", out, in, ls_onnx_number(writer, attr->scale));
    return LS_EMIT(x, "Pow", out, shifted(x, scaled(x, in, attr->scale), attr->shift),
                   ls_onnx_number(writer, attr->power));
}

/* factor exp(scale x) and factor log(scale x + shift) */
static const char *exp_or_log(struct ls_exporter *x, const char *in, const char *out,
                              const struct ls_activation_attr *attr)
{
    const bool is_exp = attr->function == LS_EXP;
    const char *of = scaled(x, in, attr->scale);
    if (!is_exp)
        of = shifted(x, of, attr->shift);
    const char *y = LS_EMIT(x, is_exp ? "Exp" : "Log", attr->factor == 1 ? out : NULL, of);
    return attr->factor == 1 ? y
                             : LS_EMIT(x, "Mul", out, y, ls_onnx_number(x->writer, attr->factor));
}

const char *ls_onnx_relu(struct ls_exporter *x, const char *in, const char *out, float slope)
{
    const char *y = LS_EMIT(x, slope == 0 ? "Relu" : "LeakyRelu", out, in);
    if (slope != 0)
        ls_onnx_set_float(x->writer, "alpha", slope);
    return y;
}

const char *ls_onnx_activate(struct ls_exporter *x, const char *in, const char *out,
                             const struct ls_activation_attr *attr)
{
    const char *y;
    switch (attr->function) {
    case LS_RELU:
        return ls_onnx_relu(x, in, out, attr->slope);
    case LS_SIGMOID:
        return LS_EMIT(x, "Sigmoid", out, in);
    case LS_TANH:
        return LS_EMIT(x, "Tanh", out, in);
    case LS_ELU:
        y = LS_EMIT(x, "Elu", out, in);
        ls_onnx_set_float(x->writer, "alpha", attr->slope);
        return y;
    case LS_SWISH:
        return swish(x, in, out, attr->slope);
    case LS_ABSOLUTE:
        return LS_EMIT(x, "Abs", out, in);
    case LS_EXP:
    case LS_LOG:
        return exp_or_log(x, in, out, attr);
    case LS_POWER:
        return power(x, in, out, attr);
    case LS_BNLL:
        return LS_EMIT(x, "Softplus", out, in);
    case LS_CLIP:
        return LS_EMIT(x, "Clip", out, in, ls_onnx_number(x->writer, attr->low),
                       ls_onnx_number(x->writer, attr->high));
    case LS_THRESHOLD:
        return ls_onnx_as_numbers(
            x, LS_EMIT(x, "Greater", NULL, in, ls_onnx_number(x->writer, attr->low)), out);
    case LS_GELU:
        return gelu(x, in, out);
    case LS_GELU_TANH:
        return gelu_tanh(x, in, out);
    default:
        ls_onnx_refuse(x, NULL, "its function has no equivalent in ONNX");
        return in;
    }
}

static void activation(struct ls_exporter *x, const struct ls_op *op)
{
    ls_onnx_activate(x, ls_onnx_in(x, 0), ls_onnx_out(x, 0), &op->attr.activation);
}

/* Slopes by channel: axis 1 of x. */
static void prelu(struct ls_exporter *x, const struct ls_op *op)
{
    const int behind = op->input[0]->shape.rank - 2;
    const int64_t axes[LS_RANK_MAX] = {1, 2, 3, 4, 5, 6, 7, 8};
    const char *slope = ls_onnx_in(x, 1);
    if (behind > 0 && op->input[1]->shape.rank > 0)
        slope = ls_onnx_unsqueeze(x, slope, NULL, axes, (size_t)behind);
    LS_EMIT(x, "PRelu", ls_onnx_out(x, 0), ls_onnx_in(x, 0), slope);
}

static void glu(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_glu_attr *attr = &op->attr.glu;
    const char *value = ls_onnx_in(x, 0), *gate = ls_onnx_in(x, 1);
    if (gate == NULL) {
        const int64_t half = op->input[0]->shape.dim[attr->axis] / 2;
        const char *in = value;
        const char *first = ls_onnx_cut(x, in, NULL, attr->axis, 0, half);
        const char *second = ls_onnx_cut(x, in, NULL, attr->axis, half, 2 * half);
        value = attr->gate_first ? second : first;
        gate = attr->gate_first ? first : second;
    }
    if (!attr->linear)
        gate = ls_onnx_activate(x, gate, NULL, &attr->gate);
    LS_EMIT(x, "Mul", ls_onnx_out(x, 0), value, gate);
}

/* ---- Several inputs -------------------------------------------------------------------------- */

static const char *product(struct ls_exporter *x, int inputs, const char *out)
{
    const char *y = ls_onnx_in(x, 0);
    for (int i = 1; i < inputs; i++)
        y = LS_EMIT(x, "Mul", i == inputs - 1 ? out : NULL, y, ls_onnx_in(x, i));
    return y;
}

static const char *sum(struct ls_exporter *x, int inputs, const char *out)
{
    const float *coefficients = x->op->attr.eltwise.coefficients;
    const char *terms[LS_OP_VALUES_MAX];
    for (int i = 0; i < inputs; i++)
        terms[i] = scaled(x, ls_onnx_in(x, i), coefficients != NULL ? coefficients[i] : 1);
    return ls_onnx_emit(x, inputs == 2 ? "Add" : "Sum", out, terms, (size_t)inputs);
}

static void eltwise(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    const char *out = attr->relu ? NULL : ls_onnx_out(x, 0), *y, *of[LS_OP_VALUES_MAX];
    if (attr->method == LS_ELTWISE_PROD && op->inputs > 1) {
        y = product(x, op->inputs, out);
    } else if (attr->method == LS_ELTWISE_MAX) {
        for (int i = 0; i < op->inputs; i++)
            of[i] = ls_onnx_in(x, i);
        y = ls_onnx_emit(x, "Max", out, of, (size_t)op->inputs);
    } else {
        y = sum(x, op->inputs, out);
    }
    if (attr->relu)
        ls_onnx_relu(x, y, ls_onnx_out(x, 0), attr->relu_slope);
}

/* x factor + bias; both lie along the axes [axis, axis + axes) of x. */
static const char *beside(struct ls_exporter *x, int index)
{
    const struct ls_scale_attr *attr = &x->op->attr.scale;
    const int behind = x->op->input[0]->shape.rank - attr->axis - attr->axes;
    int64_t axes[LS_RANK_MAX];
    for (int i = 0; i < behind; i++)
        axes[i] = attr->axes + i;
    const char *in = ls_onnx_in(x, index);
    return behind > 0 && attr->axes > 0 ? ls_onnx_unsqueeze(x, in, NULL, axes, (size_t)behind) : in;
}

static void scale(struct ls_exporter *x, const struct ls_op *op)
{
    const char *y = ls_onnx_in(x, 0), *out = ls_onnx_out(x, 0);
    const bool has_bias = ls_onnx_has(op, 2);
    if (ls_onnx_has(op, 1))
        y = LS_EMIT(x, "Mul", has_bias ? NULL : out, y, beside(x, 1));
    if (has_bias)
        LS_EMIT(x, "Add", out, y, beside(x, 2));
}

/* ---- Softmax --------------------------------------------------------------------------------- */

/* Where the mask is 0 the result is 0, also where all of a row is. */
static void softmax(struct ls_exporter *x, const struct ls_op *op)
{
    struct ls_onnx_writer *writer = x->writer;
    const char *in = ls_onnx_in(x, 0), *out = ls_onnx_out(x, 0);
    if (!ls_onnx_has(op, 1)) {
        LS_EMIT(x, "Softmax", out, in);
        ls_onnx_set_int(writer, "axis", op->attr.axis);
        return;
    }
    const char *masked =
        LS_EMIT(x, "Equal", NULL, ls_onnx_as_floats(x, op->input[1]), ls_onnx_number(writer, 0));
    const char *seen = LS_EMIT(x, "Where", NULL, masked, ls_onnx_number(writer, -3.4e38F), in);
    const char *p = LS_EMIT(x, "Softmax", NULL, seen);
    ls_onnx_set_int(writer, "axis", op->attr.axis);
    LS_EMIT(x, "Where", out, masked, ls_onnx_number(writer, 0), p);
}

static void softmax_of_loss(struct ls_exporter *x, const struct ls_op *op)
{
    LS_EMIT(x, "Softmax", ls_onnx_out(x, 0), ls_onnx_in(x, 0));
    ls_onnx_set_int(x->writer, "axis", op->attr.loss.axis);
}

const ls_onnx_exporter ls_onnx_elements[LS_OP_KINDS] = {
    [LS_OP_ACTIVATION] = activation,
    [LS_OP_PRELU] = prelu,
    [LS_OP_GLU] = glu,
    [LS_OP_ELTWISE] = eltwise,
    [LS_OP_SCALE] = scale,
    [LS_OP_SOFTMAX] = softmax,
    [LS_OP_SOFTMAX_LOSS] = softmax_of_loss,
    [LS_OP_INFOGAIN_LOSS] = softmax_of_loss,
};
