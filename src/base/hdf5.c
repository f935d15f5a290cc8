/* Reading HDF5 files, and what reading and writing share.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/hdf5.h"

#include <stdlib.h>
#include <string.h>

#include "base/hdf5_parts.h"
#include "base/memory.h"

/* ---- The library ----------------------------------------------------------------------------- */

/* Debian's build of the library is not safe for several threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void ls_hdf5_enter(struct ls_hdf5_call *call)
{
    pthread_mutex_lock(&lock);
    /* A program around ours may use the library too, and want its messages. */
    H5Eget_auto2(H5E_DEFAULT, &call->print, &call->print_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
}

void ls_hdf5_leave(const struct ls_hdf5_call *call)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, call->print, call->print_data);
    pthread_mutex_unlock(&lock);
}

/* Takes the innermost reason on the library's stack, which is walked from there. */
static herr_t take_reason(unsigned n, const H5E_error2_t *entry, void *user)
{
    char *reason = user;
    if (n == 0 && entry->desc != NULL)
        snprintf(reason, LS_HDF5_REASON, "%s", entry->desc);
    return 0;
}

void ls_hdf5_reason(char reason[LS_HDF5_REASON])
{
    snprintf(reason, LS_HDF5_REASON, "damaged");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, reason);
}

static int fail_read(const struct ls_hdf5 *file, const char *path, struct ls_error *error)
{
    char reason[LS_HDF5_REASON];
    ls_hdf5_reason(reason);
    return ls_fail(error, file->status, file->path, NULL, "'%s' cannot be read (HDF5: %s)", path,
                   reason);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};

bool ls_hdf5_begins(const void *bytes, size_t size)
{
    return size >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

struct ls_hdf5 *ls_hdf5_new(const char *path, int status)
{
    struct ls_hdf5 *file = ls_alloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->id = -1;
    file->status = status;
    file->path = ls_copy_string(path);
    if (file->path != NULL)
        return file;
    ls_free(file);
    return NULL;
}

/* Opens without the library's own locks, which some file systems do not have. After a failure
 * `reason` says why: what comes behind it would clear the library's. */
static hid_t open_to_read(const char *path, char reason[LS_HDF5_REASON])
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, false, true);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    hid_t id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (id < 0)
        ls_hdf5_reason(reason);
    H5Pclose(access);
    return id;
}

int ls_hdf5_open(const char *path, int status, struct ls_hdf5 **file, struct ls_error *error)
{
    *file = NULL;
    struct ls_file plain; /* says what is wrong with a path better than the library */
    LS_TRY(ls_file_open(path, status, &plain, error));
    struct ls_hdf5 *opened = ls_hdf5_new(path, status);
    if (opened == NULL) {
        ls_file_close(&plain);
        return ls_fail_memory(error, path);
    }
    opened->size = plain.size;
    ls_file_close(&plain);
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    char reason[LS_HDF5_REASON];
    opened->id = open_to_read(path, reason);
    if (opened->id < 0) {
        status = ls_fail(error, status, path, "the file is damaged, or was cut off",
                         "is no HDF5 file that can be read (HDF5: %s)", reason);
    } else {
        status = 0;
        *file = opened;
    }
    ls_hdf5_leave(&call);
    if (status != 0)
        ls_hdf5_close(opened);
    return status;
}

void ls_hdf5_close(struct ls_hdf5 *file)
{
    if (file == NULL)
        return;
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    if (file->id >= 0)
        H5Fclose(file->id);
    ls_hdf5_leave(&call);
    ls_free(file->path);
    ls_free(file);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Whether each part of a path is there, as a link that stays within the file. */
static bool leads_inside(hid_t file, const char *path)
{
    char part[1024];
    size_t length = strlen(path);
    if (length >= sizeof part || path[0] != '/')
        return false;
    for (size_t at = 1; at <= length; at++) {
        if (path[at] != '/' && path[at] != '\0')
            continue;
        memcpy(part, path, at);
        part[at] = '\0';
        H5L_info_t info;
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0 ||
            H5Lget_info(file, part, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
            return false;
    }
    return true;
}

/* The caller has entered the library. */
static enum ls_hdf5_kind find_kind(const struct ls_hdf5 *file, const char *path)
{
    if (strcmp(path, "/") == 0)
        return LS_HDF5_GROUP;
    if (!leads_inside(file->id, path))
        return LS_HDF5_ABSENT;
    H5O_info_t info;
    if (H5Oget_info_by_name2(file->id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return LS_HDF5_OTHER;
    return info.type == H5O_TYPE_GROUP     ? LS_HDF5_GROUP
           : info.type == H5O_TYPE_DATASET ? LS_HDF5_ARRAY
                                           : LS_HDF5_OTHER;
}

enum ls_hdf5_kind ls_hdf5_kind(struct ls_hdf5 *file, const char *path)
{
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    enum ls_hdf5_kind kind = find_kind(file, path);
    ls_hdf5_leave(&call);
    return kind;
}

enum { ENTRIES_MAX = 100000 }; /* of a group: more are an attack */

struct listing {
    struct ls_hdf5_names *names;
    int status;
};

static herr_t note_name(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    (void)group;
    (void)info;
    struct listing *listing = user;
    struct ls_hdf5_names *names = listing->names;
    char *copy = NULL;
    if (names->count < ENTRIES_MAX && LS_GROW(names->items, names->count, names->capacity))
        copy = ls_copy_string(name);
    if (copy == NULL) {
        listing->status = LOCKSTEP_RESOURCE;
        return -1;
    }
    names->items[names->count++] = copy;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int ls_hdf5_list(struct ls_hdf5 *file, const char *group, struct ls_hdf5_names *names,
                 struct ls_error *error)
{
    struct listing listing = {names, 0};
    *names = (struct ls_hdf5_names){0};
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    int status = 0;
    if (find_kind(file, group) != LS_HDF5_GROUP)
        status = ls_fail(error, file->status, file->path, NULL, "has no group '%s'", group);
    else if (H5Literate_by_name(file->id, group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, note_name,
                                &listing, H5P_DEFAULT) < 0)
        status =
            listing.status != 0 ? ls_fail_memory(error, file->path) : fail_read(file, group, error);
    ls_hdf5_leave(&call);
    if (status != 0)
        ls_hdf5_names_free(names);
    else if (names->count > 0)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return status;
}

void ls_hdf5_names_free(struct ls_hdf5_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        ls_free(names->items[i]);
    ls_free(names->items);
    *names = (struct ls_hdf5_names){0};
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* An array that was found good: what the caller closes. */
struct opened_array {
    hid_t set, space;
};

static void close_array(struct opened_array *array)
{
    if (array->space >= 0)
        H5Sclose(array->space);
    if (array->set >= 0)
        H5Dclose(array->set);
}

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

static const char *judge_array(const struct ls_hdf5 *file, const struct opened_array *array,
                               struct ls_hdf5_shape *shape)
{
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
    const char *wrong = class != H5T_INTEGER && class != H5T_FLOAT
                            ? "holds no numbers"
                            : judge_storage(file, array->set, type, shape->count);
    H5Tclose(type);
    return wrong;
}

/* Opens an array and looks at it; the caller has entered the library. */
static int open_array(const struct ls_hdf5 *file, const char *path, struct opened_array *array,
                      struct ls_hdf5_shape *shape, struct ls_error *error)
{
    *array = (struct opened_array){-1, -1};
    *shape = (struct ls_hdf5_shape){0};
    enum ls_hdf5_kind kind = find_kind(file, path);
    if (kind != LS_HDF5_ARRAY)
        return ls_fail(error, file->status, file->path, NULL,
                       kind == LS_HDF5_ABSENT ? "has no '%s'" : "'%s' is no array", path);
    array->set = H5Dopen2(file->id, path, H5P_DEFAULT);
    if (array->set < 0)
        return fail_read(file, path, error);
    array->space = H5Dget_space(array->set);
    const char *wrong = judge_array(file, array, shape);
    if (wrong == NULL)
        return 0;
    close_array(array);
    return ls_fail(error, file->status, file->path, NULL, "'%s' %s", path, wrong);
}

int ls_hdf5_shape(struct ls_hdf5 *file, const char *path, struct ls_hdf5_shape *shape,
                  struct ls_error *error)
{
    struct ls_hdf5_call call;
    struct opened_array array;
    ls_hdf5_enter(&call);
    int status = open_array(file, path, &array, shape, error);
    if (status == 0)
        close_array(&array);
    ls_hdf5_leave(&call);
    return status;
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
static bool pieces_are_whole(const struct opened_array *array, const struct ls_hdf5_shape *shape,
                             int64_t first, int64_t count)
{
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
    struct ls_hdf5_call call;
    struct opened_array array;
    struct ls_hdf5_shape shape;
    ls_hdf5_enter(&call);
    int status = open_array(file, path, &array, &shape, error);
    if (status == 0) {
        if (!pieces_are_whole(&array, &shape, 0, shape.rank > 0 ? shape.dim[0] : 0))
            status = ls_fail(error, file->status, file->path, NULL, "'%s' is damaged", path);
        else if (H5Dread(array.set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
            status = fail_read(file, path, error);
        close_array(&array);
    }
    ls_hdf5_leave(&call);
    return status;
}

/* Reads rows that are there. */
static herr_t read_rows(const struct opened_array *array, const struct ls_hdf5_shape *shape,
                        int64_t first, int64_t count, float *out)
{
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
    struct ls_hdf5_call call;
    struct opened_array array;
    struct ls_hdf5_shape shape;
    ls_hdf5_enter(&call);
    int status = open_array(file, path, &array, &shape, error);
    if (status == 0) {
        if (shape.rank == 0 || first < 0 || count < 0 || first > shape.dim[0] - count)
            status = ls_fail(error, file->status, file->path, NULL,
                             "'%s' has fewer rows than were asked for", path);
        else if (!pieces_are_whole(&array, &shape, first, count))
            status = ls_fail(error, file->status, file->path, NULL, "'%s' is damaged", path);
        else if (count > 0 && read_rows(&array, &shape, first, count, out) < 0)
            status = fail_read(file, path, error);
        close_array(&array);
    }
    ls_hdf5_leave(&call);
    return status;
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
    struct ls_hdf5_call call;
    struct opened_array array;
    struct ls_hdf5_shape shape;
    *place = (struct ls_hdf5_place){0, 0};
    ls_hdf5_enter(&call);
    int status = open_array(file, path, &array, &shape, error);
    if (status == 0) {
        haddr_t offset = H5Dget_offset(array.set);
        int bytes = plain_bytes(array.set);
        if (bytes > 0 && offset != HADDR_UNDEF && offset <= file->size &&
            (uint64_t)shape.count <= (file->size - offset) / (uint64_t)bytes)
            *place = (struct ls_hdf5_place){offset, bytes};
        close_array(&array);
    }
    ls_hdf5_leave(&call);
    return status;
}

int ls_hdf5_read_integer(struct ls_hdf5 *file, const char *path, int64_t *value,
                         struct ls_error *error)
{
    struct ls_hdf5_call call;
    struct opened_array array;
    struct ls_hdf5_shape shape;
    ls_hdf5_enter(&call);
    int status = open_array(file, path, &array, &shape, error);
    if (status == 0) {
        if (shape.count != 1)
            status = ls_fail(error, file->status, file->path, NULL, "'%s' is not one number", path);
        else if (H5Dread(array.set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0)
            status = fail_read(file, path, error);
        close_array(&array);
    }
    ls_hdf5_leave(&call);
    return status;
}

enum { STRING_MAX = 65536 }; /* a path, a name: longer ones are an attack */

/* Reads the one string of a set, whose type has a length of its own or says it. */
static int read_string(const struct ls_hdf5 *file, hid_t set, hid_t type, const char *path,
                       char **value, struct ls_error *error)
{
    if (H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        hid_t memory = H5Tcopy(H5T_C_S1);
        H5Tset_size(memory, H5T_VARIABLE);
        H5Tset_cset(memory, H5Tget_cset(type));
        herr_t result = H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, (void *)&text);
        H5Tclose(memory);
        if (result < 0 || text == NULL)
            return fail_read(file, path, error);
        *value = ls_copy_bytes(text, strnlen(text, STRING_MAX));
        H5free_memory(text);
        return *value != NULL ? 0 : ls_fail_memory(error, file->path);
    }
    size_t size = H5Tget_size(type);
    if (size > STRING_MAX)
        return ls_fail(error, file->status, file->path, NULL, "'%s' is too long", path);
    *value = ls_alloc(size + 1, 1);
    if (*value == NULL)
        return ls_fail_memory(error, file->path);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *value) >= 0)
        return 0;
    ls_free(*value);
    *value = NULL;
    return fail_read(file, path, error);
}

int ls_hdf5_read_string(struct ls_hdf5 *file, const char *path, char **value,
                        struct ls_error *error)
{
    struct ls_hdf5_call call;
    *value = NULL;
    ls_hdf5_enter(&call);
    int status = 0;
    hid_t set = find_kind(file, path) == LS_HDF5_ARRAY ? H5Dopen2(file->id, path, H5P_DEFAULT) : -1;
    hid_t type = set >= 0 ? H5Dget_type(set) : -1;
    hid_t space = set >= 0 ? H5Dget_space(set) : -1;
    if (type < 0 || space < 0 || H5Tget_class(type) != H5T_STRING ||
        H5Sget_simple_extent_npoints(space) != 1)
        status = ls_fail(error, file->status, file->path, NULL, "has no string '%s'", path);
    else
        status = read_string(file, set, type, path, value, error);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (set >= 0)
        H5Dclose(set);
    ls_hdf5_leave(&call);
    return status;
}
