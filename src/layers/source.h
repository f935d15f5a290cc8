/* What a Data layer knows of its data set, set by the code that opened it and builds the graph.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_SOURCE_H
#define LS_LAYERS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/dtype.h"
#include "ir/shape.h"
#include "lockstep_names.h"

/* What a top of a Data layer has of each sample. */
struct ls_source_tensor {
    struct ls_shape shape; /* without the axis of samples; rank 0: one number */
    enum ls_dtype type;
};

/* One Data layer's samples. */
struct ls_source_shape {
    const char *layer; /* its name, or "(unnamed)" */
    struct ls_source_tensor *tensor;
    int tensors;
    bool varies; /* its samples differ in size */
    /* (optional) The layer: others may have its name; NULL: the name decides. */
    const Lockstep__LayerParameter *definition;
};

/* All Data layers of a net; graph->sources points here. */
struct ls_source_shapes {
    const struct ls_source_shape *item;
    size_t count;
    /* Samples in a batch of the net: those of its first source; 0: unknown; -1: something is wrong
     * with it, and that has been reported. */
    int64_t batch;
};

/* The samples in a batch that a source layer (Data, Input, DummyData) declares; 0 if it declares
 * none, or is no source. */
int64_t ls_source_batch(const Lockstep__LayerParameter *layer);

/* The axis of a top of such a layer along which its samples lie, as the definition says. */
int ls_source_axis(const Lockstep__LayerParameter *layer, int top);

#endif
