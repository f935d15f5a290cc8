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
    .state_size = sizeof(struct ls_activation_attr),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = ls_activation_forward,
    .backward = ls_activation_backward,
    .cost = ls_activation_cost,
};
