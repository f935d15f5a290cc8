/* HDF5 files that are read: what Caffe keeps in them, which is arrays of numbers, single integers
 * and strings in nested groups. base/hdf5_write.h writes them. The library stands behind one lock,
 * so that any thread may call.
 *
 * Paths within a file begin at its root: "/data/conv1/0". Only what lies in the file itself is
 * read: links and arrays that lead to other files are refused.
 *
 * `status` is what a failure is reported as when a file is opened; the file's functions go on
 * using it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HDF5_H
#define LS_BASE_HDF5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ls_hdf5;

/* Whether bytes that a file begins with are those of HDF5. */
bool ls_hdf5_begins(const void *bytes, size_t size);

int ls_hdf5_open(const char *path, int status, struct ls_hdf5 **file, struct ls_error *error);
void ls_hdf5_close(struct ls_hdf5 *file); /* NULL is nothing */

/* What an entry of a group is. */
enum ls_hdf5_kind { LS_HDF5_ABSENT, LS_HDF5_GROUP, LS_HDF5_ARRAY, LS_HDF5_OTHER };
enum ls_hdf5_kind ls_hdf5_kind(struct ls_hdf5 *file, const char *path);

/* The names in a group, in the order of their bytes. */
struct ls_hdf5_names {
    char **items;
    size_t count, capacity;
};
int ls_hdf5_list(struct ls_hdf5 *file, const char *group, struct ls_hdf5_names *names,
                 struct ls_error *error);
void ls_hdf5_names_free(struct ls_hdf5_names *names);

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
/* Reads a string, owned by the caller. */
int ls_hdf5_read_string(struct ls_hdf5 *file, const char *path, char **value,
                        struct ls_error *error);

#endif
