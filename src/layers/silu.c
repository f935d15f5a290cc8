/* SiLU: y = x sigmoid(x), elementwise, which is Swish with beta 1. Its backward pass wants x.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    attr->function = LS_SWISH;
    attr->slope = 1;
    return ls_layer_begin(layer, error, NULL);
}

const struct ls_layer_type ls_layer_silu = {
    .type = "SiLU",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
