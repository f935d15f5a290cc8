/* Files that are read: whole with a limit, piece by piece, or as a view. base/atomic_file.h writes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_FILE_H
#define LS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Reads a whole regular file of at most `limit` bytes into *data (a NUL is added behind it; free
 * with ls_free). `status` is what a failure is reported as, here and below, unless memory has run
 * out: LOCKSTEP_RESOURCE. */
int ls_file_read(const char *path, size_t limit, int status, char **data, size_t *size,
                 struct ls_error *error);

/* The same for a text: without the mark of UTF-8 that editors of Windows put in front, and refused,
 * as what it is, where it is UTF-16. */
int ls_file_read_text(const char *path, size_t limit, int status, char **text, size_t *size,
                      struct ls_error *error);

/* A regular file that is read from here and there. */
struct ls_file {
    int fd;      /* -1: not open */
    size_t size; /* when it was opened */
};
int ls_file_open(const char *path, int status, struct ls_file *file, struct ls_error *error);
void ls_file_close(struct ls_file *file);
/* Reads `size` bytes at `offset`. A file that has become shorter since it was opened fails; any
 * thread may call. */
int ls_file_read_at(const struct ls_file *file, const char *path, uint64_t offset, void *out,
                    size_t size, int status, struct ls_error *error);
/* What a file looks like from outside (device, number, size, time of the last change) as a number
 * that differs if it was written to; 0: it is not there. */
uint64_t ls_file_stamp(const char *path);

/* A read-only view of a whole file. Where the file becomes shorter while it is in use, or cannot be
 * read, there are zeros in the view, and ls_file_lost says so. (That takes a handler of SIGBUS,
 * which the first view installs: base/guard.c.) */
struct ls_mapping {
    const unsigned char *data; /* NULL for an empty file */
    size_t size;
    struct ls_guard *guard;
};
int ls_file_map(const char *path, int status, struct ls_mapping *mapping, struct ls_error *error);
void ls_file_unmap(struct ls_mapping *mapping);
/* Fails if something of the view could not be read so far. Readers of a view call it before they
 * use what they read. */
int ls_file_lost(const struct ls_mapping *mapping, const char *path, int status,
                 struct ls_error *error);
/* Gives back the memory that some bytes of a view take in this process, after they were read; they
 * can be read again. */
void ls_file_forget(const struct ls_mapping *mapping, const void *bytes, size_t size);

bool ls_file_exists(const char *path);
bool ls_is_directory(const char *path);
/* Whether it is there and neither a file nor a directory: a device, a pipe, a socket. */
bool ls_is_special(const char *path);
/* Whether two paths, both of which are there, lead to one file. */
bool ls_same_file(const char *a, const char *b);

/* Finds a path that a definition names: as it is (from the working directory, as Caffe does),
 * else relative to the folder of `definition`. The result is owned by the caller; it is a copy of
 * `path` when neither exists, so that the message about it names what the user wrote. */
char *ls_resolve_path(const char *path, const char *definition);

#endif
