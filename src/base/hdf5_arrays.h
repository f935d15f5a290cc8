/* Arrays of HDF5 files that are read. See base/hdf5.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HDF5_ARRAYS_H
#define LS_BASE_HDF5_ARRAYS_H

#include "base/hdf5.h"

enum { LS_HDF5_RANK_MAX = 32 };
struct ls_hdf5_shape {
    int rank; /* 0: a single number */
    int64_t dim[LS_HDF5_RANK_MAX];
    int64_t count; /* the product */
};

/* The extents of an array of integers or floating-point numbers; anything else fails. Arrays whose
 * extents cannot be true of so many bytes of the file fail, so that `count` floats may be
 * allocated. */
int ls_hdf5_shape(struct ls_hdf5 *file, const char *path, struct ls_hdf5_shape *shape,
                  struct ls_error *error);
/* Reads all of such an array, row-major; `out` has room for `count` of its shape. */
int ls_hdf5_read(struct ls_hdf5 *file, const char *path, float *out, struct ls_error *error);
/* Reads `count` of its rows (what has one index along the first axis) from row `first` on. */
int ls_hdf5_read_rows(struct ls_hdf5 *file, const char *path, int64_t first, int64_t count,
                      float *out, struct ls_error *error);
/* Where the numbers of an array lie in the file, if they lie there one after the other as fp32 or
 * fp64 of this machine: `bytes` is 4 or 8 then, and they may be read without the library, by
 * several threads at a time. Else `bytes` is 0. */
struct ls_hdf5_place {
    uint64_t offset;
    int bytes;
};
int ls_hdf5_place(struct ls_hdf5 *file, const char *path, struct ls_hdf5_place *place,
                  struct ls_error *error);
/* Reads the number of an array that has one, as an integer. */
int ls_hdf5_read_integer(struct ls_hdf5 *file, const char *path, int64_t *value,
                         struct ls_error *error);

#endif
