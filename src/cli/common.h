/* Options that every command takes, before or behind its name: plugins, and how much and in which
 * colours the program writes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_COMMON_H
#define LS_CLI_COMMON_H

#include "cli/options.h"

/* For help, manual pages and completion; ends with a row without a name. */
extern const struct ls_cli_option ls_cli_common_options[];

/* Takes these options out of the arguments and does what they say. 0, or the exit code after a
 * message. */
int ls_cli_take_common(int *count, char **arguments);

/* The files of the plugins that the command line gave, in their order; NULL behind the last. */
const char *ls_cli_plugin(size_t index);

#endif
