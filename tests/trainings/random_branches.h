/* Parts of small random networks with several ways through them, or with axes in other places. See
 * random_net.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_BRANCHES_H
#define LS_TESTS_RANDOM_BRANCHES_H

#include "trainings/random_layers.h"

/* A convolution that keeps height and width; with `shared`, its parameters have that name. */
struct blob emit_same(struct random_net *net, const struct blob *bottom, int channels, int kernel,
                      const char *shared);

/* Two ways through convolutions (one way may be no layer at all), joined again. */
struct blob emit_branch(struct random_net *net, const struct blob *bottom);

/* Cut in two along the channels, joined again the other way round. */
struct blob emit_slice(struct random_net *net, const struct blob *bottom);

/* Repeated, or with its axes in other places, or taken apart into rows and put together again. */
struct blob emit_shape(struct random_net *net, const struct blob *bottom);

/* Each channel of each sample by a number that the sample itself gives it. */
struct blob emit_gate(struct random_net *net, const struct blob *bottom);

#endif
