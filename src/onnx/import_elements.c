/* Import: functions of each number.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/import_view.h"

/* ---- Functions of one number ----------------------------------------------------------------- */

/* Those that one layer without fields does. */
static int add_simple(struct ls_importer *x, const char *type, const char *fields)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    struct ls_onnx_rows rows;
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_rows(x, in, false, &rows));
    return ls_import_rows_result(x, 0, LS_LAYER(x, type, rows.top, "%s", fields), &rows, 0);
}

#define SIMPLE(function, type)                                                                     \
    static int function(struct ls_importer *x)                                                     \
    {                                                                                              \
        return add_simple(x, type, "");                                                            \
    }
SIMPLE(read_relu, "ReLU")
SIMPLE(read_sigmoid, "Sigmoid")
SIMPLE(read_tanh, "TanH")
SIMPLE(read_softplus, "BNLL")
SIMPLE(read_exp, "Exp")
SIMPLE(read_log, "Log")
SIMPLE(read_abs, "AbsVal")

static int read_gelu(struct ls_importer *x)
{
    return add_simple(x, "GELU",
                      ls_import_text_is(x, "approximate", "tanh", false)
                          ? "gelu_param { approximate: TANH }"
                          : "");
}

static int read_leaky_relu(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    char slope[32];
    if (in == NULL)
        return x->status;
    ls_format_float(slope, ls_import_real(x, "alpha", 0.01F));
    return ls_import_result(
        x, 0, LS_LAYER(x, "ReLU", in->top, "relu_param { negative_slope: %s }", slope), &in->shape);
}

static int read_elu(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    char alpha[32];
    if (in == NULL)
        return x->status;
    ls_format_float(alpha, ls_import_real(x, "alpha", 1));
    return ls_import_result(x, 0, LS_LAYER(x, "ELU", in->top, "elu_param { alpha: %s }", alpha),
                            &in->shape);
}

static int read_selu(struct ls_importer *x)
{
    if (fabsf(ls_import_real(x, "alpha", 1.67326F) - 1.67326F) > 1e-4F ||
        fabsf(ls_import_real(x, "gamma", 1.0507F) - 1.0507F) > 1e-4F)
        return ls_import_cannot(x, NULL,
                                "alpha and gamma other than those of the paper have no "
                                "equivalent");
    return add_simple(x, "SELU", "");
}

static int read_prelu(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0), *slope = ls_import_constant(x, 1);
    if (in == NULL || slope == NULL)
        return x->status;
    const int64_t count = ls_shape_size(&slope->shape);
    const int64_t channels = in->shape.rank > 1 ? in->shape.dim[1] : 1;
    const bool shared = count == 1,
               fits =
                   shared || (count == channels && in->shape.rank > 1 &&
                              slope->shape.rank >= in->shape.rank - 1 &&
                              slope->shape.dim[slope->shape.rank - in->shape.rank + 1] == channels);
    const struct ls_shape shape = {.rank = shared ? 0 : 1, .dim = {count}};
    if (!fits)
        return ls_import_cannot(x, NULL, "it has neither one slope nor one for each channel");
    ls_import_call(x, slope);
    const char *top = LS_LAYER(x, "PReLU", in->top, "prelu_param { channel_shared: %s }",
                               shared ? "true" : "false");
    LS_TRY(ls_import_weight(x, top, "slope", slope, &shape, ls_import_reals_of(x, slope)));
    return ls_import_result(x, 0, top, &in->shape);
}

static const char *clip(struct ls_importer *x, const char *top, double min, double max)
{
    char a[32], b[32];
    ls_format_float(a, (float)min);
    ls_format_float(b, (float)max);
    return LS_LAYER(x, "Clip", top, "clip_param { min: %s max: %s }", a, b);
}

static int read_clip(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    double min, max;
    const double limit = 3.4028234663852886e38;
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_number(x, "min", 1, -limit, &min));
    LS_TRY(ls_import_number(x, "max", 2, limit, &max));
    if (isnan(min) || isnan(max))
        return ls_import_cannot(x, NULL, "its limits are not numbers");
    if (min == 0 && max >= limit)
        return add_simple(x, "ReLU", "");
    min = fmax(min, -limit);
    max = fmin(max, limit);
    if (min > max)
        return ls_import_cannot(x, NULL, "its limits leave nothing between them");
    return ls_import_result(x, 0, clip(x, in->top, min, max), &in->shape);
}

static int read_hard_sigmoid(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    const char *line = ls_import_power(x, in->top, 1, (double)ls_import_real(x, "alpha", 0.2F),
                                       (double)ls_import_real(x, "beta", 0.5F));
    return ls_import_result(x, 0, clip(x, line, 0, 1), &in->shape);
}

static int read_hard_swish(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    const char *gate = clip(x, ls_import_power(x, in->top, 1, 1.0 / 6, 0.5), 0, 1);
    return ls_import_result(
        x, 0, LS_LAYER2(x, "Eltwise", in->top, gate, "eltwise_param { operation: PROD }"),
        &in->shape);
}

static int read_mish(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    const char *gate = LS_LAYER(x, "TanH", LS_LAYER(x, "BNLL", in->top, "%s", ""), "%s", "");
    return ls_import_result(
        x, 0, LS_LAYER2(x, "Eltwise", in->top, gate, "eltwise_param { operation: PROD }"),
        &in->shape);
}

static int add_power(struct ls_importer *x, double power, double scale)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    struct ls_onnx_rows rows;
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_rows(x, in, false, &rows));
    return ls_import_rows_result(x, 0, ls_import_power(x, rows.top, power, scale, 0), &rows, 0);
}

static int read_neg(struct ls_importer *x)
{
    return add_power(x, 1, -1);
}

static int read_sqrt(struct ls_importer *x)
{
    return add_power(x, 0.5, 1);
}

static int read_reciprocal(struct ls_importer *x)
{
    return add_power(x, -1, 1);
}

static int read_pow(struct ls_importer *x)
{
    double power;
    LS_TRY(ls_import_number(x, NULL, 1, 1, &power));
    return add_power(x, power, 1);
}

const struct ls_onnx_operator ls_onnx_read_elements[] = {
    {"Abs", read_abs},
    {"Clip", read_clip},
    {"Elu", read_elu},
    {"Exp", read_exp},
    {"Gelu", read_gelu},
    {"HardSigmoid", read_hard_sigmoid},
    {"HardSwish", read_hard_swish},
    {"LeakyRelu", read_leaky_relu},
    {"Log", read_log},
    {"Mish", read_mish},
    {"Neg", read_neg},
    {"PRelu", read_prelu},
    {"Pow", read_pow},
    {"Reciprocal", read_reciprocal},
    {"Relu", read_relu},
    {"Selu", read_selu},
    {"Sigmoid", read_sigmoid},
    {"Softplus", read_softplus},
    {"Sqrt", read_sqrt},
    {"Tanh", read_tanh},
    {NULL, NULL},
};
