/* Scale: each number of the bottom is multiplied by a factor, and a bias may be added.
 *
 *   y = x factor + bias
 *
 * With one bottom the factor is learned: blob 0, "scale", whose axes are the `num_axes` axes of x
 * from `axis` on (-1: all; 0: one number). With two bottoms the second one is the factor, its axes
 * those of x from `axis` on, so that [N, C] at axis 0 weighs the channels of each sample. The bias,
 * with `bias_term`, is learned and shaped like the factor: the last blob, "bias". Caffe's
 * scale_param; the factor's filler is ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/factor.h"

static const Lockstep__ScaleParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__ScaleParameter defaults = LOCKSTEP__SCALE_PARAMETER__INIT;
    const Lockstep__ScaleParameter *param = layer->definition->scale_param;
    return param != NULL ? param : &defaults;
}

/* Fields that would do nothing. */
static int check_fields(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__ScaleParameter *p = param_of(layer);
    int status = 0;
    if (layer->bottoms == 2)
        status = ls_factor_check_unused(layer, error, p, p->filler != NULL, p->has_num_axes,
                                        "the factor");
    if (!p->bias_term && p->bias_filler != NULL)
        status = ls_layer_fail(layer, error, p, "bias_filler", "add bias_term: true",
                               "bias_filler has no effect without bias_term");
    return status;
}

static int setup_two(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_factor *state = layer->state;
    const Lockstep__ScaleParameter *p = param_of(layer);
    state->factor_bottom = true;
    LS_TRY(ls_factor_bottom(layer, error, p, p->axis, &state->attr));
    if (!p->bias_term)
        return 0;
    /* The bias belongs to no sample, whatever the factor does. */
    struct ls_shape shape;
    struct ls_scale_attr attr;
    LS_TRY(ls_factor_learned(layer, error, p, p->axis, state->attr.axes, &attr, &shape));
    layer->request[0] =
        (struct ls_blob_request){.name = "bias", .shape = shape, .filler = p->bias_filler};
    layer->blobs = 1;
    state->bias_blob = 0;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_factor *state = layer->state;
    const Lockstep__ScaleParameter *p = param_of(layer);
    *state = (struct ls_factor){.factor_blob = -1, .bias_blob = -1};
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_fields(layer, error));
    if (layer->bottoms == 2)
        return setup_two(layer, error);
    struct ls_shape shape;
    LS_TRY(ls_factor_learned(layer, error, p, p->axis, p->num_axes, &state->attr, &shape));
    const Lockstep__FillerParameter *filler = p->filler != NULL ? p->filler : &ls_filler_one;
    layer->request[0] = (struct ls_blob_request){.name = "scale", .shape = shape, .filler = filler};
    layer->request[1] =
        (struct ls_blob_request){.name = "bias", .shape = shape, .filler = p->bias_filler};
    layer->blobs = p->bias_term ? 2 : 1;
    state->factor_blob = 0;
    state->bias_blob = p->bias_term ? 1 : -1;
    return 0;
}

const struct ls_layer_type ls_layer_scale = {
    .type = "Scale",
    .parameter = "scale_param",
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
