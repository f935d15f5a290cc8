/* Manual pages, from the tables of options.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_MANUAL_H
#define LS_CLI_MANUAL_H

#include <stdio.h>

#include "cli/links.h"
#include "cli/options.h"

/* The manual page of a command, or of the program (NULL), in the macros of man(7). */
void ls_cli_put_manual(FILE *out, const struct ls_cli_command *command);
/* That of a program of Caffe's. */
void ls_cli_put_link_manual(FILE *out, const struct ls_cli_alias *link);

#endif
