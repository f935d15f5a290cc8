/* Import: functions of each number, and sums and products of numbers that lie side by side.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/importer.h"

/* ---- Functions of one number ----------------------------------------------------------------- */

/* Those that one layer without fields does. */
static int add_simple(struct ls_importer *x, const char *type, const char *fields)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    return ls_import_result(x, 0, LS_LAYER(x, type, in->top, "%s", fields), &in->shape);
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
    LS_TRY(ls_import_weight(x, top, "slope", slope->name, &shape, ls_import_reals_of(x, slope)));
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
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    if (in == NULL)
        return x->status;
    return ls_import_result(x, 0, ls_import_power(x, in->top, power, scale, 0), &in->shape);
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

/* ---- Two values ------------------------------------------------------------------------------ */

/* Lays `b` over axes of `a`: those from *axis on, as many as `part` has. False: it has axes where
 * it is as large as `a` and such where it is not, in turn, or is larger. */
static bool lay_over(const struct ls_shape *a, const struct ls_shape *b, bool samples, int *axis,
                     struct ls_shape *part)
{
    struct ls_shape both;
    int first = a->rank, last = -1;
    if (!ls_import_broadcast(a, b, &both) || !ls_shape_equal(&both, a))
        return false;
    const int lead = a->rank - b->rank;
    for (int i = 0; i < b->rank; i++)
        if (b->dim[i] != 1) {
            first = lead + i < first ? lead + i : first;
            last = lead + i;
        }
    if (samples) { /* of blobs, each with its own samples along axis 0 */
        if (lead != 0)
            return false;
        first = 0;
        last = last < 0 ? 0 : last;
    }
    part->rank = last < first ? 0 : last - first + 1;
    *axis = part->rank > 0 ? first : 0;
    for (int i = 0; i < part->rank; i++) {
        part->dim[i] = a->dim[first + i];
        if (b->dim[first + i - lead] != part->dim[i])
            return false;
    }
    return true;
}

enum operation { ADD, SUB, MUL, DIV };

/* Numbers of a constant as a Scale or a Bias layer has them. Infinities, of masks, become the
 * largest numbers. */
static float *constant_numbers(struct ls_importer *x, struct ls_onnx_value *value,
                               enum operation operation)
{
    const int64_t count = ls_shape_size(&value->shape);
    const float *from = ls_import_reals_of(x, value);
    float *out = from != NULL ? ls_import_new_reals(x, count) : NULL;
    for (int64_t i = 0; out != NULL && i < count; i++) {
        const float number = operation == SUB ? -from[i] : operation == DIV ? 1 / from[i] : from[i];
        out[i] = fmaxf(fminf(number, 3.4028235e38F), -3.4028235e38F);
    }
    return out;
}

/* `a` and one number. */
static int with_number(struct ls_importer *x, const struct ls_onnx_value *a, double number,
                       enum operation operation, bool turned)
{
    double power = 1, scale = 1, shift = 0;
    switch (operation) {
    case ADD:
        shift = number;
        break;
    case SUB:
        shift = turned ? number : -number;
        scale = turned ? -1 : 1;
        break;
    case MUL:
        scale = number;
        break;
    case DIV:
        if (!turned) {
            scale = 1 / number;
            break;
        }
        return ls_import_result(
            x, 0, ls_import_power(x, ls_import_power(x, a->top, -1, 1, 0), 1, number, 0),
            &a->shape);
    }
    if (scale == 1 && shift == 0)
        return ls_import_hand_on(x, a, 0);
    return ls_import_result(x, 0, ls_import_power(x, a->top, power, scale, shift), &a->shape);
}

/* A constant that is no weight stays as it is. */
static int with_constant(struct ls_importer *x, const struct ls_onnx_value *a,
                         struct ls_onnx_value *b, enum operation operation, bool turned)
{
    struct ls_shape part;
    int axis;
    if (ls_import_numbers_of(x, b) != 0)
        return x->status;
    if (ls_shape_size(&b->shape) == 1 && b->shape.rank <= a->shape.rank &&
        !(b->learned && (operation == ADD || operation == MUL)))
        return with_number(x, a, b->integers ? (double)b->wholes[0] : (double)b->reals[0],
                           operation, turned);
    if (!lay_over(&a->shape, &b->shape, false, &axis, &part))
        return ls_import_cannot(x, NULL, "a constant's axes do not fit those of the blob");
    const char *top = a->top;
    if (turned && operation == DIV)
        top = ls_import_power(x, top, -1, 1, 0);
    if (turned && operation == SUB)
        top = ls_import_power(x, top, 1, -1, 0);
    const float *numbers = constant_numbers(x, b,
                                            turned ? (operation == SUB   ? ADD
                                                      : operation == DIV ? MUL
                                                                         : operation)
                                                   : operation);
    const bool sum = operation == ADD || operation == SUB;
    const char *frozen = b->learned ? "" : "param { lr_mult: 0 decay_mult: 0 } ";
    ls_import_call(x, b);
    const char *layer = LS_LAYER(x, sum ? "Bias" : "Scale", top, "%s%s { axis: %d num_axes: %d }",
                                 frozen, sum ? "bias_param" : "scale_param", axis, part.rank);
    LS_TRY(ls_import_weight(x, layer, sum ? "bias" : "scale", b->name, &part, numbers));
    return ls_import_result(x, 0, layer, &a->shape);
}

/* Two blobs of one shape. */
static int with_equal(struct ls_importer *x, const struct ls_onnx_value *a,
                      const struct ls_onnx_value *b, enum operation operation)
{
    static const char *const fields[] = {[ADD] = "",
                                         [SUB] = "eltwise_param { coeff: 1 coeff: -1 }",
                                         [MUL] = "eltwise_param { operation: PROD }",
                                         [DIV] = "eltwise_param { operation: PROD }"};
    const char *second = operation == DIV ? ls_import_power(x, b->top, -1, 1, 0) : b->top;
    return ls_import_result(x, 0, LS_LAYER2(x, "Eltwise", a->top, second, "%s", fields[operation]),
                            &a->shape);
}

/* `b` goes over some axes of `a`. */
static int with_part(struct ls_importer *x, const struct ls_onnx_value *a,
                     const struct ls_onnx_value *b, enum operation operation, bool turned)
{
    struct ls_shape part;
    int axis;
    if (!lay_over(&a->shape, &b->shape, true, &axis, &part))
        return ls_import_cannot(x, NULL, "the axes of its inputs do not fit each other");
    const char *big = a->top, *small = ls_import_reshaped(x, b->top, &b->shape, &part);
    if (operation == SUB && turned)
        big = ls_import_power(x, big, 1, -1, 0);
    if (operation == SUB && !turned)
        small = ls_import_power(x, small, 1, -1, 0);
    if (operation == DIV && turned)
        big = ls_import_power(x, big, -1, 1, 0);
    if (operation == DIV && !turned)
        small = ls_import_power(x, small, -1, 1, 0);
    const bool sum = operation == ADD || operation == SUB;
    return ls_import_result(x, 0,
                            LS_LAYER2(x, sum ? "Bias" : "Scale", big, small, "%s { axis: %d }",
                                      sum ? "bias_param" : "scale_param", axis),
                            &a->shape);
}

static int combine(struct ls_importer *x, enum operation operation)
{
    struct ls_onnx_value *a = ls_import_input(x, 0), *b = ls_import_input(x, 1);
    struct ls_shape both;
    if (a == NULL || b == NULL)
        return ls_import_cannot(x, NULL, "an input is missing");
    /* Version 6 laid the second input over axes that it named; later ones, over the last axes. */
    const int64_t axis = ls_import_integer(x, "axis", -1);
    if (axis >= 0 && axis != a->shape.rank - b->shape.rank)
        return ls_import_cannot(x, "export it with opset_version 7 or later",
                                "axis %lld of its first input is not read", (long long)axis);
    if (!ls_import_broadcast(&a->shape, &b->shape, &both))
        return ls_import_cannot(x, NULL, "the shapes of its inputs do not fit each other");
    if (b->constant)
        return with_constant(x, a, b, operation, false);
    if (a->constant)
        return with_constant(x, b, a, operation, true);
    if (ls_shape_equal(&a->shape, &b->shape))
        return with_equal(x, a, b, operation);
    if (ls_shape_equal(&both, &a->shape))
        return with_part(x, a, b, operation, false);
    return with_part(x, b, a, operation, true);
}

static int read_add(struct ls_importer *x)
{
    return combine(x, ADD);
}

static int read_sub(struct ls_importer *x)
{
    return combine(x, SUB);
}

static int read_mul(struct ls_importer *x)
{
    return combine(x, MUL);
}

static int read_div(struct ls_importer *x)
{
    return combine(x, DIV);
}

/* Sum and Max of any number of blobs of one shape. */
static int join(struct ls_importer *x, const char *fields)
{
    enum { MOST = 64 };
    const char *tops[MOST];
    const size_t count = x->node->n_input;
    struct ls_onnx_value *first = ls_import_blob(x, 0);
    if (first == NULL)
        return x->status;
    if (count > MOST)
        return ls_import_cannot(x, NULL, "it has more than %d inputs", MOST);
    for (size_t i = 0; i < count; i++) {
        struct ls_onnx_value *value = ls_import_blob(x, (int)i);
        if (value == NULL)
            return x->status;
        if (!ls_shape_equal(&value->shape, &first->shape))
            return ls_import_cannot(x, NULL, "its inputs are not of one shape");
        tops[i] = value->top;
    }
    if (count == 1)
        return ls_import_hand_on(x, first, 0);
    return ls_import_result(x, 0, ls_import_layer(x, "Eltwise", tops, count, "%s", fields),
                            &first->shape);
}

static int read_sum(struct ls_importer *x)
{
    return x->node->n_input == 2 ? combine(x, ADD) : join(x, "");
}

static int read_max(struct ls_importer *x)
{
    return join(x, "eltwise_param { operation: MAX }");
}

const struct ls_onnx_operator ls_onnx_read_elements[] = {
    {"Abs", read_abs},
    {"Add", read_add},
    {"Clip", read_clip},
    {"Div", read_div},
    {"Elu", read_elu},
    {"Exp", read_exp},
    {"Gelu", read_gelu},
    {"HardSigmoid", read_hard_sigmoid},
    {"HardSwish", read_hard_swish},
    {"LeakyRelu", read_leaky_relu},
    {"Log", read_log},
    {"Max", read_max},
    {"Mish", read_mish},
    {"Mul", read_mul},
    {"Neg", read_neg},
    {"PRelu", read_prelu},
    {"Pow", read_pow},
    {"Reciprocal", read_reciprocal},
    {"Relu", read_relu},
    {"Selu", read_selu},
    {"Sigmoid", read_sigmoid},
    {"Softplus", read_softplus},
    {"Sqrt", read_sqrt},
    {"Sub", read_sub},
    {"Sum", read_sum},
    {"Tanh", read_tanh},
    {NULL, NULL},
};
