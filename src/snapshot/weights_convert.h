/* Weights from one format to another, without a net.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHTS_CONVERT_H
#define LS_SNAPSHOT_WEIGHTS_CONVERT_H

#include "base/error.h"

/* The formats by the endings of names: ".caffemodel", ".h5" (Caffe's HDF5), ".safetensors". */
enum ls_weights_format {
    LS_WEIGHTS_UNKNOWN,
    LS_WEIGHTS_CAFFEMODEL,
    LS_WEIGHTS_HDF5,
    LS_WEIGHTS_SAFETENSORS
};
enum ls_weights_format ls_weights_format(const char *path);

/* Reads `from` (ls_weights_read_mapped, averages where there are any; `map` may be NULL) and writes
 * `to`, in the format that its name says: all layers with their blobs, in the order of the file.
 * Where only a net's definition could tell which blob a tensor is, or how many axes it has, that is
 * an error that says so. `tell` gets a line about tensors that are left out. */
int ls_weights_convert(const char *from, const char *to, const char *map,
                       void (*tell)(void *user, const char *line), void *user,
                       struct ls_error *error);

/* From the names of a family to ours, or from ours to those of the family, as safetensors:
 * whichever `from` does not have. */
int ls_weights_convert_names(const char *from, const char *to, const char *map,
                             void (*tell)(void *user, const char *line), void *user,
                             struct ls_error *error);

#endif
