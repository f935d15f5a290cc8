/* Texts that end other texts, which come in pieces.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_STOPS_H
#define LS_CLI_STOPS_H

#include <stdbool.h>
#include <stddef.h>

/* What of a text may still be the beginning of what ends it. Zeroed at first. */
struct ls_cli_held {
    char *bytes; /* to be freed */
    size_t length, room;
};

/* Adds a piece. *ready: so many bytes of what is held are not what ends the text, which
 * ls_cli_held_drop takes out when they were put. *stopped: what follows them is one of the `count`
 * texts `stops`, none of them empty. False: there is no memory. */
bool ls_cli_held_add(struct ls_cli_held *held, const char *bytes, size_t length,
                     const char *const *stops, size_t count, size_t *ready, bool *stopped);
void ls_cli_held_drop(struct ls_cli_held *held, size_t bytes);

#endif
