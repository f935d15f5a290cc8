/* Softmax along an axis: y_c = exp(x_c - max x) / sum_j exp(x_j - max x).
 *
 * x, y of any shape; `axis` (default 1); that of the samples mixes them (ls_layer_mix). Caffe's
 * softmax_param; its `engine` is accepted and changes nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct softmax {
    int axis;
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct softmax *state = layer->state;
    const Lockstep__SoftmaxParameter *param = layer->definition->softmax_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->axis = ls_layer_one_axis(layer, error, param, "axis", param != NULL ? param->axis : 1,
                                    layer->bottom[0]);
    return state->axis < 0 ? LOCKSTEP_DEFINITION : 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct softmax *state = layer->state;
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_SOFTMAX);
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct softmax *state = layer->state;
    struct ls_value *inputs[] = {layer->top[0], ls_graph_gradient(layer->graph, layer->top[0])};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_SOFTMAX_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 5, 4, 1);
}

const struct ls_layer_type ls_layer_softmax = {
    .type = "Softmax",
    .parameter = "softmax_param",
    .state_size = sizeof(struct softmax),
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
