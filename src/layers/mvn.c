/* MVN: each channel of each sample (across_channels: each sample) is given the mean 0 and, unless
 * normalize_variance is false, the variance 1.
 *
 *   y = (x - mean) / (sqrt(variance) + eps)
 *
 * eps stands behind the root, as in Caffe. Its gradient here is that of the formula; Caffe's takes
 * eps for 0 in one term, which shows where eps is not small against the deviation. Any number of
 * axes may follow the channels; the top has the bottom's shape. Caffe's mvn_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/sample_norm.h"

static const Lockstep__MVNParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__MVNParameter defaults = LOCKSTEP__MVNPARAMETER__INIT;
    const Lockstep__MVNParameter *param = layer->definition->mvn_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_sample_norm *state = layer->state;
    const Lockstep__MVNParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    if (!p->normalize_variance && p->has_eps)
        return ls_layer_fail(layer, error, p, "eps", "remove it",
                             "eps has no effect without normalize_variance");
    LS_TRY(ls_layer_check_eps(layer, error, p, p->eps));
    state->attr = (struct ls_normalize_attr){
        .axis = 1,
        .groups = p->across_channels ? 1 : layer->bottom[0]->shape.dim[1],
        .variance = p->normalize_variance,
        .behind = true,
        .eps = p->eps,
    };
    return 0;
}

const struct ls_layer_type ls_layer_mvn = {
    .type = "MVN",
    .parameter = "mvn_param",
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
