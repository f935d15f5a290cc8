/* LayerNorm: each sample (each row in front of `axis`) normalised over all axes from `axis` on.
 *
 *   y = scale (x - mean) / sqrt(variance + eps) + bias
 *
 * scale and bias have the shape of those axes, so that these cannot vary with the input; affine:
 * false leaves them away. Lockstep's own layer_norm_param. (Ba, Kiros, Hinton: Layer normalization;
 * 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/sample_norm.h"

static const Lockstep__LayerNormParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__LayerNormParameter defaults = LOCKSTEP__LAYER_NORM_PARAMETER__INIT;
    const Lockstep__LayerNormParameter *param = layer->definition->layer_norm_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_sample_norm *state = layer->state;
    const Lockstep__LayerNormParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int axis = ls_layer_axis(layer, error, p, "axis", p->axis, x, false);
    if (axis < 0)
        return LOCKSTEP_DEFINITION;
    state->attr = (struct ls_normalize_attr){.axis = axis, .groups = 1, .elements = true};
    return ls_sample_norm_fields(layer, error,
                                 &(struct ls_sample_norm_fields){
                                     p, p->eps, p->affine, p->scale_filler, p->bias_filler, false},
                                 x->shape.rank - axis);
}

const struct ls_layer_type ls_layer_layer_norm = {
    .type = "LayerNorm",
    .parameter = "layer_norm_param",
    .state_size = sizeof(struct ls_sample_norm),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = ls_sample_norm_forward,
    .backward = ls_sample_norm_backward,
    .cost = ls_sample_norm_cost,
};
