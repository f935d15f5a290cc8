/* What the program says of cards. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_CARDS_H
#define LS_CLI_CARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/lockstep.h"

/* The cards of a list (NULL: all), line by line. Fails as the library does where there is none, or
 * where one of the list is missing. */
int ls_cli_describe_cards(const char *gpu, void (*put)(void *user, const char *line), void *user,
                          struct lockstep_error *error);
/* Whether a list, as "0,1" or "all" (NULL: the same), names a card. */
bool ls_cli_is_listed(const char *gpu, size_t card);

/* What this machine has, line by line. */
void ls_cli_describe_machine(void (*put)(void *user, const char *line), void *user);

/* Before a command that was told to compute on cards (`device`): a line on stderr that says on what
 * the device was tested. Nothing where there are none: the command itself will say so. */
void ls_cli_note_cards(const char *device);

#endif
