/* ELU: y = x for x > 0, else alpha (exp(x) - 1), elementwise.
 *
 * Its backward pass wants y only, dx = dy (y + alpha) where y <= 0; with an alpha below zero the
 * sign of y does not tell that of x, and x is kept. Caffe's elu_param. (Clevert, Unterthiner,
 * Hochreiter: Fast and accurate deep network learning by exponential linear units; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__ELUParameter *p = layer->definition->elu_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    attr->function = LS_ELU;
    attr->slope = p != NULL ? p->alpha : 1;
    return ls_activation_check(layer, error, p, "alpha", attr->slope);
}

const struct ls_layer_type ls_layer_elu = {
    .type = "ELU",
    .parameter = "elu_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
