/* Import: groups of nodes that one layer stands for.
 *
 *   GELU        x Phi(x), with Erf:  Div or Mul, Erf, Add, and two products in either order
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/importer.h"

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

/* Whether input `k` is a constant of one number, and which. */
static bool number_at(struct ls_importer *x, size_t node, size_t k, double *number)
{
    const size_t at = value_at(x, node, k);
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

/* 1 + Erf(x / sqrt 2), made by the node; the value x, or SIZE_MAX. */
static size_t read_normal(struct ls_importer *x, size_t add, size_t inside[3])
{
    const int one = is_type(x, add, "Add") ? find_number(x, add, 1) : -1;
    if (one < 0)
        return SIZE_MAX;
    const size_t erf = maker_of(x, add, (size_t)(1 - one), "Erf", 1);
    if (erf == SIZE_MAX)
        return SIZE_MAX;
    inside[0] = add;
    inside[1] = erf;
    const size_t div = maker_of(x, erf, 0, "Div", 1), mul = maker_of(x, erf, 0, "Mul", 1);
    double number;
    if (div != SIZE_MAX && number_at(x, div, 1, &number) && is_near(number, sqrt(2))) {
        inside[2] = div;
        return value_at(x, div, 0);
    }
    const int k = mul != SIZE_MAX ? find_number(x, mul, sqrt(0.5)) : -1;
    inside[2] = mul;
    return k >= 0 ? value_at(x, mul, (size_t)(1 - k)) : SIZE_MAX;
}

/* Products of x, 1/2 and the rest, in any order: two nodes. */
static bool find_gelu(struct ls_importer *x, size_t last)
{
    size_t inside[4];
    for (size_t k = 0; k < 2; k++) {
        const size_t first = maker_of(x, last, k, "Mul", 1);
        if (first == SIZE_MAX)
            continue;
        for (size_t j = 0; j < 2; j++) {
            const size_t other_last = value_at(x, last, 1 - k),
                         other_first = value_at(x, first, 1 - j);
            double number;
            size_t add = maker_of(x, first, j, "Add", 1);
            const size_t in = add != SIZE_MAX ? read_normal(x, add, inside) : SIZE_MAX;
            const bool half_last = number_at(x, last, 1 - k, &number) && is_near(number, 0.5);
            const bool half_first = number_at(x, first, 1 - j, &number) && is_near(number, 0.5);
            if (in == SIZE_MAX ||
                !((half_last && other_first == in) || (half_first && other_last == in)))
                continue;
            inside[3] = first;
            for (size_t i = 0; i < 4; i++)
                x->plan[inside[i]].fate = LS_ONNX_INSIDE;
            x->plan[last] = (struct ls_onnx_plan){.fate = LS_ONNX_GELU, .in = in};
            return true;
        }
        /* (x / 2) (1 + Erf ...) */
        const size_t add = maker_of(x, last, 1 - k, "Add", 1);
        const size_t in = add != SIZE_MAX ? read_normal(x, add, inside) : SIZE_MAX;
        const int half = in != SIZE_MAX ? find_number(x, first, 0.5) : -1;
        if (half < 0 || value_at(x, first, (size_t)(1 - half)) != in)
            continue;
        inside[3] = first;
        for (size_t i = 0; i < 4; i++)
            x->plan[inside[i]].fate = LS_ONNX_INSIDE;
        x->plan[last] = (struct ls_onnx_plan){.fate = LS_ONNX_GELU, .in = in};
        return true;
    }
    return false;
}

int ls_import_find_patterns(struct ls_importer *x)
{
    for (size_t i = 0; i < x->graph->n_node; i++)
        if (strcmp(x->graph->node[i]->op_type, "Mul") == 0)
            find_gelu(x, i);
    return 0;
}

int ls_import_read_pattern(struct ls_importer *x)
{
    const struct ls_onnx_plan *plan = &x->plan[x->index];
    const struct ls_onnx_value *in = &x->values[plan->in];
    if (plan->fate == LS_ONNX_SAME)
        return ls_import_hand_on(x, in, 0);
    if (in->top == NULL)
        return ls_import_cannot(x, NULL, "the GELU that it ends reads a constant");
    return ls_import_result(x, 0, LS_LAYER(x, "GELU", in->top, "%s", ""), &in->shape);
}
