/* ReLU: y = max(x, 0) + negative_slope * min(x, 0), elementwise.
 *
 * Its backward pass wants y only, so that x can go as soon as y is there; with a slope below zero
 * the sign of y does not tell that of x, and x is kept. Caffe's relu_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__ReLUParameter *p = layer->definition->relu_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    attr->function = LS_RELU;
    attr->slope = p != NULL ? p->negative_slope : 0;
    return ls_activation_check(layer, error, p, "negative_slope", attr->slope);
}

const struct ls_layer_type ls_layer_relu = {
    .type = "ReLU",
    .parameter = "relu_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
