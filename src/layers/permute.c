/* Permute: its bottom with its axes in another order.
 *
 * Axis i of the top is axis order[i] of the bottom; axes that are not named follow in their order.
 * The samples go with their axis. SSD's permute_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/emit.h"

struct permute {
    int order[LS_RANK_MAX];
    bool identity;
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct permute *state = layer->state;
    const Lockstep__PermuteParameter *p = layer->definition->permute_param;
    const struct ls_value *x = layer->bottom[0];
    const int rank = x->shape.rank;
    bool taken[LS_RANK_MAX] = {false};
    int count = 0;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    for (size_t i = 0; p != NULL && i < p->n_order; i++) {
        const uint32_t axis = p->order[i];
        if (axis >= (uint32_t)rank)
            return ls_layer_fail(layer, error, p, "order", NULL,
                                 "order names axis %u, but '%s' has %d axes", axis, x->name, rank);
        if (taken[axis])
            return ls_layer_fail(layer, error, p, "order", NULL, "order names axis %u twice", axis);
        taken[axis] = true;
        state->order[count++] = (int)axis;
    }
    for (int axis = 0; axis < rank; axis++)
        if (!taken[axis])
            state->order[count++] = axis;
    state->identity = true;
    for (int axis = 0; axis < rank; axis++)
        state->identity = state->identity && state->order[axis] == axis;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct permute *state = layer->state;
    if (state->identity)
        ls_layer_pass(layer, 0, 0);
    else
        ls_emit_permuted(layer, 0, NULL, layer->bottom[0], state->order);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct permute *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]), *x = layer->bottom[0];
    if (!state->identity)
        ls_graph_add_gradient(graph, x, ls_emit_permuted_slope(layer, x, dy, state->order));
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct permute *state = layer->state;
    if (!state->identity)
        ls_layer_map_cost(layer, cost, 0, 0, 0);
}

const struct ls_layer_type ls_layer_permute = {
    .type = "Permute",
    .parameter = "permute_param",
    .state_size = sizeof(struct permute),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
