/* What a Data layer knows of its data set, set by the code that opened it and builds the graph.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_SOURCE_H
#define LS_LAYERS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.pb-c.h"

/* One Data layer's samples. */
struct ls_source_shape {
    const char *layer; /* its name */
    int64_t sample[3]; /* channels, height, width, after transformation */
    bool has_maps;     /* labels are maps: one number for each pixel, not one for a sample */
};

/* All Data layers of a net; graph->sources points here. */
struct ls_source_shapes {
    const struct ls_source_shape *item;
    size_t count;
    /* Samples in a batch of the net, which all sources must agree on; 0: unknown; -1: something is
     * wrong with it, and that has been reported. */
    int64_t batch;
};

/* The samples in a batch that a source layer (Data, Input, DummyData) declares; 0 if it declares
 * none, or is no source. */
int64_t ls_source_batch(const Lockstep__LayerParameter *layer);

#endif
