/* Sigmoid: y = 1 / (1 + exp(-x)), elementwise. Its backward pass wants y only: dx = dy y (1 - y).
 * Caffe's sigmoid_param (an `engine`, which is accepted and changes nothing).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    return ls_layer_begin(layer, error, NULL);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_ACTIVATION);
    if (op != NULL)
        op->attr.activation.function = LS_SIGMOID;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]), layer->top[0]};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_ACTIVATION_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.activation.function = LS_SIGMOID;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 4, 3, 1);
}

const struct ls_layer_type ls_layer_sigmoid = {
    .type = "Sigmoid",
    .parameter = "sigmoid_param",
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
