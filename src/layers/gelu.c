/* GELU: y = x P(x), elementwise; P is that a normal number is below x.
 *
 * P is (1 + erf(x / sqrt(2))) / 2 or, with approximate: TANH, (1 + tanh(sqrt(2 / pi) (x + 0.044715
 * x^3))) / 2. Its backward pass wants x. Lockstep's own gelu_param. (Hendrycks, Gimpel: Gaussian
 * error linear units; 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__GELUParameter *p = layer->definition->gelu_param;
    const bool by_tanh = p != NULL && p->approximate == LOCKSTEP__GELUPARAMETER__APPROXIMATE__TANH;
    attr->function = by_tanh ? LS_GELU_TANH : LS_GELU;
    return ls_layer_begin(layer, error, NULL);
}

const struct ls_layer_type ls_layer_gelu = {
    .type = "GELU",
    .parameter = "gelu_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
