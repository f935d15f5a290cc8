/* What reading and writing of HDF5 files share; for src/base/hdf5*.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HDF5_PARTS_H
#define LS_BASE_HDF5_PARTS_H

#include <hdf5.h>
#include <pthread.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/hdf5.h"

struct ls_hdf5 {
    char *path;
    int status;                    /* of failures */
    hid_t id;                      /* -1: not open */
    uint64_t size;                 /* of a file that is read, in bytes */
    struct ls_atomic_file *target; /* of a file that is written */
};

/* Without memory NULL. */
struct ls_hdf5 *ls_hdf5_new(const char *path, int status);

/* Between these the calling thread has the library for itself, and it prints nothing. */
struct ls_hdf5_call {
    H5E_auto2_t print;
    void *print_data;
};
void ls_hdf5_enter(struct ls_hdf5_call *call);
void ls_hdf5_leave(const struct ls_hdf5_call *call);

/* Why the library's last call failed, in its own words. */
enum { LS_HDF5_REASON = 200 };
void ls_hdf5_reason(char reason[LS_HDF5_REASON]);
/* Fails with the file's status: `path` in it cannot be read, for that reason. */
int ls_hdf5_fail_read(const struct ls_hdf5 *file, const char *path, struct ls_error *error);
/* As ls_hdf5_kind, within the library. */
enum ls_hdf5_kind ls_hdf5_find_kind(const struct ls_hdf5 *file, const char *path);

#endif
