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
    .setup = setup,
    LS_ACTIVATION_TYPE,
};
