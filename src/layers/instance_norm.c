/* InstanceNorm: each channel (axis 1) of each sample normalised over all axes behind it.
 *
 *   y = (x - mean) / sqrt(variance + eps), with affine: true times scale[c] plus bias[c]
 *
 * A channel of one value gives 0 (the bias). Lockstep's own instance_norm_param. (Ulyanov, Vedaldi,
 * Lempitsky: Instance normalization; 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/sample_norm.h"

static const Lockstep__InstanceNormParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__InstanceNormParameter defaults = LOCKSTEP__INSTANCE_NORM_PARAMETER__INIT;
    const Lockstep__InstanceNormParameter *param = layer->definition->instance_norm_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_sample_norm *state = layer->state;
    const Lockstep__InstanceNormParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    state->attr = (struct ls_normalize_attr){.axis = 1, .groups = layer->bottom[0]->shape.dim[1]};
    return ls_sample_norm_fields(layer, error,
                                 &(struct ls_sample_norm_fields){
                                     p, p->eps, p->affine, p->scale_filler, p->bias_filler, false},
                                 1);
}

const struct ls_layer_type ls_layer_instance_norm = {
    .type = "InstanceNorm",
    .parameter = "instance_norm_param",
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
