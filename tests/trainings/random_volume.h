/* Layers over three axes in small random networks. See random_net.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_VOLUME_H
#define LS_TESTS_RANDOM_VOLUME_H

#include "trainings/random_layers.h"

/* Channels taken for the depth of a volume, layers over three axes, and a plane again. */
struct blob emit_volume(struct random_net *net, const struct blob *bottom);

#endif
