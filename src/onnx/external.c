/* The path that a model names is followed one folder at a time, each opened without following
 * links: so there is no moment at which a path that was looked at can become another one.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/external.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* An entry of a tensor's external data; NULL: there is none. */
static const char *find_entry(const Onnx__TensorProto *tensor, const char *key)
{
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
        if (entry->key != NULL && entry->value != NULL && strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}

/* A number of bytes, decimal digits and nothing else. */
static bool read_size(const char *text, uint64_t *size)
{
    if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *size = strtoull(text, NULL, 10);
    return errno == 0;
}

/* Whether a location stays in the model's folder: parts that are names, with one '/' between. */
static bool stays_inside(const char *location)
{
    for (const char *part = location;; part++) {
        const size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (*part == '\0')
            return true;
    }
}

/* The folder of a file; -1 if it cannot be opened. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash == NULL ? ls_copy_string(".") : ls_copy_bytes(path, (size_t)(slash - path) + 1);
    if (folder == NULL) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ls_free(folder);
    return fd;
}

/* Opens a file within a folder, which is closed; -1 on failure. */
static int open_within(int folder, const char *location)
{
    int fd = folder;
    char name[256]; /* longer than any file system has names */
    while (fd >= 0) {
        const size_t length = strcspn(location, "/");
        const bool last = location[length] == '\0';
        if (length >= sizeof name) {
            close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, location, length);
        name[length] = '\0';
        const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
        int next = openat(fd, name, flags);
        int why = errno;
        close(fd);
        errno = why;
        if (last || next < 0)
            return next;
        fd = next;
        location += length + 1;
    }
    return -1;
}

static int read_at(int fd, void *out, size_t size, uint64_t offset)
{
    char *to = out;
    while (size > 0) {
        ssize_t got = pread(fd, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        to += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return 0;
}

static int read_from(int fd, const char *path, const char *location, uint64_t offset, size_t size,
                     void **bytes, struct ls_error *error)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "the external data '%.200s' are not in a file", location);
    if (offset > (uint64_t)info.st_size || size > (uint64_t)info.st_size - offset)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, "the file of external data was cut short",
                       "%zu bytes at %" PRIu64 " of '%.200s' are wanted, which has %jd", size,
                       offset, location, (intmax_t)info.st_size);
    *bytes = ls_alloc(size, 1);
    if (*bytes == NULL)
        return ls_fail_memory(error, "external data of a model");
    if (read_at(fd, *bytes, size, offset) == 0)
        return 0;
    ls_free(*bytes);
    *bytes = NULL;
    return ls_fail_errno(error, LOCKSTEP_WEIGHTS, location, "cannot read");
}

int ls_onnx_external_read(const Onnx__TensorProto *tensor, const char *path, size_t size,
                          void **bytes, struct ls_error *error)
{
    const char *location = find_entry(tensor, "location"), *at = find_entry(tensor, "offset"),
               *length = find_entry(tensor, "length");
    const char *name = tensor->name != NULL ? tensor->name : "";
    uint64_t offset = 0, said = size;
    *bytes = NULL;
    if (location == NULL)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "the external data of tensor '%.200s' have no location", name);
    if ((at != NULL && !read_size(at, &offset)) || (length != NULL && !read_size(length, &said)) ||
        said != size)
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, NULL,
                       "tensor '%.200s' takes %zu bytes, but its external data are %.40s at %.40s",
                       name, size, length != NULL ? length : "all", at != NULL ? at : "0");
    if (!stays_inside(location))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path,
                       "external data must be in files beside the model, named relative to it",
                       "the external data of tensor '%.200s' are outside of the model's folder: "
                       "'%.200s'",
                       name, location);
    int folder = open_folder(path);
    int fd = folder < 0 ? -1 : open_within(folder, location);
    if (fd < 0 && (errno == ELOOP || errno == EMLINK))
        return ls_fail(error, LOCKSTEP_WEIGHTS, path, "put the file itself beside the model",
                       "the external data '%.200s' are a link, which is not followed", location);
    if (fd < 0)
        return ls_fail_errno(error, LOCKSTEP_WEIGHTS, location, "cannot open");
    int status = read_from(fd, path, location, offset, size, bytes, error);
    close(fd);
    return status;
}
