/* HDF5 files that are read: what Caffe keeps in them, which is arrays of numbers, single integers
 * and strings in nested groups. base/hdf5_write.h writes them. The library stands behind one lock,
 * so that any thread may call.
 *
 * Paths within a file begin at its root: "/data/conv1/0". Only what lies in the file itself is
 * read: soft links are followed, and links and arrays that lead to other files are refused.
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
enum ls_hdf5_kind {
    LS_HDF5_ABSENT,
    LS_HDF5_GROUP,
    LS_HDF5_ARRAY,
    LS_HDF5_OUTSIDE, /* a link to another file, or to nothing */
    LS_HDF5_DAMAGED, /* it cannot be opened */
    LS_HDF5_OTHER
};
enum ls_hdf5_kind ls_hdf5_kind(struct ls_hdf5 *file, const char *path);
/* Whether the entry itself is a link by name. */
bool ls_hdf5_is_link(struct ls_hdf5 *file, const char *path);

/* The names in a group, in the order of their bytes. */
struct ls_hdf5_names {
    char **items;
    size_t count, capacity;
};
int ls_hdf5_list(struct ls_hdf5 *file, const char *group, struct ls_hdf5_names *names,
                 struct ls_error *error);
void ls_hdf5_names_free(struct ls_hdf5_names *names);

/* Reads a string, owned by the caller. */
int ls_hdf5_read_string(struct ls_hdf5 *file, const char *path, char **value,
                        struct ls_error *error);

#endif
