/* Completion of command lines for shells, from the tables of options.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_COMPLETION_H
#define LS_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/options.h"

/* What a shell offers in place of a value or an argument. */
struct ls_cli_offer {
    char words[512]; /* with a space between; "": none */
    bool files, folders;
};
void ls_cli_offer_value(const struct ls_cli_option *option, struct ls_cli_offer *offer);
void ls_cli_offer_argument(const struct ls_cli_command *command, struct ls_cli_offer *offer);

/* The first sentence of an option's help, in one line of at most `size` - 1 bytes. */
void ls_cli_first_sentence(const struct ls_cli_option *option, char *text, size_t size);

/* Scripts that complete the commands, options and values of `lockstep`. */
void ls_cli_complete_bash(FILE *out);
void ls_cli_complete_zsh(FILE *out);
void ls_cli_complete_fish(FILE *out);

#endif
