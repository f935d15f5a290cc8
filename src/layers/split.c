/* Split: gives one value several names. Every value may have any number of readers, whose gradients
 * add up, so that a definition needs no Split layers; those that it has cost nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    return ls_layer_begin(layer, error, NULL);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < layer->tops; i++)
        ls_layer_pass(layer, 0, i);
    return 0;
}

/* Nothing to emit: the tops are the bottom's value, and their gradients are its gradient. */
static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)layer;
    (void)error;
    return 0;
}

const struct ls_layer_type ls_layer_split = {
    .type = "Split",
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = -1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
};
