/* TanH: y = tanh(x), elementwise. Its backward pass wants y only: dx = dy (1 - y^2).
 * Caffe's tanh_param (an `engine`, which is accepted and changes nothing).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    attr->function = LS_TANH;
    return ls_layer_begin(layer, error, NULL);
}

const struct ls_layer_type ls_layer_tanh = {
    .type = "TanH",
    .parameter = "tanh_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
