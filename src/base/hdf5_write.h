/* HDF5 files that are written. A failure has status LOCKSTEP_RESOURCE.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HDF5_WRITE_H
#define LS_BASE_HDF5_WRITE_H

#include "base/hdf5.h"

/* A new file, which takes the place of `path` as a whole when it is committed. Its bytes are a
 * function of what was added, in that order. */
int ls_hdf5_create(const char *path, struct ls_hdf5 **file, struct ls_error *error);
/* Groups on the way to a new entry are made as needed; a group that is there already may be added
 * again. */
int ls_hdf5_add_group(struct ls_hdf5 *file, const char *path, struct ls_error *error);
int ls_hdf5_add_floats(struct ls_hdf5 *file, const char *path, int rank, const int64_t *dim,
                       const float *data, struct ls_error *error);
/* One 32-bit integer in an array of one. */
int ls_hdf5_add_integer(struct ls_hdf5 *file, const char *path, int32_t value,
                        struct ls_error *error);
int ls_hdf5_add_string(struct ls_hdf5 *file, const char *path, const char *value,
                       struct ls_error *error);
/* Frees `file` in any case; after a failure `path` is as it was. */
int ls_hdf5_commit(struct ls_hdf5 *file, struct ls_error *error);
void ls_hdf5_abandon(struct ls_hdf5 *file); /* NULL is nothing */

#endif
