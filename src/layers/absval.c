/* AbsVal: y = |x|, elementwise; the gradient at 0 is 0, as in Caffe. It may be in place, which
 * Caffe's may not.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/activation.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_activation_attr *attr = layer->state;
    attr->function = LS_ABSOLUTE;
    return ls_layer_begin(layer, error, NULL);
}

const struct ls_layer_type ls_layer_absval = {
    .type = "AbsVal",
    .state_size = sizeof(struct ls_activation_attr),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = ls_activation_forward,
    .backward = ls_activation_backward,
    .cost = ls_activation_cost,
};
