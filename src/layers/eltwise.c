/* Eltwise: combines bottoms of one shape, element by element.
 *
 *   PROD: y = x_0 x_1 ...    SUM: y = coeff_0 x_0 + coeff_1 x_1 + ...    MAX: y = max(x_0, x_1,
 * ...)
 *
 * Caffe's eltwise_param. `stable_prod_grad` is accepted with either value: the gradient of PROD is
 * always the product of the others, which is exact where an x is 0; Caffe's other way divides y by
 * x. A bottom whose coefficient is 1 has the top's gradient itself as its own: no op.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/memory.h"
#include "layers/common.h"

struct eltwise {
    struct ls_eltwise_attr attr;
};

static const Lockstep__EltwiseParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__EltwiseParameter defaults = LOCKSTEP__ELTWISE_PARAMETER__INIT;
    const Lockstep__EltwiseParameter *param = layer->definition->eltwise_param;
    return param != NULL ? param : &defaults;
}

static int check_coefficients(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__EltwiseParameter *p = param_of(layer);
    if (p->n_coeff == 0)
        return 0;
    if (p->operation != LOCKSTEP__ELTWISE_PARAMETER__ELTWISE_OP__SUM)
        return ls_layer_fail(layer, error, p, "coeff", "remove it",
                             "coeff is for operation: SUM only");
    if (p->n_coeff != (size_t)layer->bottoms)
        return ls_layer_fail(layer, error, p, "coeff", NULL,
                             "coeff must be given once for each of the %d bottoms, or not at all; "
                             "it is given %zu times",
                             layer->bottoms, p->n_coeff);
    for (size_t i = 0; i < p->n_coeff; i++)
        if (!isfinite(p->coeff[i]))
            return ls_layer_fail(layer, error, p, "coeff", NULL, "coeff must be finite numbers");
    return 0;
}

static int check_bottoms(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *first = layer->bottom[0];
    int status = 0;
    for (int i = 1; i < layer->bottoms; i++) {
        const struct ls_value *other = layer->bottom[i];
        char a[160], b[160];
        int mixed = ls_layer_check_alike(layer, error, i);
        status = mixed != 0 ? mixed : status;
        if (mixed != 0 || ls_shape_equal(&first->shape, &other->shape))
            continue;
        status = ls_layer_fail(layer, error, NULL, "bottom", NULL,
                               "its bottoms must have one shape, but '%s' is %s and '%s' is %s",
                               first->name, ls_shape_text(&first->shape, a, sizeof a), other->name,
                               ls_shape_text(&other->shape, b, sizeof b));
    }
    return status;
}

static enum ls_eltwise method_of(const Lockstep__EltwiseParameter *p)
{
    switch (p->operation) {
    case LOCKSTEP__ELTWISE_PARAMETER__ELTWISE_OP__PROD:
        return LS_ELTWISE_PROD;
    case LOCKSTEP__ELTWISE_PARAMETER__ELTWISE_OP__MAX:
        return LS_ELTWISE_MAX;
    default:
        return LS_ELTWISE_SUM;
    }
}

/* Coefficients that are all 1 are left out, so that the plain sum is one case only. */
static int copy_coefficients(struct ls_layer *layer, struct ls_error *error)
{
    struct eltwise *state = layer->state;
    const Lockstep__EltwiseParameter *p = param_of(layer);
    bool ones = true;
    for (size_t i = 0; i < p->n_coeff; i++)
        ones &= p->coeff[i] == 1;
    if (ones)
        return 0;
    float *copy = ls_graph_own(layer->graph, ls_alloc(p->n_coeff, sizeof *copy));
    if (copy == NULL)
        return ls_fail_memory(error, "coefficients");
    for (size_t i = 0; i < p->n_coeff; i++)
        copy[i] = p->coeff[i];
    state->attr.coefficients = copy;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct eltwise *state = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int coefficients = check_coefficients(layer, error);
    LS_TRY(check_bottoms(layer, error));
    LS_TRY(coefficients);
    state->attr.method = method_of(param_of(layer));
    return copy_coefficients(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct eltwise *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *y = ls_layer_make_top(layer, 0, &layer->bottom[0]->shape, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ELTWISE);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.eltwise = state->attr;
    return 0;
}

static void backward_one(struct ls_layer *layer, int which, struct ls_value *dy)
{
    const struct eltwise *state = layer->state;
    struct ls_graph *graph = layer->graph;
    bool sum = state->attr.method == LS_ELTWISE_SUM;
    if (sum && (state->attr.coefficients == NULL || state->attr.coefficients[which] == 1)) {
        ls_graph_add_gradient(graph, layer->bottom[which], dy);
        return;
    }
    struct ls_value *dx = ls_graph_gradient_value(graph, layer->bottom[which]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ELTWISE_BACKWARD);
    ls_op_in(graph, op, dy);
    for (int i = 0; !sum && i < layer->bottoms; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    ls_op_out(graph, op, dx);
    if (op != NULL) {
        op->attr.eltwise = state->attr;
        op->attr.eltwise.which = which;
    }
    ls_graph_add_gradient(graph, layer->bottom[which], dx);
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    for (int i = 0; i < layer->bottoms; i++)
        if (layer->propagate[i])
            backward_one(layer, i, dy);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct eltwise *state = layer->state;
    const struct ls_eltwise_attr *attr = &state->attr;
    double elements = (double)ls_shape_size(&layer->top[0]->shape);
    double bytes = ls_layer_bytes(layer->top[0]);
    int n = layer->bottoms;
    cost->forward_flops = elements * (attr->coefficients != NULL ? 2 * n : n - 1);
    cost->forward_bytes = bytes * (n + 1);
    for (int i = 0; i < n; i++) {
        bool sum = attr->method == LS_ELTWISE_SUM;
        bool free = sum && (attr->coefficients == NULL || attr->coefficients[i] == 1);
        if (free || !ls_layer_has_gradient(layer, i))
            continue;
        cost->backward_data_flops += elements * (sum ? 1 : n);
        cost->backward_bytes += bytes * (sum ? 2 : n + 2);
    }
}

const struct ls_layer_type ls_layer_eltwise = {
    .type = "Eltwise",
    .parameter = "eltwise_param",
    .state_size = sizeof(struct eltwise),
    .bottoms_min = 2,
    .bottoms_max = -1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
