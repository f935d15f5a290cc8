/* RMSNorm: each row divided by the root of the mean of its squares.
 *
 *   y = scale x / sqrt(mean of x^2 + eps)
 *
 * A row is all of the axes from `axis` on (default: the last one), for each place in front of them;
 * scale has the shape of those axes, and is left away with affine: false. Unlike LayerNorm it takes
 * no mean off, and has no bias. Lockstep's own rms_norm_param. (Zhang, Sennrich: Root mean square
 * layer normalization; 2019.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/sample_norm.h"

static const Lockstep__RMSNormParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__RMSNormParameter defaults = LOCKSTEP__RMSNORM_PARAMETER__INIT;
    const Lockstep__RMSNormParameter *param = layer->definition->rms_norm_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_sample_norm *state = layer->state;
    const Lockstep__RMSNormParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    const int axis =
        ls_layer_axis(layer, error, layer->definition->rms_norm_param, "axis", p->axis, x, false);
    if (axis < 0)
        return LOCKSTEP_DEFINITION;
    state->attr = (struct ls_normalize_attr){
        .axis = axis, .groups = 1, .elements = true, .around_zero = true};
    return ls_sample_norm_fields(layer, error,
                                 &(struct ls_sample_norm_fields){.message = p,
                                                                 .eps = p->eps,
                                                                 .affine = p->affine,
                                                                 .no_bias = true,
                                                                 .scale_filler = p->scale_filler},
                                 x->shape.rank - axis);
}

const struct ls_layer_type ls_layer_rms_norm = {
    .type = "RMSNorm",
    .parameter = "rms_norm_param",
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
