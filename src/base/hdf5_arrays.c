/* Reading arrays of HDF5 files. See base/hdf5_arrays.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/hdf5_arrays.h"

#include "base/hdf5_parts.h"
#include "base/memory.h"

/* An array that was found good, with the library entered. */
struct opened_array {
    struct ls_hdf5_call call;
    hid_t set, space;
    struct ls_hdf5_shape shape;
};

/* Whether the numbers lie in the file itself, and can be as many as the extents say. Compression
 * makes numbers smaller, by a factor of a thousand at best. */
static const char *judge_storage(const struct ls_hdf5 *file, hid_t set, hid_t type, int64_t count)
{
    hid_t made = H5Dget_create_plist(set);
    H5D_layout_t layout = H5Pget_layout(made);
    int external = layout == H5D_CONTIGUOUS ? H5Pget_external_count(made) : 0;
    int filters = layout == H5D_CHUNKED ? H5Pget_nfilters(made) : 0;
    H5Pclose(made);
    if (external != 0 || layout == H5D_VIRTUAL)
        return "lies in other files, which are not read";
    uint64_t stored = H5Dget_storage_size(set);
    if (stored > file->size)
        return "is larger than the file";
    int64_t bytes;
    if (!ls_multiply(count, (int64_t)H5Tget_size(type), &bytes) ||
        (uint64_t)bytes > stored * (filters > 0 ? 1100 : 1) + (filters > 0 ? 65536 : 0))
        return "has fewer numbers than its extents say";
    return NULL;
}

/* The first of the filters that an array needs and the library does not have; false: there is none.
 * `name`: as the file, or else we, call it. */
static bool lacks_filter(hid_t set, int *number, char name[64])
{
    static const struct {
        int number;
        const char *name;
    } known[] = {{307, "bzip2"},        {32000, "lzf"}, {32001, "blosc"}, {32004, "lz4"},
                 {32008, "bitshuffle"}, {32013, "zfp"}, {32015, "zstd"},  {32026, "blosc2"}};
    hid_t made = H5Dget_create_plist(set);
    const int filters = H5Pget_layout(made) == H5D_CHUNKED ? H5Pget_nfilters(made) : 0;
    bool lacks = false;
    for (int i = 0; i < filters && !lacks; i++) {
        unsigned flags;
        size_t none = 0;
        name[0] = '\0';
        *number = H5Pget_filter2(made, (unsigned)i, &flags, &none, NULL, 64, name, NULL);
        lacks = *number > 0 && H5Zfilter_avail(*number) <= 0;
        for (size_t k = 0; k < sizeof known / sizeof known[0] && name[0] == '\0'; k++)
            if (known[k].number == *number)
                snprintf(name, 64, "%s", known[k].name);
    }
    H5Pclose(made);
    return lacks;
}

static const char *judge_array(const struct ls_hdf5 *file, struct opened_array *array)
{
    struct ls_hdf5_shape *shape = &array->shape;
    hsize_t dim[LS_HDF5_RANK_MAX];
    int rank = array->space < 0 ? -1 : H5Sget_simple_extent_ndims(array->space);
    if (rank < 0 || rank > LS_HDF5_RANK_MAX ||
        H5Sget_simple_extent_dims(array->space, dim, NULL) < 0)
        return "has no extents";
    *shape = (struct ls_hdf5_shape){.rank = rank, .count = 1};
    for (int i = 0; i < rank; i++) {
        shape->dim[i] = (int64_t)dim[i];
        if (dim[i] > INT64_MAX || !ls_multiply(shape->count, shape->dim[i], &shape->count))
            return "has impossible extents";
    }
    hid_t type = H5Dget_type(array->set);
    H5T_class_t class = H5Tget_class(type);
    /* An enumeration is read as its numbers: h5py's booleans are one of FALSE and TRUE. */
    const char *wrong = class != H5T_INTEGER && class != H5T_FLOAT && class != H5T_ENUM
                            ? "holds no numbers"
                            : judge_storage(file, array->set, type, shape->count);
    H5Tclose(type);
    return wrong;
}

/* Opens an array and looks at it. */
static int open_array(const struct ls_hdf5 *file, const char *path, struct opened_array *array,
                      struct ls_error *error)
{
    enum ls_hdf5_kind kind = ls_hdf5_find_kind(file, path);
    if (kind != LS_HDF5_ARRAY)
        return ls_fail(error, file->status, file->path, NULL,
                       kind == LS_HDF5_ABSENT    ? "has no '%s'"
                       : kind == LS_HDF5_OUTSIDE ? "'%s' is a link to another file or to nothing"
                       : kind == LS_HDF5_DAMAGED ? "'%s' is damaged"
                                                 : "'%s' is no array",
                       path);
    array->set = H5Dopen2(file->id, path, H5P_DEFAULT);
    if (array->set < 0)
        return ls_hdf5_fail_read(file, path, error);
    array->space = H5Dget_space(array->set);
    int number;
    char name[64];
    if (lacks_filter(array->set, &number, name))
        return ls_fail(error, file->status, file->path,
                       "write it with compression=\"gzip\", or without compression",
                       "'%s' is compressed by filter %d%s%s, which the HDF5 library does not have",
                       path, number, name[0] != '\0' ? ", " : "", name);
    const char *wrong = judge_array(file, array);
    return wrong == NULL ? 0
                         : ls_fail(error, file->status, file->path, NULL, "'%s' %s", path, wrong);
}

/* Closes an array and leaves the library; returns `status`. */
static int leave_array(struct opened_array *array, int status)
{
    if (array->space >= 0)
        H5Sclose(array->space);
    if (array->set >= 0)
        H5Dclose(array->set);
    ls_hdf5_leave(&array->call);
    return status;
}

/* Enters the library and opens an array; after a failure nothing is left to be done. */
static int enter_array(const struct ls_hdf5 *file, const char *path, struct opened_array *array,
                       struct ls_error *error)
{
    *array = (struct opened_array){.set = -1, .space = -1};
    ls_hdf5_enter(&array->call);
    int status = open_array(file, path, array, error);
    return status == 0 ? 0 : leave_array(array, status);
}

int ls_hdf5_shape(struct ls_hdf5 *file, const char *path, struct ls_hdf5_shape *shape,
                  struct ls_error *error)
{
    struct opened_array array;
    *shape = (struct ls_hdf5_shape){0};
    LS_TRY(enter_array(file, path, &array, error));
    *shape = array.shape;
    return leave_array(&array, 0);
}

/* The number of axes of the pieces that an array with checksums lies in; 0: it is another array. */
static int checked_pieces(hid_t set, hsize_t piece[LS_HDF5_RANK_MAX])
{
    hid_t made = H5Dget_create_plist(set);
    bool checked = false;
    int rank = 0, filters = H5Pget_layout(made) == H5D_CHUNKED ? H5Pget_nfilters(made) : 0;
    for (int i = 0; i < filters && !checked; i++) {
        unsigned flags;
        size_t none = 0;
        checked = H5Pget_filter2(made, (unsigned)i, &flags, &none, NULL, 0, NULL, NULL) ==
                  H5Z_FILTER_FLETCHER32;
    }
    if (checked)
        rank = H5Pget_chunk(made, LS_HDF5_RANK_MAX, piece);
    H5Pclose(made);
    return rank;
}

/* Whether the pieces in which rows lie are long enough for their checksums: of shorter ones the
 * library reads behind their ends. */
static bool pieces_are_whole(const struct opened_array *array, int64_t first, int64_t count)
{
    const struct ls_hdf5_shape *shape = &array->shape;
    hsize_t piece[LS_HDF5_RANK_MAX], at[LS_HDF5_RANK_MAX] = {0};
    const int rank = count > 0 ? checked_pieces(array->set, piece) : 0;
    if (rank == 0 || shape->count == 0)
        return true;
    for (int i = 0; i < rank; i++)
        if (rank != shape->rank || piece[i] == 0)
            return false;
    if (rank < 0)
        return false;
    at[0] = (hsize_t)first / piece[0] * piece[0];
    for (int axis = 0; axis >= 0;) {
        unsigned skipped;
        haddr_t place;
        hsize_t bytes;
        if (H5Dget_chunk_info_by_coord(array->set, at, &skipped, &place, &bytes) < 0 ||
            (place != HADDR_UNDEF && bytes <= sizeof(uint32_t)))
            return false;
        for (axis = rank - 1; axis >= 0; axis--) {
            at[axis] += piece[axis];
            if (at[axis] < (axis == 0 ? (hsize_t)(first + count) : (hsize_t)shape->dim[axis]))
                break;
            at[axis] = 0;
        }
    }
    return true;
}

int ls_hdf5_read(struct ls_hdf5 *file, const char *path, float *out, struct ls_error *error)
{
    struct opened_array array;
    LS_TRY(enter_array(file, path, &array, error));
    const struct ls_hdf5_shape *shape = &array.shape;
    int status = 0;
    if (!pieces_are_whole(&array, 0, shape->rank > 0 ? shape->dim[0] : 0))
        status = ls_fail(error, file->status, file->path, NULL, "'%s' is damaged", path);
    else if (H5Dread(array.set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
        status = ls_hdf5_fail_read(file, path, error);
    return leave_array(&array, status);
}

/* Reads rows that are there. */
static herr_t read_rows(const struct opened_array *array, int64_t first, int64_t count, float *out)
{
    const struct ls_hdf5_shape *shape = &array->shape;
    hsize_t start[LS_HDF5_RANK_MAX] = {0}, extent[LS_HDF5_RANK_MAX];
    for (int i = 0; i < shape->rank; i++)
        extent[i] = (hsize_t)shape->dim[i];
    start[0] = (hsize_t)first;
    extent[0] = (hsize_t)count;
    if (H5Sselect_hyperslab(array->space, H5S_SELECT_SET, start, NULL, extent, NULL) < 0)
        return -1;
    hid_t memory = H5Screate_simple(shape->rank, extent, NULL);
    herr_t result =
        memory < 0 ? -1
                   : H5Dread(array->set, H5T_NATIVE_FLOAT, memory, array->space, H5P_DEFAULT, out);
    if (memory >= 0)
        H5Sclose(memory);
    return result;
}

int ls_hdf5_read_rows(struct ls_hdf5 *file, const char *path, int64_t first, int64_t count,
                      float *out, struct ls_error *error)
{
    struct opened_array array;
    LS_TRY(enter_array(file, path, &array, error));
    const struct ls_hdf5_shape *shape = &array.shape;
    int status = 0;
    if (shape->rank == 0 || first < 0 || count < 0 || first > shape->dim[0] - count)
        status = ls_fail(error, file->status, file->path, NULL,
                         "'%s' has fewer rows than were asked for", path);
    else if (!pieces_are_whole(&array, first, count))
        status = ls_fail(error, file->status, file->path, NULL, "'%s' is damaged", path);
    else if (count > 0 && read_rows(&array, first, count, out) < 0)
        status = ls_hdf5_fail_read(file, path, error);
    return leave_array(&array, status);
}

/* 4 or 8 for numbers that lie in one piece as this machine has them; else 0. */
static int plain_bytes(hid_t set)
{
    hid_t made = H5Dget_create_plist(set), type = H5Dget_type(set);
    int bytes = 0;
    if (H5Pget_layout(made) == H5D_CONTIGUOUS)
        bytes = H5Tequal(type, H5T_NATIVE_FLOAT) > 0    ? 4
                : H5Tequal(type, H5T_NATIVE_DOUBLE) > 0 ? 8
                                                        : 0;
    H5Tclose(type);
    H5Pclose(made);
    return bytes;
}

int ls_hdf5_place(struct ls_hdf5 *file, const char *path, struct ls_hdf5_place *place,
                  struct ls_error *error)
{
    struct opened_array array;
    *place = (struct ls_hdf5_place){0, 0};
    LS_TRY(enter_array(file, path, &array, error));
    haddr_t offset = H5Dget_offset(array.set);
    int bytes = plain_bytes(array.set);
    if (bytes > 0 && offset != HADDR_UNDEF && offset <= file->size &&
        (uint64_t)array.shape.count <= (file->size - offset) / (uint64_t)bytes)
        *place = (struct ls_hdf5_place){offset, bytes};
    return leave_array(&array, 0);
}

int ls_hdf5_read_integer(struct ls_hdf5 *file, const char *path, int64_t *value,
                         struct ls_error *error)
{
    struct opened_array array;
    LS_TRY(enter_array(file, path, &array, error));
    int status = 0;
    if (array.shape.count != 1)
        status = ls_fail(error, file->status, file->path, NULL, "'%s' is not one number", path);
    else if (H5Dread(array.set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0)
        status = ls_hdf5_fail_read(file, path, error);
    return leave_array(&array, status);
}
