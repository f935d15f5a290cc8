/* Short names of runs, from the files of their logs: what tells them apart.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_RUN_NAMES_H
#define LS_CLI_RUN_NAMES_H

#include <stddef.h>

enum { LS_CLI_RUN_NAME = 256 };

/* "runs/a/log.json" and "runs/b/log.json" are "a" and "b"; "runs/a.json" alone is "a", and
 * "runs/a/log.json" alone is "a", too. */
void ls_cli_run_names(const char *const *paths, size_t count, char (*names)[LS_CLI_RUN_NAME]);

#endif
