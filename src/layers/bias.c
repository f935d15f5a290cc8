/* Bias: a number is added to each number of the bottom.
 *
 *   y = x + bias
 *
 * With one bottom the bias is learned: blob 0, "bias", whose axes are the `num_axes` axes of x from
 * `axis` on (-1: all; 0: one number). With two bottoms the second one is the bias, its axes those
 * of x from `axis` on. Caffe's bias_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/factor.h"

static const Lockstep__BiasParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__BiasParameter defaults = LOCKSTEP__BIAS_PARAMETER__INIT;
    const Lockstep__BiasParameter *param = layer->definition->bias_param;
    return param != NULL ? param : &defaults;
}

static int setup_two(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_factor *state = layer->state;
    const Lockstep__BiasParameter *p = param_of(layer);
    LS_TRY(ls_factor_check_unused(layer, error, p, p->filler != NULL, p->has_num_axes, "the bias"));
    state->bias_bottom = true;
    return ls_factor_bottom(layer, error, p, p->axis, &state->attr);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_factor *state = layer->state;
    const Lockstep__BiasParameter *p = param_of(layer);
    *state = (struct ls_factor){.factor_blob = -1, .bias_blob = -1};
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (layer->bottoms == 2)
        return setup_two(layer, error);
    struct ls_shape shape;
    LS_TRY(ls_factor_learned(layer, error, p, p->axis, p->num_axes, &state->attr, &shape));
    layer->request[0] =
        (struct ls_blob_request){.name = "bias", .shape = shape, .filler = p->filler};
    layer->blobs = 1;
    state->bias_blob = 0;
    return 0;
}

const struct ls_layer_type ls_layer_bias = {
    .type = "Bias",
    .parameter = "bias_param",
    .state_size = sizeof(struct ls_factor),
    .bottoms_min = 1,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = ls_factor_forward,
    .backward = ls_factor_backward,
    .cost = ls_factor_cost,
};
