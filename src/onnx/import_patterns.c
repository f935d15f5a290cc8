/* Import: groups of nodes that one layer stands for.
 *
 *   GELU        x Phi(x), with Erf or Tanh, and products in any order
 *   SiLU        x Sigmoid(x)
 *   LayerNorm   the mean away, and by the root of the mean square, as before version 17
 *   RMSNorm     by the root of the mean square
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/import_view.h"

/* The node that makes input `k` of a node, if it is of that type and nothing else reads what it
 * makes; SIZE_MAX: it is not. */
static size_t maker_of(const struct ls_importer *x, size_t node, size_t k, const char *type,
                       size_t uses)
{
    size_t at;
    const Onnx__NodeProto *n = x->graph->node[node];
    if (k >= n->n_input || !ls_names_find(&x->names, n->input[k], &at))
        return SIZE_MAX;
    const struct ls_onnx_value *value = &x->values[at];
    if (value->maker == SIZE_MAX || value->uses != uses || value->user == SIZE_MAX ||
        strcmp(x->graph->node[value->maker]->op_type, type) != 0)
        return SIZE_MAX;
    return value->maker;
}

static size_t value_at(const struct ls_importer *x, size_t node, size_t k)
{
    size_t at = SIZE_MAX;
    const Onnx__NodeProto *n = x->graph->node[node];
    if (k >= n->n_input || !ls_names_find(&x->names, n->input[k], &at))
        return SIZE_MAX;
    return at;
}

/* Whether a value is a constant of one number, and which. */
static bool number_of(struct ls_importer *x, size_t at, double *number)
{
    if (at == SIZE_MAX)
        return false;
    const Onnx__TensorProto *tensor = x->values[at].tensor;
    const size_t maker = x->values[at].maker;
    if (tensor == NULL && maker != SIZE_MAX &&
        strcmp(x->graph->node[maker]->op_type, "Constant") == 0 &&
        x->graph->node[maker]->n_attribute == 1)
        tensor = x->graph->node[maker]->attribute[0]->t;
    struct ls_onnx_array array;
    float real;
    if (tensor == NULL)
        return false;
    const bool one = ls_onnx_tensor_read(tensor, x->path, &array, NULL) == 0 && array.count == 1;
    if (one) {
        ls_onnx_array_floats(&array, &real);
        *number = (double)real;
    }
    ls_onnx_array_free(&array);
    return one;
}

static bool number_at(struct ls_importer *x, size_t node, size_t k, double *number)
{
    return number_of(x, value_at(x, node, k), number);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-4 * fabs(b);
}

/* Which input of a node of two is the number; -1: none is. */
static int find_number(struct ls_importer *x, size_t node, double wanted)
{
    double number;
    for (int k = 0; k < 2; k++)
        if (number_at(x, node, (size_t)k, &number) && is_near(number, wanted))
            return k;
    return -1;
}

static bool is_type(const struct ls_importer *x, size_t node, const char *type)
{
    return node != SIZE_MAX && strcmp(x->graph->node[node]->op_type, type) == 0;
}

/* The input of a node of two that is not `number`, or SIZE_MAX. */
static size_t beside(struct ls_importer *x, size_t node, double number)
{
    const int k = node != SIZE_MAX ? find_number(x, node, number) : -1;
    return k >= 0 ? value_at(x, node, (size_t)(1 - k)) : SIZE_MAX;
}

/* The node of that type that makes a value which has `uses` readers. */
static size_t made_by(const struct ls_importer *x, size_t value, const char *type, size_t uses)
{
    if (value == SIZE_MAX || x->values[value].uses != uses || x->values[value].user == SIZE_MAX ||
        !is_type(x, x->values[value].maker, type))
        return SIZE_MAX;
    return x->values[value].maker;
}

/* Nodes of a pattern. */
struct group {
    size_t node[16];
    size_t count;
};

static void take(struct group *group, size_t node)
{
    if (group->count < sizeof group->node / sizeof *group->node)
        group->node[group->count++] = node;
}

static void use(struct ls_importer *x, const struct group *group, size_t last,
                struct ls_onnx_plan plan)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->node[i] != last)
            x->plan[group->node[i]].fate = LS_ONNX_INSIDE;
    x->plan[last] = plan;
}

/* ---- GELU and SiLU --------------------------------------------------------------------------- */

enum { FACTORS = 4 };

/* The factors of products that nothing else reads. */
static void find_factors(struct ls_importer *x, size_t mul, struct group *group,
                         size_t factors[FACTORS], size_t *count)
{
    take(group, mul);
    for (size_t k = 0; k < 2; k++) {
        const size_t value = value_at(x, mul, k), maker = made_by(x, value, "Mul", 1);
        if (maker != SIZE_MAX && group->count < FACTORS)
            find_factors(x, maker, group, factors, count);
        else if (*count < FACTORS)
            factors[(*count)++] = value;
        else
            *count = FACTORS + 1;
    }
}

/* x^3 = Pow(x, 3), or x (x x); the value x, or SIZE_MAX. */
static size_t read_cube(struct ls_importer *x, size_t value, struct group *group)
{
    const size_t power = made_by(x, value, "Pow", 1), mul = made_by(x, value, "Mul", 1);
    double number;
    if (power != SIZE_MAX && number_at(x, power, 1, &number) && is_near(number, 3)) {
        take(group, power);
        return value_at(x, power, 0);
    }
    for (size_t k = 0; mul != SIZE_MAX && k < 2; k++) {
        const size_t square = maker_of(x, mul, k, "Mul", 1), in = value_at(x, mul, 1 - k);
        if (square != SIZE_MAX && value_at(x, square, 0) == in && value_at(x, square, 1) == in) {
            take(group, mul);
            take(group, square);
            return in;
        }
    }
    return SIZE_MAX;
}

/* sqrt(2 / pi) (x + 0.044715 x^3); the value x. */
static size_t read_inside_tanh(struct ls_importer *x, size_t value, struct group *group)
{
    const size_t mul = made_by(x, value, "Mul", 1);
    const size_t add = made_by(x, beside(x, mul, 0.7978845608), "Add", 1);
    for (size_t k = 0; add != SIZE_MAX && k < 2; k++) {
        const size_t small = maker_of(x, add, k, "Mul", 1);
        const size_t cube = beside(x, small, 0.044715);
        const size_t in = cube != SIZE_MAX ? read_cube(x, cube, group) : SIZE_MAX;
        if (in == SIZE_MAX || in != value_at(x, add, 1 - k))
            continue;
        take(group, mul);
        take(group, add);
        take(group, small);
        return in;
    }
    return SIZE_MAX;
}

/* 1 + Erf(x / sqrt 2), or 1 + Tanh(...); the value x, or SIZE_MAX. */
static size_t read_normal(struct ls_importer *x, size_t value, struct group *group, bool *by_tanh)
{
    const size_t add = made_by(x, value, "Add", 1), function = beside(x, add, 1);
    const size_t erf = made_by(x, function, "Erf", 1), hyperbolic = made_by(x, function, "Tanh", 1);
    *by_tanh = hyperbolic != SIZE_MAX;
    if (erf == SIZE_MAX && hyperbolic == SIZE_MAX)
        return SIZE_MAX;
    take(group, add);
    take(group, *by_tanh ? hyperbolic : erf);
    if (*by_tanh)
        return read_inside_tanh(x, value_at(x, hyperbolic, 0), group);
    const size_t div = maker_of(x, erf, 0, "Div", 1), mul = maker_of(x, erf, 0, "Mul", 1);
    double number;
    take(group, div != SIZE_MAX ? div : mul);
    if (div != SIZE_MAX && number_at(x, div, 1, &number) && is_near(number, sqrt(2)))
        return value_at(x, div, 0);
    return beside(x, mul, sqrt(0.5));
}

/* x, 1/2 and (1 + ...), in any order. */
static bool find_gelu(struct ls_importer *x, size_t last)
{
    struct group group = {0};
    size_t factors[FACTORS + 1], count = 0;
    find_factors(x, last, &group, factors, &count);
    for (size_t i = 0; count == 3 && i < 3; i++) {
        struct group all = group;
        bool by_tanh;
        const size_t in = read_normal(x, factors[i], &all, &by_tanh);
        const size_t p = factors[(i + 1) % 3], q = factors[(i + 2) % 3];
        const size_t half = p == in ? q : p;
        double number;
        if (in == SIZE_MAX || (p != in && q != in) || !number_of(x, half, &number) ||
            !is_near(number, 0.5))
            continue;
        use(x, &all, last,
            (struct ls_onnx_plan){.fate = by_tanh ? LS_ONNX_GELU_TANH : LS_ONNX_GELU, .in = in});
        return true;
    }
    return false;
}

static bool find_silu(struct ls_importer *x, size_t last)
{
    for (size_t k = 0; k < 2; k++) {
        const size_t gate = maker_of(x, last, k, "Sigmoid", 1);
        if (gate == SIZE_MAX || value_at(x, gate, 0) != value_at(x, last, 1 - k))
            continue;
        x->plan[gate].fate = LS_ONNX_INSIDE;
        x->plan[last] = (struct ls_onnx_plan){.fate = LS_ONNX_SILU, .in = value_at(x, last, 1 - k)};
        return true;
    }
    return false;
}

/* ---- Norms ----------------------------------------------------------------------------------- */

/* The mean along one axis, whose number is -1 or that of the last one. */
static bool is_mean(struct ls_importer *x, size_t node, int64_t *axis)
{
    double number = 0;
    const Onnx__NodeProto *n = x->graph->node[node];
    for (size_t i = 0; i < n->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->attribute[i];
        if (a->name != NULL && strcmp(a->name, "keepdims") == 0 && a->has_i && a->i == 0)
            return false;
        if (a->name != NULL && strcmp(a->name, "axes") == 0 && a->n_ints == 1) {
            *axis = a->ints[0];
            return true;
        }
    }
    if (n->n_input < 2 || !number_at(x, node, 1, &number) || !(fabs(number) < LS_RANK_MAX))
        return false;
    *axis = (int64_t)number;
    return true;
}

/* Sqrt(mean(in^2) + eps); false: something else. */
static bool read_root(struct ls_importer *x, size_t value, size_t in, struct group *group,
                      struct ls_onnx_plan *plan)
{
    const size_t root = made_by(x, value, "Sqrt", 1);
    const size_t add = root != SIZE_MAX ? maker_of(x, root, 0, "Add", 1) : SIZE_MAX;
    for (size_t k = 0; add != SIZE_MAX && k < 2; k++) {
        const size_t mean = maker_of(x, add, k, "ReduceMean", 1);
        if (mean == SIZE_MAX || !number_at(x, add, 1 - k, &plan->eps) ||
            !is_mean(x, mean, &plan->axis))
            continue;
        const size_t power = maker_of(x, mean, 0, "Pow", 1), mul = maker_of(x, mean, 0, "Mul", 1);
        const size_t square = power != SIZE_MAX ? power : mul;
        double two = 2;
        if (square == SIZE_MAX || value_at(x, square, 0) != in ||
            (power != SIZE_MAX ? !number_at(x, power, 1, &two) || two != 2
                               : value_at(x, mul, 1) != in))
            return false;
        take(group, root);
        take(group, add);
        take(group, mean);
        take(group, square);
        return true;
    }
    return false;
}

/* The only reader of what a node makes, if it is of that type and its other input is a weight. */
static size_t with_weight(const struct ls_importer *x, size_t node, const char *type,
                          size_t *weight)
{
    size_t out;
    if (x->graph->node[node]->n_output != 1 ||
        !ls_names_find(&x->names, x->graph->node[node]->output[0], &out) ||
        x->values[out].uses != 1 || !is_type(x, x->values[out].user, type))
        return SIZE_MAX;
    const size_t user = x->values[out].user;
    for (size_t k = 0; k < 2; k++) {
        *weight = value_at(x, user, k);
        if (*weight != SIZE_MAX && *weight != out && x->values[*weight].learned &&
            x->values[*weight].shape.rank == 1)
            return user;
    }
    return SIZE_MAX;
}

/* (x - mean) / root, times a weight, plus a bias. */
static bool find_layer_norm(struct ls_importer *x, size_t div)
{
    struct group group = {0};
    struct ls_onnx_plan plan = {.fate = LS_ONNX_LAYER_NORM};
    int64_t axis = 0;
    const size_t centred = value_at(x, div, 0);
    if (centred == SIZE_MAX || !is_type(x, x->values[centred].maker, "Sub") ||
        !read_root(x, value_at(x, div, 1), centred, &group, &plan))
        return false;
    const size_t sub = x->values[centred].maker, mean = maker_of(x, sub, 1, "ReduceMean", 1);
    plan.in = value_at(x, sub, 0);
    if (mean == SIZE_MAX || value_at(x, mean, 0) != plan.in || !is_mean(x, mean, &axis) ||
        axis != plan.axis || x->values[centred].uses > 3)
        return false;
    const size_t mul = with_weight(x, div, "Mul", &plan.scale);
    const size_t add = mul != SIZE_MAX ? with_weight(x, mul, "Add", &plan.bias) : SIZE_MAX;
    if (add == SIZE_MAX)
        return false;
    take(&group, div);
    take(&group, sub);
    take(&group, mean);
    take(&group, mul);
    use(x, &group, add, plan);
    return true;
}

/* x / root, or x times 1 / root, times a weight. */
static bool find_rms_norm(struct ls_importer *x, size_t node)
{
    const bool divides = is_type(x, node, "Div");
    for (size_t k = 0; k < (divides ? 1 : 2); k++) {
        struct group group = {0};
        struct ls_onnx_plan plan = {.fate = LS_ONNX_RMS_NORM, .in = value_at(x, node, k)};
        size_t root = value_at(x, node, 1 - k);
        const size_t inverse = made_by(x, root, "Reciprocal", 1);
        if (!divides && inverse == SIZE_MAX)
            continue;
        if (!divides) {
            take(&group, inverse);
            root = value_at(x, inverse, 0);
        }
        if (plan.in == SIZE_MAX || !read_root(x, root, plan.in, &group, &plan))
            continue;
        const size_t mul = with_weight(x, node, "Mul", &plan.scale);
        if (mul == SIZE_MAX)
            continue;
        take(&group, node);
        use(x, &group, mul, plan);
        return true;
    }
    return false;
}

int ls_import_find_patterns(struct ls_importer *x)
{
    for (size_t i = 0; i < x->graph->n_node; i++) {
        if (x->plan[i].fate != LS_ONNX_AS_IT_IS)
            continue;
        if (is_type(x, i, "Mul") && !find_gelu(x, i) && !find_silu(x, i))
            find_rms_norm(x, i);
        if (is_type(x, i, "Div") && !find_layer_norm(x, i))
            find_rms_norm(x, i);
    }
    return 0;
}

/* ---- Their layers ---------------------------------------------------------------------------- */

static int read_norm(struct ls_importer *x, const struct ls_onnx_plan *plan,
                     struct ls_onnx_value *in)
{
    const bool centred = plan->fate == LS_ONNX_LAYER_NORM;
    struct ls_onnx_value *scale = &x->values[plan->scale], *bias = &x->values[plan->bias];
    struct ls_onnx_rows rows;
    char eps[32];
    LS_TRY(ls_import_rows(x, in, true, &rows));
    const int last = rows.shape.rank - 1;
    const int64_t width = rows.shape.dim[last];
    const struct ls_shape each = {.rank = 1, .dim = {width}};
    if ((plan->axis != -1 && plan->axis != in->shape.rank - 1) || last < 1 ||
        scale->shape.dim[0] != width || (centred && bias->shape.dim[0] != width) ||
        !(plan->eps > 0))
        return ls_import_cannot(x, NULL,
                                "the norm that it ends is not one of rows along the last "
                                "axis");
    ls_format_float(eps, (float)plan->eps);
    ls_import_call(x, scale);
    const char *top =
        LS_LAYER(x, centred ? "LayerNorm" : "RMSNorm", rows.top, "%s { axis: -1 eps: %s }",
                 centred ? "layer_norm_param" : "rms_norm_param", eps);
    LS_TRY(ls_import_weight(x, top, "scale", scale, &each, ls_import_reals_of(x, scale)));
    if (centred)
        LS_TRY(ls_import_weight(x, top, "bias", bias, &each, ls_import_reals_of(x, bias)));
    return ls_import_rows_result(x, 0, top, &rows, 0);
}

int ls_import_read_pattern(struct ls_importer *x)
{
    const struct ls_onnx_plan *plan = &x->plan[x->index];
    struct ls_onnx_value *in = &x->values[plan->in];
    struct ls_onnx_rows rows;
    if (plan->fate == LS_ONNX_SAME)
        return ls_import_hand_on(x, in, 0);
    if (in->broken)
        return x->status = LOCKSTEP_DEFINITION;
    if (in->constant)
        return ls_import_cannot(x, NULL, "the group of nodes that it ends reads a constant");
    if (plan->fate == LS_ONNX_LAYER_NORM || plan->fate == LS_ONNX_RMS_NORM)
        return read_norm(x, plan, in);
    LS_TRY(ls_import_rows(x, in, false, &rows));
    const char *fields = plan->fate == LS_ONNX_GELU_TANH ? "gelu_param { approximate: TANH }" : "";
    const char *top =
        LS_LAYER(x, plan->fate == LS_ONNX_SILU ? "SiLU" : "GELU", rows.top, "%s", fields);
    return ls_import_rows_result(x, 0, top, &rows, 0);
}
