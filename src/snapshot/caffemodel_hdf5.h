/* Writing weights as Caffe does with snapshot_format: HDF5.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_CAFFEMODEL_HDF5_H
#define LS_SNAPSHOT_CAFFEMODEL_HDF5_H

#include "snapshot/caffemodel.h"

/* Writes `path` atomically: a group "/data/<layer>" for each layer with an array for each blob that
 * it owns, named by its number; with `diff`, their gradients likewise under "/diff". The bytes are
 * a function of the arguments. */
int ls_caffemodel_write_hdf5(const char *path, const struct ls_caffemodel_layer *layers,
                             size_t count, bool diff, struct ls_error *error);

#endif
