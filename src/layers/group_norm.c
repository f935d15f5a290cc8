/* GroupNorm: each sample's channels (axis 1) in `groups` groups, each normalised over its channels
 * and all axes behind them.
 *
 *   y = scale[c] (x - mean) / sqrt(variance + eps) + bias[c]
 *
 * Lockstep's own group_norm_param. `affine: false` leaves scale and bias away. (Wu, He: Group
 * normalization; 2018.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/sample_norm.h"

static const Lockstep__GroupNormParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__GroupNormParameter defaults = LOCKSTEP__GROUP_NORM_PARAMETER__INIT;
    const Lockstep__GroupNormParameter *param = layer->definition->group_norm_param;
    return param != NULL ? param : &defaults;
}

static int check_groups(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__GroupNormParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    if (p->groups == 0)
        return ls_layer_fail(layer, error, p, "groups", NULL, "groups must be at least 1");
    if (x->shape.dim[1] % p->groups == 0)
        return 0;
    return ls_layer_fail(layer, error, layer->definition->group_norm_param, "groups",
                         p->has_groups ? NULL : "set groups; its default is 32",
                         "the %lld channels of '%s' cannot be divided into %u groups",
                         (long long)x->shape.dim[1], x->name, p->groups);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_sample_norm *state = layer->state;
    const Lockstep__GroupNormParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    int groups = check_groups(layer, error);
    state->attr = (struct ls_normalize_attr){.axis = 1, .groups = p->groups};
    LS_TRY(ls_sample_norm_fields(layer, error,
                                 &(struct ls_sample_norm_fields){
                                     p, p->eps, p->affine, p->scale_filler, p->bias_filler, false},
                                 1));
    return groups;
}

const struct ls_layer_type ls_layer_group_norm = {
    .type = "GroupNorm",
    .parameter = "group_norm_param",
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
