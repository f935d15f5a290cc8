/* What the source layers (Data, Input, DummyData) share among themselves.
 *
 * A definition gives shapes for a whole batch. A graph is for a micro-batch, so that the axis of
 * samples, mostly the first, has graph->samples in it and not what the definition says.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_SOURCE_LAYER_H
#define LS_LAYERS_SOURCE_LAYER_H

#include "layers/common.h"
#include "layers/source.h"

/* Checks a source's batch: at least 1, and that of the net's other sources. */
int ls_source_check_batch(const struct ls_layer *layer, struct ls_error *error, const void *message,
                          const char *field, int64_t batch);

/* Reads the shape of a batch whose samples lie along an axis, checks it, and puts the graph's
 * samples into that axis. */
int ls_source_read_shape(const struct ls_layer *layer, struct ls_error *error,
                         const Lockstep__BlobShape *shape, size_t sample_axis,
                         struct ls_shape *out);
/* Puts the graph's samples into the axis along which a batch of that shape has its own; not where
 * it has other rows than samples. */
void ls_source_cut(const struct ls_layer *layer, size_t sample_axis, struct ls_shape *shape);
/* Along which axis the samples of a top of an Input layer lie. */
size_t ls_input_sample_axis(const Lockstep__InputParameter *param, size_t top);

#endif
