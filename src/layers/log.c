/* Log: y = log(scale x + shift) to a base, elementwise; base -1 (the default) is e. Where
 * scale x + shift is below zero the result is NaN, at zero minus infinity, as in Caffe. Its
 * backward pass wants x. Caffe's log_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/activation.h"

static const Lockstep__LogParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__LogParameter defaults = LOCKSTEP__LOG_PARAMETER__INIT;
    const Lockstep__LogParameter *param = layer->definition->log_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__LogParameter *p = param_of(layer);
    double base;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int scale = ls_activation_check(layer, error, p, "scale", p->scale);
    int shift = ls_activation_check(layer, error, p, "shift", p->shift);
    LS_TRY(ls_activation_log_base(layer, error, p, p->base_, &base));
    LS_TRY(scale);
    LS_TRY(shift);
    if (base == 0)
        return ls_layer_fail(layer, error, p, "base", NULL, "there is no logarithm to the base 1");
    *attr = (struct ls_activation_attr){
        .function = LS_LOG, .scale = p->scale, .shift = p->shift, .factor = (float)(1 / base)};
    if (p->scale == 0 && !(p->shift > 0))
        return ls_layer_fail(layer, error, p, "scale", NULL,
                             "with scale 0 the result is that of shift alone, which must be above "
                             "zero then");
    if (!isfinite(attr->factor * attr->scale))
        return ls_layer_fail(layer, error, p, "scale", NULL, "scale / log(base) is out of range");
    return 0;
}

const struct ls_layer_type ls_layer_log = {
    .type = "Log",
    .parameter = "log_param",
    .state_size = sizeof(struct ls_activation_attr),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = ls_activation_forward,
    .backward = ls_activation_backward,
    .cost = ls_activation_cost,
};
