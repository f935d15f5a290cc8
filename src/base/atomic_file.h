/* Files that are there as a whole or not at all.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_ATOMIC_FILE_H
#define LS_BASE_ATOMIC_FILE_H

#include <stddef.h>

#include "base/error.h"

/* An atomic write: bytes go to a temporary file beside `path`; commit flushes it, syncs it,
 * renames it over `path` and syncs the directory. Until then `path` is untouched, and abandon (or
 * any failure) removes the temporary file. A failure has status LOCKSTEP_RESOURCE. */
struct ls_atomic_file;
int ls_atomic_open(const char *path, struct ls_atomic_file **file, struct ls_error *error);
int ls_atomic_write(struct ls_atomic_file *file, const void *bytes, size_t size,
                    struct ls_error *error);
/* For callers that write by themselves, until the commit. */
int ls_atomic_descriptor(const struct ls_atomic_file *file);
/* Writes over bytes that were written before, `offset` bytes behind the beginning. */
int ls_atomic_rewrite(struct ls_atomic_file *file, size_t offset, const void *bytes, size_t size,
                      struct ls_error *error);
int ls_atomic_commit(struct ls_atomic_file *file, struct ls_error *error); /* frees `file` */
void ls_atomic_abandon(struct ls_atomic_file *file);                       /* frees `file` */
/* All of that, for a file whose bytes lie in one place. */
int ls_atomic_replace(const char *path, const void *bytes, size_t size, struct ls_error *error);

/* The same for a file that is replaced again soon: nothing waits for the disk. */
int ls_atomic_refresh(const char *path, const void *bytes, size_t size, struct ls_error *error);

/* Fails early when files beginning with `prefix` cannot be created and named (missing directory, no
 * right to write); leaves nothing behind. */
int ls_file_check_prefix(const char *prefix, struct ls_error *error);

#endif
