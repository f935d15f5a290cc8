/* Power: y = (shift + scale x)^power, elementwise.
 *
 * Where scale or power is 0 the result is a constant (1 for power 0) and the gradient 0. A negative
 * base with a power that is no integer gives NaN, as in Caffe. The gradient is
 * power scale (shift + scale x)^(power - 1); Caffe divides y by the base, which is the same, but
 * NaN where that is 0. What changes nothing (power 1, scale 1, shift 0) costs nothing. Caffe's
 * power_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>

#include "ir/filter.h"
#include "layers/activation.h"

static const Lockstep__PowerParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__PowerParameter defaults = LOCKSTEP__POWER_PARAMETER__INIT;
    const Lockstep__PowerParameter *param = layer->definition->power_param;
    return param != NULL ? param : &defaults;
}

static bool changes_nothing(const struct ls_layer *layer)
{
    const struct ls_activation_attr *attr = layer->state;
    return attr->power == 1 && attr->scale == 1 && attr->shift == 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__PowerParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int power = ls_activation_check(layer, error, p, "power", p->power);
    int scale = ls_activation_check(layer, error, p, "scale", p->scale);
    LS_TRY(ls_activation_check(layer, error, p, "shift", p->shift));
    LS_TRY(power);
    LS_TRY(scale);
    if (p->power < 0 || p->power != floorf(p->power))
        LS_TRY(ls_filter_refuse(layer, error,
                                "only whole powers from 0 on are finite for whatever they hold"));
    *attr = (struct ls_activation_attr){
        .function = LS_POWER, .power = p->power, .scale = p->scale, .shift = p->shift};
    if (!isfinite(p->power * p->scale))
        return ls_layer_fail(layer, error, p, "scale", NULL, "power * scale is out of range");
    if (p->scale == 0 &&
        !isfinite((float)Sleef_cinz_powd1_u10purec((double)p->shift, (double)p->power)))
        return ls_layer_fail(layer, error, p, "shift", NULL,
                             "with scale 0 the result is shift ^ power, which is no finite number");
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    if (!changes_nothing(layer))
        return ls_activation_forward(layer, error);
    ls_layer_pass(layer, 0, 0);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    return changes_nothing(layer) ? 0 : ls_activation_backward(layer, error);
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    if (!changes_nothing(layer))
        ls_activation_cost(layer, cost);
}

const struct ls_layer_type ls_layer_power = {
    .type = "Power",
    .parameter = "power_param",
    .state_size = sizeof(struct ls_activation_attr),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
