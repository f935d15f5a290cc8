/* Functions of one number that are two others in a row.
 *
 *   ReLU6: y = min(relu(x), 6), elementwise; it reads relu_param, of MobileNet's forks
 *   SELU (also as SeLu): y = l x for x > 0, else l a (exp(x) - 1), a = 1.6732632, l = 1.050701
 *     (Klambauer et al.: Self-normalizing neural networks; 2017)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"
#include "layers/emit.h"

struct chained {
    struct ls_activation_attr first, second;
    struct ls_value *between;
};

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct chained *state = layer->state;
    struct ls_value *x = layer->bottom[0];
    struct ls_emitted first = ls_emit_side(layer, LS_OP_ACTIVATION, "between", &x->shape, x, &x, 1);
    struct ls_emitted second =
        ls_emit_top(layer, LS_OP_ACTIVATION, 0, &x->shape, x, &first.value, 1);
    if (first.op != NULL && second.op != NULL) {
        first.op->attr.activation = state->first;
        second.op->attr.activation = state->second;
    }
    state->between = first.value;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct chained *state = layer->state;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    struct ls_value *x = layer->bottom[0];
    struct ls_value *behind[] = {dy, ls_activation_keeps_x(&state->second) ? state->between
                                                                           : layer->top[0]};
    struct ls_emitted slope =
        ls_emit_slope(layer, LS_OP_ACTIVATION_BACKWARD, state->between, behind, 2);
    struct ls_value *front[] = {slope.value,
                                ls_activation_keeps_x(&state->first) ? x : state->between};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_ACTIVATION_BACKWARD, front, 2);
    if (slope.op != NULL && op != NULL) {
        slope.op->attr.activation = state->second;
        op->attr.activation = state->first;
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 2, 2, 1);
}

static int relu6_setup(struct ls_layer *layer, struct ls_error *error)
{
    struct chained *state = layer->state;
    const Lockstep__ReLUParameter *p = layer->definition->relu_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->first.function = LS_RELU;
    state->first.slope = p != NULL ? p->negative_slope : 0;
    state->second = (struct ls_activation_attr){.function = LS_CLIP, .low = -0x1p127F, .high = 6};
    return ls_activation_check(layer, error, p, "negative_slope", state->first.slope);
}

static int selu_setup(struct ls_layer *layer, struct ls_error *error)
{
    struct chained *state = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->first = (struct ls_activation_attr){.function = LS_ELU, .slope = 1.67326324F};
    state->second =
        (struct ls_activation_attr){.function = LS_POWER, .scale = 1.05070099F, .power = 1};
    return 0;
}

#define CHAINED(symbol, name, parameter_, setup_)                                                  \
    const struct ls_layer_type symbol = {                                                          \
        .type = name,                                                                              \
        .parameter = parameter_,                                                                   \
        .state_size = sizeof(struct chained),                                                      \
        .bottoms_min = 1,                                                                          \
        .bottoms_max = 1,                                                                          \
        .tops_min = 1,                                                                             \
        .tops_max = 1,                                                                             \
        .filtered = LS_FILTERED_HANDED_ON,                                                         \
        .setup = setup_,                                                                           \
        .forward = forward,                                                                        \
        .backward = backward,                                                                      \
        .cost = cost,                                                                              \
    }

CHAINED(ls_layer_relu6, "ReLU6", "relu_param", relu6_setup);
CHAINED(ls_layer_selu, "SELU", NULL, selu_setup);
