/* Functions that let through the more of a number the larger it is.
 *
 *   GELU: y = x P(x), P that a normal number is below x, elementwise
 *   SiLU: y = x sigmoid(x), elementwise, which is Swish with beta 1
 *
 * P is (1 + erf(x / sqrt(2))) / 2 or, with approximate: TANH, (1 + tanh(sqrt(2 / pi) (x + 0.044715
 * x^3))) / 2. Lockstep's own gelu_param. (Hendrycks, Gimpel: Gaussian error linear units; 2016.)
 * Backward passes want x.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int gelu_setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__GELUParameter *p = layer->definition->gelu_param;
    const bool by_tanh = p != NULL && p->approximate == LOCKSTEP__GELUPARAMETER__APPROXIMATE__TANH;
    attr->function = by_tanh ? LS_GELU_TANH : LS_GELU;
    return ls_layer_begin(layer, error, NULL);
}

static int silu_setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    attr->function = LS_SWISH;
    attr->slope = 1;
    return ls_layer_begin(layer, error, NULL);
}

#define GATED_LAYER(symbol, name, parameter_, setup_)                                              \
    const struct ls_layer_type symbol = {                                                          \
        .type = name,                                                                              \
        .parameter = parameter_,                                                                   \
        .state_size = sizeof(struct ls_activation_attr),                                           \
        .bottoms_min = 1,                                                                          \
        .bottoms_max = 1,                                                                          \
        .tops_min = 1,                                                                             \
        .tops_max = 1,                                                                             \
        .filtered = LS_FILTERED_HANDED_ON,                                                         \
        .setup = setup_,                                                                           \
        .forward = ls_activation_forward,                                                          \
        .backward = ls_activation_backward,                                                        \
        .cost = ls_activation_cost,                                                                \
    }

GATED_LAYER(ls_layer_gelu, "GELU", "gelu_param", gelu_setup);
GATED_LAYER(ls_layer_silu, "SiLU", NULL, silu_setup);
