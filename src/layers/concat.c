/* Concat: joins its bottoms along an axis.
 *
 * x_i [..., A_i, ...], equal in all other axes; y [..., sum of A_i, ...]. `axis` (default 1) may
 * be that of the samples, which mixes them (ls_layer_mix); `concat_dim` is its older name. Backward
 * cuts the gradient into the parts of the bottoms. Caffe's concat_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct concat {
    struct ls_shape top;
    int axis;
};

static int read_axis(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__ConcatParameter *param = layer->definition->concat_param;
    if (param == NULL || !param->has_concat_dim)
        return ls_layer_one_axis(layer, error, param, "axis", param != NULL ? param->axis : 1,
                                 layer->bottom[0]);
    if (param->has_axis) {
        ls_layer_fail(layer, error, param, "concat_dim", "keep axis",
                      "axis and concat_dim cannot both be given");
        return -1;
    }
    int dim = param->concat_dim < LS_RANK_MAX ? (int)param->concat_dim : LS_RANK_MAX;
    return ls_layer_one_axis(layer, error, param, "concat_dim", dim, layer->bottom[0]);
}

/* Whether bottom `index` can stand beside bottom 0. */
static int check_bottom(const struct ls_layer *layer, struct ls_error *error, int axis, int index)
{
    const struct ls_value *first = layer->bottom[0], *other = layer->bottom[index];
    LS_TRY(ls_layer_check_alike(layer, error, index));
    bool fits = other->shape.rank == first->shape.rank;
    for (int i = 0; fits && i < first->shape.rank; i++)
        fits = i == axis || other->shape.dim[i] == first->shape.dim[i];
    if (fits)
        return 0;
    char a[160], b[160];
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottoms must agree in all axes but axis %d, but '%s' is %s and '%s' "
                         "is %s",
                         axis, first->name, ls_shape_text(&first->shape, a, sizeof a), other->name,
                         ls_shape_text(&other->shape, b, sizeof b));
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct concat *state = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->axis = read_axis(layer, error);
    LS_TRY(state->axis < 0 ? LOCKSTEP_DEFINITION : 0);
    state->top = layer->bottom[0]->shape;
    int status = 0;
    for (int i = 1; i < layer->bottoms; i++) {
        int failed = check_bottom(layer, error, state->axis, i);
        status = failed != 0 ? failed : status;
        if (failed == 0)
            state->top.dim[state->axis] += layer->bottom[i]->shape.dim[state->axis];
    }
    return status != 0 ? status : ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct concat *state = layer->state;
    struct ls_graph *graph = layer->graph;
    if (layer->bottoms == 1) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_CONCAT);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

/* All parts are cut, also those that are not wanted: their places follow from each other's shapes.
 */
static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct concat *state = layer->state;
    struct ls_graph *graph = layer->graph;
    if (layer->bottoms == 1)
        return 0; /* top and bottom are one value, and so are their gradients */
    struct ls_op *op = ls_graph_op(graph, LS_OP_SLICE);
    ls_op_in(graph, op, ls_graph_gradient(graph, layer->top[0]));
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_out(graph, op, ls_graph_gradient_value(graph, layer->bottom[i]));
    if (op == NULL || graph->failed)
        return 0; /* reported by the caller */
    op->attr.axis = state->axis;
    for (int i = 0; i < layer->bottoms; i++)
        if (layer->propagate[i])
            ls_graph_add_gradient(graph, layer->bottom[i], op->output[i]);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    if (layer->bottoms == 1)
        return;
    cost->forward_bytes = 2 * ls_layer_bytes(layer->top[0]);
    for (int i = 0; i < layer->bottoms; i++)
        if (ls_layer_has_gradient(layer, i))
            cost->backward_bytes = 2 * ls_layer_bytes(layer->top[0]);
}

const struct ls_layer_type ls_layer_concat = {
    .type = "Concat",
    .parameter = "concat_param",
    .state_size = sizeof(struct concat),
    .bottoms_min = 1,
    .bottoms_max = -1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
