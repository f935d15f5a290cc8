/* Threshold: y = 1 where x > threshold, else 0, elementwise. It has no gradient: what only a
 * Threshold connects with the loss does not learn. Caffe's threshold_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    const Lockstep__ThresholdParameter *p = layer->definition->threshold_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    attr->function = LS_THRESHOLD;
    attr->low = p != NULL ? p->threshold : 0;
    return ls_activation_check(layer, error, p, "threshold", attr->low);
}

const struct ls_layer_type ls_layer_threshold = {
    .type = "Threshold",
    .parameter = "threshold_param",
    .state_size = sizeof(struct ls_activation_attr),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = ls_activation_forward,
    .cost = ls_activation_cost,
};
