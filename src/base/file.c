/* Whole files: reading with a limit, views of memory, and paths.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

/* Opens a regular file for reading and returns its descriptor, or -1; *size is its size now.
 * O_NONBLOCK keeps a named pipe from waiting for a writer before it is refused. */
static int open_regular(const char *path, int status, off_t *size, struct ls_error *error)
{
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        ls_fail_errno(error, status, path, "cannot open");
        return -1;
    }
    struct stat info;
    if (fstat(fd, &info) != 0) {
        ls_fail_errno(error, status, path, "cannot look at");
        close(fd);
        return -1;
    }
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        ls_fail(error, status, path,
                S_ISFIFO(info.st_mode) ? "files may be read more than once: write it into one"
                                       : NULL,
                "%s",
                S_ISDIR(info.st_mode)    ? "is a directory, not a file"
                : S_ISFIFO(info.st_mode) ? "is a pipe, not a file"
                                         : "is not a file");
        return -1;
    }
    *size = info.st_size;
    return fd;
}

/* Reads until the end of the file, or until `room` bytes are full; -1 on failure. */
static ssize_t read_fully(int fd, char *data, size_t room)
{
    size_t got = 0;
    while (got < room) {
        ssize_t n = read(fd, data + got, room - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

int ls_file_read(const char *path, size_t limit, int status, char **data, size_t *size,
                 struct ls_error *error)
{
    *data = NULL;
    *size = 0;
    off_t bytes;
    int fd = open_regular(path, status, &bytes, error);
    if (fd < 0)
        return status;
    char *buffer = NULL;
    if ((uintmax_t)bytes > limit) {
        ls_fail(error, status, path, NULL, "has %jd bytes; at most %zu are expected",
                (intmax_t)bytes, limit);
        goto fail;
    }
    buffer = ls_alloc((size_t)bytes + 1, 1);
    if (buffer == NULL) {
        status = ls_fail_memory(error, path);
        goto fail;
    }
    ssize_t got = read_fully(fd, buffer, (size_t)bytes);
    if (got < 0) {
        ls_fail_errno(error, status, path, "cannot read");
        goto fail;
    }
    close(fd);
    buffer[got] = '\0';
    *data = buffer;
    *size = (size_t)got;
    return 0;
fail:
    ls_free(buffer);
    close(fd);
    return status;
}

/* Whether bytes begin as UTF-16 does: with its mark, or with two letters of ASCII. */
static bool begins_as_utf16(const char *text, size_t size)
{
    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return true;
    const int zero = size >= 4 && text[0] == '\0' ? 0 : 1;
    return size >= 4 && text[zero] == '\0' && text[zero + 2] == '\0' &&
           isalpha((unsigned char)text[1 - zero]) && isalpha((unsigned char)text[3 - zero]);
}

int ls_file_read_text(const char *path, size_t limit, int status, char **text, size_t *size,
                      struct ls_error *error)
{
    LS_TRY(ls_file_read(path, limit, status, text, size, error));
    if (begins_as_utf16(*text, *size)) {
        ls_free(*text);
        *text = NULL;
        *size = 0;
        return ls_fail(error, status, path, "save it as UTF-8 (iconv -f UTF-16 -t UTF-8)",
                       "is a text in UTF-16, which is not read");
    }
    if (*size >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
        *size -= 3;
        memmove(*text, *text + 3, *size + 1);
    }
    return 0;
}

static const char in_use[] = "files must not change while they are in use";

int ls_file_open(const char *path, int status, struct ls_file *file, struct ls_error *error)
{
    off_t bytes;
    file->fd = open_regular(path, status, &bytes, error);
    file->size = (size_t)bytes;
    return file->fd < 0 ? status : 0;
}

void ls_file_close(struct ls_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

int ls_file_read_at(const struct ls_file *file, const char *path, uint64_t offset, void *out,
                    size_t size, int status, struct ls_error *error)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = pread(file->fd, (char *)out + got, size - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ls_fail_errno(error, status, path, "cannot read");
        if (n == 0)
            return ls_fail(error, status, path, in_use,
                           "has become shorter: it had %zu bytes when it was opened, and ends "
                           "before byte %ju now",
                           file->size, (uintmax_t)(offset + size));
        got += (size_t)n;
    }
    return 0;
}

uint64_t ls_file_stamp(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return 0;
    const int64_t looks[] = {(int64_t)info.st_dev,          (int64_t)info.st_ino,
                             (int64_t)info.st_size,         (int64_t)info.st_mtim.tv_sec,
                             (int64_t)info.st_mtim.tv_nsec, (int64_t)info.st_ctim.tv_sec,
                             (int64_t)info.st_ctim.tv_nsec};
    return ls_hash(looks, sizeof looks, 1);
}

/* A view of a copy in memory, for file systems that cannot map; MAP_FAILED and errno. */
static void *map_copy(int fd, size_t size)
{
    char bytes[1 << 16];
    void *view = MAP_FAILED;
    const int copy = memfd_create("lockstep", MFD_CLOEXEC);
    if (copy < 0)
        return MAP_FAILED;
    for (ssize_t got; (got = read_fully(fd, bytes, sizeof bytes)) != 0;)
        if (got < 0 || write(copy, bytes, (size_t)got) != got)
            goto done;
    if (ftruncate(copy, (off_t)size) == 0)
        view = mmap(NULL, size, PROT_READ, MAP_PRIVATE, copy, 0);
done:;
    const int reason = errno;
    close(copy); /* the view stays */
    errno = reason;
    return view;
}

int ls_file_map(const char *path, int status, struct ls_mapping *mapping, struct ls_error *error)
{
    *mapping = (struct ls_mapping){0};
    off_t bytes;
    int fd = open_regular(path, status, &bytes, error);
    if (fd < 0)
        return status;
    if (bytes > 0) {
        void *view = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (view == MAP_FAILED && errno != ENOMEM)
            view = map_copy(fd, (size_t)bytes);
        if (view == MAP_FAILED) {
            status = errno == ENOMEM ? (int)LOCKSTEP_RESOURCE : status;
            ls_fail_errno(error, status, path, "cannot map");
            close(fd);
            return status;
        }
        mapping->guard = ls_guard_enter(view, (size_t)bytes);
        if (mapping->guard == NULL) {
            munmap(view, (size_t)bytes);
            close(fd);
            return ls_fail_memory(error, path);
        }
        mapping->data = view;
        mapping->size = (size_t)bytes;
    }
    close(fd); /* the view stays */
    return 0;
}

int ls_file_lost(const struct ls_mapping *mapping, const char *path, int status,
                 struct ls_error *error)
{
    if (!ls_guard_lost(mapping->guard))
        return 0;
    return ls_fail(error, status, path, in_use,
                   "has become shorter while it was read, or its disk cannot be read");
}

void ls_file_unmap(struct ls_mapping *mapping)
{
    ls_guard_leave(mapping->guard);
    if (mapping->data != NULL)
        munmap((void *)(uintptr_t)mapping->data, mapping->size);
    *mapping = (struct ls_mapping){0};
}

void ls_file_forget(const struct ls_mapping *mapping, const void *bytes, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t begin = (size_t)((const unsigned char *)bytes - (const unsigned char *)mapping->data);
    size_t end = (begin + size) / page * page; /* the pages that lie in it as a whole */
    begin = (begin + page - 1) / page * page;
    if (begin < end)
        madvise((unsigned char *)(uintptr_t)mapping->data + begin, end - begin, MADV_DONTNEED);
}

bool ls_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool ls_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

bool ls_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool ls_is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode);
}

char *ls_resolve_path(const char *path, const char *definition)
{
    const char *slash = definition != NULL ? strrchr(definition, '/') : NULL;
    if (path[0] == '/' || slash == NULL || ls_file_exists(path))
        return ls_copy_string(path);
    struct ls_text beside = {0};
    ls_text_add_bytes(&beside, definition, (size_t)(slash - definition) + 1);
    ls_text_add(&beside, path);
    if (!beside.failed && ls_file_exists(beside.data))
        return beside.data;
    bool failed = beside.failed;
    ls_text_free(&beside);
    return failed ? NULL : ls_copy_string(path);
}
