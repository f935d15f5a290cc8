/* Sigmoid: y = 1 / (1 + exp(-x)), elementwise. Its backward pass wants y only: dx = dy y (1 - y).
 * Caffe's sigmoid_param (an `engine`, which is accepted and changes nothing).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    attr->function = LS_SIGMOID;
    return ls_layer_begin(layer, error, NULL);
}

const struct ls_layer_type ls_layer_sigmoid = {
    .type = "Sigmoid",
    .parameter = "sigmoid_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
