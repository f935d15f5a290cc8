/* Losses of small random networks. See random_net.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_LOSSES_H
#define LS_TESTS_RANDOM_LOSSES_H

#include "trainings/random_layers.h"

void emit_loss(struct random_net *net, const char *type, const struct blob *a, const char *b,
               const char *rest);

/* A further loss on a blob in the middle of the net. */
void emit_side_loss(struct random_net *net, const struct blob *bottom);

#endif
