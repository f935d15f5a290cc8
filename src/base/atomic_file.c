/* Writing a file so that no reader ever sees half of it, whatever fails.
 *
 *   create a file in <folder>                without a name, where the file system can
 *   write, flush, fsync                      the bytes are on the disk
 *   name it <folder>/<name>                  or, where there is an old one:
 *   name it <folder>/.<name>.<pid>.<n>.tmp   (must not exist yet)
 *   rename over <folder>/<name>              readers see the old file or the new one
 *   fsync <folder>                           the new name is on the disk
 *
 * Any failure removes the temporary file and leaves the old file as it was. A process that is
 * killed while it writes leaves nothing behind, because what it wrote had no name; where every file
 * must have one, or where one without a name cannot be named later (a sandbox may refuse linkat),
 * it is named at once, and may remain.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/descriptor.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum {
    NAME_KEPT = 180, /* of the name in the temporary one, which must stay below NAME_MAX */
    TRIES = 100,     /* leftovers of a killed process that had our number */
    COPY = 1 << 16,  /* bytes at a time */
    SYNC = 64 << 20, /* bytes that are written before they are pushed to the disk */
};

/* Set when a file without a name could not be named: the next ones are named at once. */
static _Atomic bool must_be_named;

static const char disk_hint[] = "free some space, or write somewhere else";

struct ls_atomic_file {
    bool hasty;      /* what is written need not be on the disk */
    FILE *stream;    /* NULL once closed */
    char *path;      /* where the bytes are wanted */
    char *temporary; /* where they are; NULL without a name, and once renamed or removed */
    size_t unsynced; /* bytes written since they were last pushed to the disk */
};

/* The length of the folder's part of a path, with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* A name beside `path` for try `n`, owned by the caller; NULL and errno without memory. */
static char *temporary_name(const char *path, int n)
{
    size_t folder = folder_length(path);
    struct ls_text text = {0};
    ls_text_add_bytes(&text, path, folder);
    ls_text_format(&text, ".%.*s.%ld.%d.tmp", (int)NAME_KEPT, path + folder, (long)getpid(), n);
    if (!text.failed)
        return text.data;
    ls_text_free(&text);
    errno = ENOMEM;
    return NULL;
}

/* Tries names beside `path` with `make` (which returns -1 and errno) until one is new. The name,
 * owned by the caller, goes to *name. */
static int with_new_name(const char *path, int (*make)(const char *name, int fd), int fd,
                         char **name)
{
    for (int n = 0; n < TRIES; n++) {
        char *candidate = temporary_name(path, n);
        if (candidate == NULL)
            return -1;
        int result = make(candidate, fd);
        int reason = errno;
        if (result >= 0) {
            *name = candidate;
            return result;
        }
        ls_free(candidate);
        errno = reason;
        if (reason != EEXIST)
            return -1;
    }
    return -1;
}

static int create_named(const char *name, int unused)
{
    (void)unused;
    return ls_above_streams(open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

static int link_to_name(const char *name, int fd)
{
    char itself[64];
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, itself, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* A new file without a name in the folder of `path`; -1 where that cannot be had, or could not be
 * named later. */
static int create_nameless(const char *path)
{
    if (atomic_load(&must_be_named)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    size_t length = folder_length(path);
    char *folder = length > 0 ? ls_copy_bytes(path, length) : ls_copy_string(".");
    if (folder == NULL) {
        errno = ENOMEM;
        return -1;
    }
    int fd = ls_above_streams(open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666));
    int reason = errno;
    ls_free(folder);
    errno = reason;
    if (fd < 0)
        return -1;
    char itself[64];
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", fd);
    if (access(itself, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Creates a new file in the folder of `path` and opens it for writing; -1 and errno on failure. Its
 * name, owned by the caller, goes to *name: NULL where it has none yet. */
static int create_beside(const char *path, char **name)
{
    *name = NULL;
    int fd = create_nameless(path);
    bool tried_all = fd >= 0 || errno == ENOMEM;
    return tried_all ? fd : with_new_name(path, create_named, -1, name);
}

/* Says what keeps `path` from being created, with what to do about it. */
static int fail_create(struct ls_error *error, const char *path)
{
    int reason = errno;
    char folder[256];
    snprintf(folder, sizeof folder, "%.*s", (int)folder_length(path), path);
    char hint[320] = "";
    if (reason == ENOENT && !ls_is_directory(folder))
        snprintf(hint, sizeof hint, "make the folder first: mkdir -p %s", folder);
    else if (reason == EACCES || reason == EPERM || reason == EROFS)
        snprintf(hint, sizeof hint, "choose a folder that you may write to");
    else if (reason == ENOSPC || reason == EDQUOT)
        snprintf(hint, sizeof hint, "%s", disk_hint);
    char text[128];
    return ls_fail(error, LOCKSTEP_RESOURCE, path, hint, "cannot create: %s",
                   strerror_r(reason, text, sizeof text));
}

int ls_atomic_open(const char *path, struct ls_atomic_file **file, struct ls_error *error)
{
    *file = NULL;
    if (path[folder_length(path)] == '\0' || ls_is_directory(path))
        return ls_fail(error, LOCKSTEP_RESOURCE, path, "give the name of a file",
                       "cannot create: names a directory");
    if (ls_is_special(path)) /* the rename would take its place */
        return ls_fail(error, LOCKSTEP_RESOURCE, path, "give the name of a file",
                       "cannot create: names a device or a pipe");
    struct ls_atomic_file *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, path);
    made->path = ls_copy_string(path);
    if (made->path == NULL) {
        ls_atomic_abandon(made);
        return ls_fail_memory(error, path);
    }
    int fd = create_beside(path, &made->temporary);
    if (fd < 0) {
        int status = fail_create(error, path);
        ls_atomic_abandon(made);
        return status;
    }
    made->stream = fdopen(fd, "wb");
    if (made->stream == NULL) {
        int status = fail_create(error, path);
        close(fd);
        ls_atomic_abandon(made);
        return status;
    }
    *file = made;
    return 0;
}

/* Closes and removes the temporary file; what was going to be written is lost. */
static void discard(struct ls_atomic_file *file)
{
    if (file->stream != NULL)
        fclose(file->stream);
    file->stream = NULL;
    if (file->temporary != NULL)
        unlink(file->temporary);
    ls_free(file->temporary);
    file->temporary = NULL;
}

static int fail_write(struct ls_atomic_file *file, const char *doing, struct ls_error *error)
{
    char text[128];
    int reason = errno;
    const char *hint = reason == ENOSPC || reason == EDQUOT ? disk_hint
                       : reason == EFBIG ? "raise the limit on the size of files (ulimit -f)"
                                         : NULL;
    discard(file);
    return ls_fail(error, LOCKSTEP_RESOURCE, file->path, hint, "%s: %s", doing,
                   strerror_r(reason, text, sizeof text));
}

int ls_atomic_write(struct ls_atomic_file *file, const void *bytes, size_t size,
                    struct ls_error *error)
{
    if (file->stream == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, file->path, NULL,
                       "cannot write: an earlier write failed");
    if (size > 0 && fwrite(bytes, 1, size, file->stream) != size)
        return fail_write(file, "cannot write", error);
    file->unsynced += size;
    if (file->unsynced < SYNC)
        return 0;
    /* A large file goes to the disk as it is written, so that no sync takes very long. */
    file->unsynced = 0;
    if (fflush(file->stream) != 0)
        return fail_write(file, "cannot write", error);
    return fdatasync(fileno(file->stream)) == 0 ? 0 : fail_write(file, "cannot sync", error);
}

int ls_atomic_descriptor(const struct ls_atomic_file *file)
{
    return fileno(file->stream);
}

int ls_atomic_rewrite(struct ls_atomic_file *file, size_t offset, const void *bytes, size_t size,
                      struct ls_error *error)
{
    if (file->stream != NULL && fseeko(file->stream, (off_t)offset, SEEK_SET) != 0)
        return fail_write(file, "cannot write", error);
    LS_TRY(ls_atomic_write(file, bytes, size, error));
    return fseeko(file->stream, 0, SEEK_END) == 0 ? 0 : fail_write(file, "cannot write", error);
}

/* Makes a rename in the folder of `path` durable. Some file systems cannot sync a folder and say
 * EINVAL; there is nothing more to do on those. */
static int sync_folder(const char *path)
{
    size_t length = folder_length(path);
    char *folder = length > 0 ? ls_copy_bytes(path, length) : ls_copy_string(".");
    if (folder == NULL) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ls_free(folder);
    if (fd < 0)
        return -1;
    int result = fsync(fd);
    int reason = errno;
    close(fd);
    errno = reason;
    return result != 0 && reason == EINVAL ? 0 : result;
}

/* Whether a failure to name a file says that this can never be done here. A full disk does not. */
static bool never_nameable(int reason)
{
    return reason != ENOSPC && reason != EDQUOT && reason != ENOMEM && reason != EIO &&
           reason != ENAMETOOLONG;
}

/* Copies all of a file and syncs the copy; -1 and errno on failure. */
static int copy_all(int from, int to)
{
    char bytes[COPY];
    for (off_t at = 0;;) {
        ssize_t count = pread(from, bytes, sizeof bytes, at);
        if (count <= 0)
            return count == 0 ? fsync(to) : -1;
        for (ssize_t done = 0; done < count;) {
            ssize_t written = write(to, bytes + done, (size_t)(count - done));
            if (written < 0)
                return -1;
            done += written;
        }
        at += count;
    }
}

/* What was written to a file that cannot be named goes to one that has a name. */
static int move_to_named(struct ls_atomic_file *file)
{
    int fd = with_new_name(file->path, create_named, -1, &file->temporary);
    if (fd < 0)
        return -1;
    int result = copy_all(fileno(file->stream), fd);
    int reason = errno;
    close(fd);
    errno = reason;
    return result;
}

/* Names a file that has no name yet: as it is wanted if that name is free, else beside it. */
static int give_name(struct ls_atomic_file *file)
{
    int fd = fileno(file->stream);
    if (link_to_name(file->path, fd) == 0)
        return 0;
    if (errno == EEXIST && with_new_name(file->path, link_to_name, fd, &file->temporary) == 0)
        return 0;
    if (!never_nameable(errno))
        return -1;
    atomic_store(&must_be_named, true);
    return move_to_named(file);
}

/* The steps of a commit up to the new name; the stream is closed on success. */
static int put_in_place(struct ls_atomic_file *file, struct ls_error *error)
{
    if (file->stream == NULL)
        return ls_fail(error, LOCKSTEP_RESOURCE, file->path, NULL,
                       "cannot write: an earlier write failed");
    if (fflush(file->stream) != 0)
        return fail_write(file, "cannot write", error);
    if (!file->hasty && fsync(fileno(file->stream)) != 0)
        return fail_write(file, "cannot sync", error);
    if (file->temporary == NULL && give_name(file) != 0)
        return fail_write(file, "cannot name the new file", error);
    int closed = fclose(file->stream);
    file->stream = NULL;
    if (closed != 0)
        return fail_write(file, "cannot close", error);
    if (file->temporary != NULL && rename(file->temporary, file->path) != 0)
        return fail_write(file, "cannot rename the temporary file", error);
    ls_free(file->temporary);
    file->temporary = NULL;
    return 0;
}

int ls_atomic_commit(struct ls_atomic_file *file, struct ls_error *error)
{
    int status = put_in_place(file, error);
    /* The file is whole and in its place, so this is no failure to write it: at worst a machine
     * that loses its power now finds the old file again. */
    if (status == 0 && !file->hasty)
        (void)sync_folder(file->path);
    ls_atomic_abandon(file);
    return status;
}

void ls_atomic_abandon(struct ls_atomic_file *file)
{
    if (file == NULL)
        return;
    discard(file);
    ls_free(file->path);
    ls_free(file);
}

/* Creates a file beside `prefix`, names it and removes it again; -1 and errno on failure. */
static int try_beside(const char *prefix)
{
    char *name;
    int fd = create_beside(prefix, &name);
    if (fd >= 0 && name == NULL && with_new_name(prefix, link_to_name, fd, &name) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        if (!never_nameable(reason))
            return -1;
        atomic_store(&must_be_named, true);
        fd = create_beside(prefix, &name);
    }
    if (fd < 0)
        return -1;
    LS_ASSERT(name != NULL); /* either given here, or a file without a name was ruled out */
    close(fd);
    unlink(name);
    ls_free(name);
    return 0;
}

int ls_file_check_prefix(const char *prefix, struct ls_error *error)
{
    if (try_beside(prefix) != 0)
        return fail_create(error, prefix);
    /* The names of snapshots are longer than the one that could be created. */
    struct ls_text longest = {0};
    ls_text_format(&longest, "%s_iter_2147483647.safetensors", prefix);
    if (longest.failed)
        return ls_fail_memory(error, "a path");
    bool too_long = access(longest.data, F_OK) != 0 && errno == ENAMETOOLONG;
    ls_text_free(&longest);
    errno = ENAMETOOLONG;
    return too_long ? fail_create(error, prefix) : 0;
}

static int replace(const char *path, const void *bytes, size_t size, bool hasty,
                   struct ls_error *error)
{
    struct ls_atomic_file *file;
    LS_TRY(ls_atomic_open(path, &file, error));
    file->hasty = hasty;
    int status = ls_atomic_write(file, bytes, size, error);
    if (status == 0)
        return ls_atomic_commit(file, error);
    ls_atomic_abandon(file);
    return status;
}

int ls_atomic_replace(const char *path, const void *bytes, size_t size, struct ls_error *error)
{
    return replace(path, bytes, size, false, error);
}

int ls_atomic_refresh(const char *path, const void *bytes, size_t size, struct ls_error *error)
{
    return replace(path, bytes, size, true, error);
}
