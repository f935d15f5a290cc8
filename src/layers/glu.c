/* GLU: values times a function of gates, y = value f(gate).
 *
 * With one bottom its halves along `axis` (default: the last one) are the values and the gates, so
 * that y has half as many places there; with two bottoms of one shape they are those. The gates
 * come second, or first with `gate_first`. f is the sigmoid, or what `gate` says: SILU (as in
 * Llama's), GELU, GELU_TANH, RELU, or NONE for the gate itself. Lockstep's own glu_param. (Dauphin,
 * Fan, Auli, Grangier: Language modeling with gated convolutional networks; 2016. Shazeer: GLU
 * variants improve transformer; 2020.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct glu {
    struct ls_glu_attr attr;
    struct ls_shape top;
    int value, gate; /* bottoms */
};

static const Lockstep__GLUParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__GLUParameter defaults = LOCKSTEP__GLUPARAMETER__INIT;
    const Lockstep__GLUParameter *param = layer->definition->glu_param;
    return param != NULL ? param : &defaults;
}

static void set_gate(struct ls_glu_attr *attr, const Lockstep__GLUParameter *p)
{
    switch (p->gate) {
    case LOCKSTEP__GLUPARAMETER__GATE__SILU:
        attr->gate = (struct ls_activation_attr){.function = LS_SWISH, .slope = 1};
        break;
    case LOCKSTEP__GLUPARAMETER__GATE__GELU:
        attr->gate.function = LS_GELU;
        break;
    case LOCKSTEP__GLUPARAMETER__GATE__GELU_TANH:
        attr->gate.function = LS_GELU_TANH;
        break;
    case LOCKSTEP__GLUPARAMETER__GATE__RELU:
        attr->gate.function = LS_RELU;
        break;
    case LOCKSTEP__GLUPARAMETER__GATE__NONE:
        attr->linear = true;
        break;
    default:
        attr->gate.function = LS_SIGMOID;
        break;
    }
}

static int setup_halves(struct ls_layer *layer, struct ls_error *error)
{
    struct glu *state = layer->state;
    const Lockstep__GLUParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    const void *message = layer->definition->glu_param;
    const int axis = ls_layer_axis(layer, error, message, "axis", p->axis, x, false);
    if (axis < 0)
        return LOCKSTEP_DEFINITION;
    if (x->shape.dim[axis] % 2 != 0)
        return ls_layer_fail(layer, error, message, p->has_axis ? "axis" : NULL,
                             "values and gates can be two bottoms",
                             "axis %d of '%s' has no two halves: its extent is %lld", p->axis,
                             x->name, (long long)x->shape.dim[axis]);
    state->attr.axis = axis;
    state->top = x->shape;
    state->top.dim[axis] /= 2;
    return 0;
}

static int setup_pair(struct ls_layer *layer, struct ls_error *error)
{
    struct glu *state = layer->state;
    const Lockstep__GLUParameter *p = param_of(layer);
    const struct ls_value *first = layer->bottom[0], *second = layer->bottom[1];
    char a[160], b[160];
    if (p->has_axis)
        return ls_layer_fail(layer, error, p, "axis", "remove it",
                             "axis is for one bottom, which has values and gates in its halves");
    LS_TRY(ls_layer_check_alike(layer, error, 1));
    if (!ls_shape_equal(&first->shape, &second->shape))
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottoms must have one shape, but '%s' is %s and '%s' is %s",
                             first->name, ls_shape_text(&first->shape, a, sizeof a), second->name,
                             ls_shape_text(&second->shape, b, sizeof b));
    state->value = p->gate_first ? 1 : 0;
    state->gate = 1 - state->value;
    state->top = first->shape;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct glu *state = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    set_gate(&state->attr, param_of(layer));
    state->attr.gate_first = param_of(layer)->gate_first;
    return layer->bottoms > 1 ? setup_pair(layer, error) : setup_halves(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct glu *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_GLU);
    ls_op_in(graph, op, layer->bottom[state->value]);
    if (layer->bottoms > 1)
        ls_op_in(graph, op, layer->bottom[state->gate]);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.glu = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct glu *state = layer->state;
    struct ls_graph *graph = layer->graph;
    const int bottoms[] = {state->value, state->gate}, count = layer->bottoms > 1 ? 2 : 1;
    struct ls_op *op = ls_graph_op(graph, LS_OP_GLU_BACKWARD);
    struct ls_value *gradient[2] = {NULL, NULL};
    ls_op_in(graph, op, ls_graph_gradient(graph, layer->top[0]));
    for (int i = 0; i < count; i++)
        ls_op_in(graph, op, layer->bottom[bottoms[i]]);
    for (int i = 0; i < count; i++) {
        if (layer->propagate[bottoms[i]])
            gradient[i] = ls_graph_gradient_value(graph, layer->bottom[bottoms[i]]);
        ls_op_out(graph, op, gradient[i]);
    }
    if (op != NULL)
        op->attr.glu = state->attr;
    for (int i = 0; i < count; i++)
        if (gradient[i] != NULL)
            ls_graph_add_gradient(graph, layer->bottom[bottoms[i]], gradient[i]);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const double elements = (double)ls_shape_size(&layer->top[0]->shape);
    const double bytes = ls_layer_bytes(layer->top[0]);
    cost->forward_flops = 5 * elements;
    cost->forward_bytes = 3 * bytes;
    if (!ls_layer_has_gradient(layer, 0) &&
        (layer->bottoms == 1 || !ls_layer_has_gradient(layer, 1)))
        return;
    cost->backward_data_flops = 10 * elements;
    cost->backward_bytes = 5 * bytes;
}

const struct ls_layer_type ls_layer_glu = {
    .type = "GLU",
    .parameter = "glu_param",
    .state_size = sizeof(struct glu),
    .bottoms_min = 1,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
