/* What the readers of the single formats share; for src/snapshot/weights*.c and caffemodel*.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHTS_BUILD_H
#define LS_SNAPSHOT_WEIGHTS_BUILD_H

#include "base/wire.h"
#include "snapshot/weight_rename.h"
#include "snapshot/weight_shards.h"
#include "snapshot/weights.h"

/* Files that weights came from, and what was made of their tensors. */
struct ls_weights_origin {
    struct ls_weight_shards shards;
    struct ls_renamed renamed;
};

/* Fills weights from an index of safetensors. */
int ls_weights_from_index(const char *path, enum ls_weights_set set, struct ls_weights *weights,
                          struct ls_error *error);

/* Appends a layer and takes `name`, also on failure. */
int ls_weights_add_layer(struct ls_weights *weights, char *name, struct ls_error *error);

/* Makes room for blob `index` of a layer; the shape is valid. Fails if the blob is there already.
 * *blob is set on success, it has no data yet. */
int ls_weights_add_blob(struct ls_weights *weights, struct ls_weight_layer *layer, int index,
                        const struct ls_shape *shape, struct ls_weight_blob **blob,
                        struct ls_error *error);

/* Makes room for a blob's data, zeros, that are not left where they lie in the file. */
int ls_weights_make_copy(const struct ls_weights *weights, struct ls_weight_blob *blob,
                         struct ls_error *error);

/* Takes a BlobProto over as blob `index` of the weights' last layer. */
int ls_caffemodel_add_blob(struct ls_weights *weights, int index, const struct ls_wire_field *field,
                           struct ls_error *error);

/* Fills weights from a caffemodel that is in memory. */
int ls_caffemodel_parse(const void *bytes, size_t size, struct ls_weights *weights,
                        struct ls_error *error);

/* Fills weights from an HDF5 file of Caffe's. */
int ls_weights_from_hdf5(const char *path, struct ls_weights *weights, struct ls_error *error);

/* Fills weights from an archive, whose file must stay mapped as long as they are there. */
int ls_weights_from_archive(const struct ls_archive *archive, enum ls_weights_set set,
                            struct ls_weights *weights, struct ls_error *error);

#endif
