/* Files that are written in place, and folders: the one place where they are made. Files that are
 * there as a whole or not at all are in base/atomic_file.h; both keep to the rules of
 * docs/reliability.md, "Links in shared folders".
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_OUTPUT_H
#define LS_BASE_OUTPUT_H

#include "base/error.h"

/* What becomes of a file that is there already: the numbers of enum lockstep_file_how. */
enum ls_output_how {
    LS_OUTPUT_APPEND, /* what is written goes behind its end */
    LS_OUTPUT_ANEW,   /* it is emptied */
    LS_OUTPUT_NEW,    /* a failure */
    LS_OUTPUT_KEEP,   /* it stays as it is; may be read and written over */
};

/* Opens a file for writing and makes it if it is not there; *fd is none of the standard streams.
 * LOCKSTEP_RESOURCE, and -1, where that cannot be, and for what another user may have laid in the
 * place: a symbolic link, a file with several names (hard links), a file of another user in a
 * folder like /tmp; also for folders.
 * `named`: the path is what the user wrote, so that his own symbolic links and root's are followed,
 * and devices and pipes are written to. Names that Lockstep chooses lead to files alone. */
int ls_output_open(const char *path, enum ls_output_how how, int named, int *fd,
                   struct ls_error *error);

/* Makes a folder if it is not there. A symbolic link in its place must be the user's own, or
 * root's. LOCKSTEP_RESOURCE where it cannot be made. */
int ls_output_folder(const char *path, struct ls_error *error);

#endif
