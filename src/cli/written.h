/* A text that comes in pieces of bytes and goes out in whole characters.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_WRITTEN_H
#define LS_CLI_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ls_cli_written {
    FILE *out;  /* where it goes at once; NULL: it is kept */
    char *kept; /* to be freed */
    size_t length, room;
    char open[4]; /* a character whose last bytes are missing */
    size_t open_length;
    bool begun;  /* something was put */
    bool failed; /* there was no memory to keep it */
};

/* Puts bytes. What is no UTF-8 becomes U+FFFD; on a terminal control characters do, too, but for
 * ends of lines and tabs. */
void ls_cli_written_put(struct ls_cli_written *written, const char *bytes, size_t length);
/* The text is over: what was kept goes to `out`, and an end of line behind it. False where some of
 * it could not be kept. */
bool ls_cli_written_end(struct ls_cli_written *written, FILE *out);

#endif
