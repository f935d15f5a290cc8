/* Swish: y = x sigmoid(beta x), elementwise; beta is not learned. Its backward pass wants x.
 * Caffe's swish_param. (Ramachandran, Zoph, Le: Searching for activation functions; 2017.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__SwishParameter *p = layer->definition->swish_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    attr->function = LS_SWISH;
    attr->slope = p != NULL ? p->beta : 1;
    return ls_activation_check(layer, error, p, "beta", attr->slope);
}

const struct ls_layer_type ls_layer_swish = {
    .type = "Swish",
    .parameter = "swish_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
