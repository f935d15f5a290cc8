/* Texts and ids that are read, from files or standard input.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_TOKEN_INPUT_H
#define LS_TEXT_TOKEN_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A text that is read bit by bit, and handed out in lines or as a whole. */
struct ls_text_input {
    const char *path; /* borrowed; "-" is standard input */
    const char *name; /* for messages */
    int fd;           /* -1: not open */
    char *buffer;
    size_t begin, scanned, end, capacity;
    bool finished;
    uint64_t line;  /* of the last one handed out, from 1 */
    uint64_t taken; /* bytes read so far */
};
int ls_text_input_open(const char *path, struct ls_text_input *input, struct ls_error *error);
/* The next line, without its end, or all that there is; it is valid until the next call. *text is
 * NULL at the end. */
int ls_text_input_line(struct ls_text_input *input, const char **text, size_t *length,
                       struct ls_error *error);
int ls_text_input_all(struct ls_text_input *input, const char **text, size_t *length,
                      struct ls_error *error);
void ls_text_input_close(struct ls_text_input *input);

#endif
