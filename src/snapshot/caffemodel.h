/* Writing weights so that Caffe reads them: a NetParameter in binary form, with layers of the
 * present form and blobs with a BlobShape; or HDF5. Reading is part of snapshot/weights.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_CAFFEMODEL_H
#define LS_SNAPSHOT_CAFFEMODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "ir/shape.h"

struct ls_caffemodel_blob {
    struct ls_shape shape; /* in Caffe's order */
    const float *data;     /* borrowed, row-major */
    const float *diff;     /* its gradient, as `data`; NULL: not to be written */
    bool shared;           /* another layer owns it; HDF5 files have the owner's only */
};

/* All pointers are borrowed. */
struct ls_caffemodel_layer {
    const char *name, *type;
    const char *const *bottoms;
    size_t bottom_count;
    const char *const *tops;
    size_t top_count;
    const struct ls_caffemodel_blob *blobs;
    size_t blob_count;
};

/* Writes `path` atomically; the bytes are a function of the arguments. A file of 2 GiB or more,
 * which Caffe cannot read, is refused with LOCKSTEP_RESOURCE before anything is written. */
int ls_caffemodel_write(const char *path, const char *net_name,
                        const struct ls_caffemodel_layer *layers, size_t count,
                        struct ls_error *error);

/* Whether Caffe would take a file of this name for HDF5: it ends in ".h5". */
bool ls_caffemodel_is_hdf5(const char *path);

#endif
