/* Silence: reads its bottoms and does nothing, so that they are not printed as outputs of the net.
 * It is the one layer that may read figures (losses, accuracies).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    return ls_layer_begin(layer, error, NULL);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)layer;
    (void)error;
    return 0;
}

const struct ls_layer_type ls_layer_silence = {
    .type = "Silence",
    .bottoms_min = 1,
    .bottoms_max = -1,
    .tops_max = 0,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
};
