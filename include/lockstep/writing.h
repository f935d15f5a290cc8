/* Files that a program writes beside Lockstep's own, such as its logs. None is opened through a
 * link that another user of a shared folder may have laid (docs/reliability.md). A part of
 * lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_WRITING_H
#define LOCKSTEP_WRITING_H

#include <stddef.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a file that is there already. */
enum lockstep_file_how {
    LOCKSTEP_FILE_APPEND, /* what is written goes behind its end */
    LOCKSTEP_FILE_ANEW,   /* it is emptied */
    LOCKSTEP_FILE_NEW     /* a failure */
};
/* Opens a file that is written piece by piece, and makes it if it is not there. *descriptor is the
 * caller's to close, and none of the standard streams; it can be read, too, where it is of a file.
 * `named` is 1 where the user wrote the path: his own symbolic links and root's are followed, and
 * devices and pipes are written to; 0: it leads to a file alone. LOCKSTEP_RESOURCE. */
LOCKSTEP_API int lockstep_file_open(const char *path, enum lockstep_file_how how, int named,
                                    int *descriptor, struct lockstep_error *error);
/* Makes a folder if it is not there. LOCKSTEP_RESOURCE. */
LOCKSTEP_API int lockstep_folder_make(const char *path, struct lockstep_error *error);

/* A file that is there as a whole or not at all: what is written to its descriptor takes the place
 * of `path` when it is committed, which happens once. Freed without that, it leaves `path` as it
 * was. *output is the caller's to free, committed or not. LOCKSTEP_RESOURCE where it cannot be
 * made or put in its place, LOCKSTEP_USAGE for a second commit. */
struct lockstep_whole_file;
LOCKSTEP_API int lockstep_whole_file_new(const char *path, struct lockstep_whole_file **output,
                                         struct lockstep_error *error);
/* The file's, which closes it; -1 once it is committed. */
LOCKSTEP_API int lockstep_whole_file_descriptor(const struct lockstep_whole_file *output);
LOCKSTEP_API int lockstep_whole_file_commit(struct lockstep_whole_file *output,
                                            struct lockstep_error *error);
LOCKSTEP_API void lockstep_whole_file_free(struct lockstep_whole_file *output);

#ifdef __cplusplus
}
#endif
#endif
