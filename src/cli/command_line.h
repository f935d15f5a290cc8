/* Command lines that a user can copy.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_COMMAND_LINE_H
#define LS_CLI_COMMAND_LINE_H

#include <stdio.h>

#include "cli/options.h"

/* Writes a space and a word, quoted for a shell where that is needed. */
void ls_cli_put_word(FILE *line, const char *word);
/* An option with its value; nothing where the value is NULL. */
void ls_cli_put_option(FILE *line, const char *option, const char *value);
/* What computes: --gpu LIST for "cuda:LIST", else --device. Nothing where it is NULL. */
void ls_cli_put_device(FILE *line, const char *device);
/* The option with each of several values. */
void ls_cli_put_each(FILE *line, const char *option, const struct ls_cli_list *values);
/* "lockstep COMMAND" with the plugins of this one. */
void ls_cli_put_command(FILE *line, const char *command);

#endif
