/* Writing HDF5 files.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/hdf5_write.h"

#include <string.h>

#include "base/hdf5_arrays.h"
#include "base/hdf5_parts.h"
#include "base/memory.h"

/* The library's own way to a file knows nothing of names that are given last, so the file is made
 * in memory and written by base/atomic_file.h. */
enum { STEP = 1 << 20 }; /* by which that memory grows */

static int fail_because(const struct ls_hdf5 *file, const char *reason, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_RESOURCE, file->path, NULL, "cannot be made (HDF5: %s)", reason);
}

static int fail_write(const struct ls_hdf5 *file, struct ls_error *error)
{
    char reason[LS_HDF5_REASON];
    ls_hdf5_reason(reason);
    return fail_because(file, reason, error);
}

/* A file in memory, in the form that every version of the library reads. */
static hid_t create_in_memory(const char *path, char reason[LS_HDF5_REASON])
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, STEP, false);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110);
    hid_t id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (id < 0)
        ls_hdf5_reason(reason); /* what follows would clear it */
    H5Pclose(access);
    return id;
}

int ls_hdf5_create(const char *path, struct ls_hdf5 **file, struct ls_error *error)
{
    *file = NULL;
    struct ls_hdf5 *made = ls_hdf5_new(path, LOCKSTEP_RESOURCE);
    if (made == NULL)
        return ls_fail_memory(error, path);
    int status = ls_atomic_open(path, &made->target, error);
    if (status == 0) {
        struct ls_hdf5_call call;
        ls_hdf5_enter(&call);
        char reason[LS_HDF5_REASON];
        made->id = create_in_memory(path, reason);
        if (made->id < 0)
            status = fail_because(made, reason, error);
        ls_hdf5_leave(&call);
    }
    if (status != 0)
        ls_hdf5_abandon(made);
    else
        *file = made;
    return status;
}

/* Names of layers have slashes in them ("inception_3a/1x1"): their groups are made on the way. */
static hid_t make_groups(void)
{
    hid_t link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    return link;
}

int ls_hdf5_add_group(struct ls_hdf5 *file, const char *path, struct ls_error *error)
{
    if (ls_hdf5_kind(file, path) == LS_HDF5_GROUP)
        return 0;
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    hid_t link = make_groups();
    hid_t group = H5Gcreate2(file->id, path, link, H5P_DEFAULT, H5P_DEFAULT);
    int status = group < 0 || H5Gclose(group) < 0 ? fail_write(file, error) : 0;
    H5Pclose(link);
    ls_hdf5_leave(&call);
    return status;
}

/* Adds an array and fills it; the caller has entered the library, and closes `space`. */
static int add_array(const struct ls_hdf5 *file, const char *path, hid_t space, hid_t stored,
                     hid_t memory, const void *data, struct ls_error *error)
{
    hid_t link = make_groups(), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(made, false); /* the bytes must not depend on the time */
    hid_t set = H5Dcreate2(file->id, path, stored, space, link, made, H5P_DEFAULT);
    int status = set < 0 || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0
                     ? fail_write(file, error)
                     : 0;
    if (set >= 0)
        H5Dclose(set);
    H5Pclose(made);
    H5Pclose(link);
    return status;
}

/* As add_array, for a new space, which is closed. */
static int add(struct ls_hdf5 *file, const char *path, hid_t space, hid_t stored, hid_t memory,
               const void *data, struct ls_error *error)
{
    if (space < 0)
        return fail_write(file, error);
    int status = add_array(file, path, space, stored, memory, data, error);
    H5Sclose(space);
    return status;
}

int ls_hdf5_add_floats(struct ls_hdf5 *file, const char *path, int rank, const int64_t *dim,
                       const float *data, struct ls_error *error)
{
    hsize_t extent[LS_HDF5_RANK_MAX];
    for (int i = 0; i < rank && i < LS_HDF5_RANK_MAX; i++)
        extent[i] = (hsize_t)dim[i];
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    int status = add(file, path, H5Screate_simple(rank, extent, NULL), H5T_IEEE_F32LE,
                     H5T_NATIVE_FLOAT, data, error);
    ls_hdf5_leave(&call);
    return status;
}

int ls_hdf5_add_integer(struct ls_hdf5 *file, const char *path, int32_t value,
                        struct ls_error *error)
{
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    const hsize_t one = 1;
    int status = add(file, path, H5Screate_simple(1, &one, NULL), H5T_STD_I32LE, H5T_NATIVE_INT32,
                     &value, error);
    ls_hdf5_leave(&call);
    return status;
}

int ls_hdf5_add_string(struct ls_hdf5 *file, const char *path, const char *value,
                       struct ls_error *error)
{
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(value) + 1);
    int status = add(file, path, H5Screate(H5S_SCALAR), type, type, value, error);
    H5Tclose(type);
    ls_hdf5_leave(&call);
    return status;
}

/* What lies in memory goes to the file. */
static int write_out(struct ls_hdf5 *file, struct ls_error *error)
{
    struct ls_hdf5_call call;
    void *bytes = NULL;
    ssize_t size = 0;
    ls_hdf5_enter(&call);
    bool failed = H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0 ||
                  H5Fget_vfd_handle(file->id, H5P_DEFAULT, &bytes) < 0 ||
                  (size = H5Fget_file_image(file->id, NULL, 0)) < 0;
    int status = failed ? fail_write(file, error) : 0;
    ls_hdf5_leave(&call);
    for (ssize_t at = 0; at < size && status == 0; at += STEP)
        status = ls_atomic_write(file->target, (const char *)*(void **)bytes + at,
                                 size - at < STEP ? (size_t)(size - at) : STEP, error);
    return status;
}

int ls_hdf5_commit(struct ls_hdf5 *file, struct ls_error *error)
{
    int status = write_out(file, error);
    if (status == 0) {
        status = ls_atomic_commit(file->target, error);
        file->target = NULL;
    }
    ls_hdf5_abandon(file);
    return status;
}

void ls_hdf5_abandon(struct ls_hdf5 *file)
{
    if (file == NULL)
        return;
    struct ls_atomic_file *target = file->target;
    ls_hdf5_close(file);
    ls_atomic_abandon(target);
}
