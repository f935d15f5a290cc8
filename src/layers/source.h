/* What a Data layer knows of its data set: who builds a graph has opened it and says so here.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_SOURCE_H
#define LS_LAYERS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* One Data layer's samples. */
struct ls_source_shape {
    const char *layer; /* its name */
    int64_t sample[3]; /* channels, height, width, after transformation */
};

/* All Data layers of a net; graph->sources points here. */
struct ls_source_shapes {
    const struct ls_source_shape *item;
    size_t count;
};

#endif
