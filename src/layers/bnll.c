/* BNLL: y = log(1 + exp(x)), elementwise (what others call softplus). Its backward pass wants x:
 * dx = dy sigmoid(x).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    attr->function = LS_BNLL;
    return ls_layer_begin(layer, error, NULL);
}

const struct ls_layer_type ls_layer_bnll = {
    .type = "BNLL",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
