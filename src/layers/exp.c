/* Exp: y = base^(scale x + shift), elementwise; base -1 (the default) is e. Computed as
 * base^shift exp(log(base) scale x), so that its backward pass wants y only. Caffe's exp_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>

#include "layers/activation.h"

static const Lockstep__ExpParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__ExpParameter defaults = LOCKSTEP__EXP_PARAMETER__INIT;
    const Lockstep__ExpParameter *param = layer->definition->exp_param;
    return param != NULL ? param : &defaults;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__ExpParameter *p = param_of(layer);
    double base;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int scale = ls_activation_check(layer, error, p, "scale", p->scale);
    int shift = ls_activation_check(layer, error, p, "shift", p->shift);
    LS_TRY(ls_activation_log_base(layer, error, p, p->base_, &base));
    LS_TRY(scale);
    LS_TRY(shift);
    *attr = (struct ls_activation_attr){
        .function = LS_EXP,
        .scale = (float)(base * (double)p->scale),
        .factor = (float)Sleef_cinz_expd1_u10purec(base * (double)p->shift)};
    if (!isfinite(attr->scale))
        return ls_layer_fail(layer, error, p, "scale", NULL, "log(base) * scale is out of range");
    if (!isfinite(attr->factor))
        return ls_layer_fail(layer, error, p, "shift", NULL, "base ^ shift is out of range");
    return 0;
}

const struct ls_layer_type ls_layer_exp = {
    .type = "Exp",
    .parameter = "exp_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
