/* Layer types for tests, with state per sample, which a definition may name:
 *
 *   RunningSum   y = x + s with s what y was in the window before: the sum over all windows
 *   Unpool       max pooling 2 x 2, whose maxima go to where those of the window before were: a
 *                state of whole numbers
 *   Idle         y = x, and a state of bytes, an odd number of them a sample, that stays as it is
 *   KeptNever, KeptTwice, KeptOtherwise, KeptUnknown, NoSamples
 *                what a layer's code must not do with its state
 *
 * Programs that use them are linked with --wrap=ls_layer_type_find (cmake/tests.cmake).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_STATE_LAYERS_H
#define LS_TESTS_STATE_LAYERS_H

#include "ir/layer.h"

/* From now on definitions may name them. */
void use_state_layers(void);

#endif
