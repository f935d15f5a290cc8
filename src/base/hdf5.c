/* Reading HDF5 files: groups and strings, and what reading and writing share.
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
    static bool entered;
    pthread_mutex_lock(&lock);
    /* At the process's end the library would complain on stderr of damaged files that it could not
     * close; all files are closed before. */
    if (!entered)
        H5dont_atexit();
    entered = true;
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

int ls_hdf5_fail_read(const struct ls_hdf5 *file, const char *path, struct ls_error *error)
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

enum { LINKS_MAX = 16, PATH_LENGTH = 1024 }; /* links to links; of paths within files */

/* Puts what the soft link of the first `at` bytes of `path` names in their place; false: too long.
 */
static bool follow_link(hid_t file, char path[PATH_LENGTH], size_t at, const char *link,
                        size_t size)
{
    char target[PATH_LENGTH], whole[2 * PATH_LENGTH];
    if (size > sizeof target || H5Lget_val(file, link, target, sizeof target, H5P_DEFAULT) < 0)
        return false;
    target[sizeof target - 1] = '\0';
    size_t folder = at;
    while (path[folder - 1] != '/')
        folder--;
    const int length = snprintf(whole, sizeof whole, "%.*s%s%s", target[0] == '/' ? 0 : (int)folder,
                                path, target, path + at);
    if (length >= PATH_LENGTH)
        return false;
    memcpy(path, whole, (size_t)length + 1);
    return true;
}

/* LS_HDF5_GROUP: each part of a path is there, and its soft links stay within the file; else
 * LS_HDF5_ABSENT, _OUTSIDE or _DAMAGED. */
static enum ls_hdf5_kind walk(hid_t file, const char *path)
{
    char whole[PATH_LENGTH], part[PATH_LENGTH];
    if (strlen(path) >= sizeof whole || path[0] != '/')
        return LS_HDF5_ABSENT;
    memcpy(whole, path, strlen(path) + 1);
    int links = 0;
    for (size_t at = 1; at <= strlen(whole); at++) {
        if ((whole[at] != '/' && whole[at] != '\0') || whole[at - 1] == '/')
            continue;
        memcpy(part, whole, at);
        part[at] = '\0';
        H5L_info_t info;
        const htri_t there = H5Lexists(file, part, H5P_DEFAULT);
        if (there <= 0)
            return links > 0 ? LS_HDF5_OUTSIDE : LS_HDF5_ABSENT;
        if (H5Lget_info(file, part, &info, H5P_DEFAULT) < 0)
            return LS_HDF5_DAMAGED;
        if (info.type == H5L_TYPE_HARD)
            continue;
        if (info.type != H5L_TYPE_SOFT || ++links > LINKS_MAX ||
            !follow_link(file, whole, at, part, info.u.val_size))
            return LS_HDF5_OUTSIDE;
        at = 0;
    }
    return LS_HDF5_GROUP;
}

enum ls_hdf5_kind ls_hdf5_find_kind(const struct ls_hdf5 *file, const char *path)
{
    if (strcmp(path, "/") == 0)
        return LS_HDF5_GROUP;
    const enum ls_hdf5_kind found = walk(file->id, path);
    if (found != LS_HDF5_GROUP)
        return found;
    H5O_info_t info;
    if (H5Oget_info_by_name2(file->id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return LS_HDF5_DAMAGED;
    return info.type == H5O_TYPE_GROUP     ? LS_HDF5_GROUP
           : info.type == H5O_TYPE_DATASET ? LS_HDF5_ARRAY
                                           : LS_HDF5_OTHER;
}

enum ls_hdf5_kind ls_hdf5_kind(struct ls_hdf5 *file, const char *path)
{
    struct ls_hdf5_call call;
    ls_hdf5_enter(&call);
    enum ls_hdf5_kind kind = ls_hdf5_find_kind(file, path);
    ls_hdf5_leave(&call);
    return kind;
}

bool ls_hdf5_is_link(struct ls_hdf5 *file, const char *path)
{
    struct ls_hdf5_call call;
    H5L_info_t info;
    ls_hdf5_enter(&call);
    const bool link =
        H5Lget_info(file->id, path, &info, H5P_DEFAULT) >= 0 && info.type != H5L_TYPE_HARD;
    ls_hdf5_leave(&call);
    return link;
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
    if (ls_hdf5_find_kind(file, group) != LS_HDF5_GROUP)
        status = ls_fail(error, file->status, file->path, NULL, "has no group '%s'", group);
    else if (H5Literate_by_name(file->id, group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, note_name,
                                &listing, H5P_DEFAULT) < 0)
        status = listing.status != 0 ? ls_fail_memory(error, file->path)
                                     : ls_hdf5_fail_read(file, group, error);
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

/* ---- Strings --------------------------------------------------------------------------------- */

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
            return ls_hdf5_fail_read(file, path, error);
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
    return ls_hdf5_fail_read(file, path, error);
}

int ls_hdf5_read_string(struct ls_hdf5 *file, const char *path, char **value,
                        struct ls_error *error)
{
    struct ls_hdf5_call call;
    *value = NULL;
    ls_hdf5_enter(&call);
    int status = 0;
    hid_t set =
        ls_hdf5_find_kind(file, path) == LS_HDF5_ARRAY ? H5Dopen2(file->id, path, H5P_DEFAULT) : -1;
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
