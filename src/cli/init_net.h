/* Definitions for data that is at hand, as `lockstep init` writes them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_INIT_NET_H
#define LS_CLI_INIT_NET_H

#include <stdio.h>

#include "cli/init_data.h"

/* What was found, in some lines, each behind `before`. */
void ls_init_describe(FILE *out, const char *before, const struct ls_init_data *data);

/* The net with its data layers, and the solver that names it. */
void ls_init_put_net(FILE *out, const struct ls_init_data *data);
void ls_init_put_solver(FILE *out, const struct ls_init_data *data, const char *net);

#endif
