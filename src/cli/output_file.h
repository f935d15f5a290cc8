/* The files that a command writes: as a whole or not at all, or piece by piece.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_OUTPUT_FILE_H
#define LS_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lockstep/lockstep.h"

struct ls_cli_output_file {
    FILE *stream;
    const char *path; /* borrowed */
    struct lockstep_whole_file *whole;
};

/* Whether two paths, both of which are there, lead to one file. */
bool ls_cli_same_file(const char *a, const char *b);
/* Refuses to write `output` where that is a file that is read: each of `read` is a path, or paths
 * with commas between; both may be NULL. LOCKSTEP_USAGE after a message. */
int ls_cli_check_output(const char *command, const char *output, const char *const *read,
                        size_t count);

/* Opens a temporary file beside `path`. 0, or LOCKSTEP_RESOURCE after a message. */
int ls_cli_output_open(const char *path, struct ls_cli_output_file *file);
/* Puts it in the place of `path`. The same; after a failure nothing is left of it. */
int ls_cli_output_commit(struct ls_cli_output_file *file);
/* All of these: writes a text in the place of `path`. */
int ls_cli_output_write(const char *path, const char *text, size_t length);
/* Removes it; `path` is as it was. Does nothing to a file that is not open. */
void ls_cli_output_abandon(struct ls_cli_output_file *file);

/* Opens a file that is written piece by piece (lockstep_file_open); NULL after a message. */
FILE *ls_cli_output_stream(const char *path, enum lockstep_file_how how, bool named);
/* Makes a folder if it is not there. 0, or LOCKSTEP_RESOURCE after a message. */
int ls_cli_output_folder(const char *path);

#endif
