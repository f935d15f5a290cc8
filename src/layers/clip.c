/* Clip: y = min(max(x, min), max), elementwise. The gradient passes where min <= x <= max, the
 * bounds included. A NaN stays one (Caffe's becomes min). Caffe's clip_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__ClipParameter *p = layer->definition->clip_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (p == NULL)
        return ls_layer_fail(layer, error, NULL, NULL, "add clip_param { min: 0 max: 6 }",
                             "min and max are missing");
    int low = ls_activation_check(layer, error, p, "min", p->min);
    LS_TRY(ls_activation_check(layer, error, p, "max", p->max));
    LS_TRY(low);
    if (p->min > p->max)
        return ls_layer_fail(layer, error, p, "min", NULL, "min %g is larger than max %g",
                             (double)p->min, (double)p->max);
    *attr = (struct ls_activation_attr){.function = LS_CLIP, .low = p->min, .high = p->max};
    return 0;
}

const struct ls_layer_type ls_layer_clip = {
    .type = "Clip",
    .parameter = "clip_param",
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
