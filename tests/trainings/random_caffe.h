/* Random networks of layers that Caffe and its forks have beside the usual ones: see random_net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_CAFFE_H
#define LS_TESTS_RANDOM_CAFFE_H

#include "trainings/random_layers.h"

/* The matrix that losses read: write it once. */
void write_random_gains(void);

/* A layer, or some that belong together, of a type that random_layers.h does not have. */
struct blob emit_caffe_layer(struct random_net *net, const struct blob *bottom);

/* The same for layers that mix the samples of a batch. */
struct blob emit_mixing_layer(struct random_net *net, const struct blob *bottom);

/* A loss of a type that random_losses.h does not have. */
void emit_caffe_loss(struct random_net *net, const struct blob *bottom);

#endif
