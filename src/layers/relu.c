/* ReLU: y = max(x, 0) + negative_slope * min(x, 0), elementwise.
 *
 * Its backward pass wants y only, so that x can go as soon as y is there; with a slope below zero
 * the sign of y does not tell that of x, and x is kept. Caffe's relu_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/common.h"

static float slope_of(const struct ls_layer *layer)
{
    const Lockstep__ReLUParameter *param = layer->definition->relu_param;
    return param != NULL ? param->negative_slope : 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (!isfinite(slope_of(layer)))
        return ls_layer_fail(layer, error, layer->definition->relu_param, "negative_slope", NULL,
                             "negative_slope must be a finite number");
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_ACTIVATION);
    if (op != NULL) {
        op->attr.activation.function = LS_RELU;
        op->attr.activation.slope = slope_of(layer);
    }
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]),
                                 slope_of(layer) < 0 ? layer->bottom[0] : layer->top[0]};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_ACTIVATION_BACKWARD, inputs, 2);
    if (op != NULL) {
        op->attr.activation.function = LS_RELU;
        op->attr.activation.slope = slope_of(layer);
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 1, 1, 1);
}

const struct ls_layer_type ls_layer_relu = {
    .type = "ReLU",
    .parameter = "relu_param",
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
