/* A plan as text.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_PLAN_TABLE_H
#define LS_CLI_PLAN_TABLE_H

#include "lockstep/lockstep.h"

/* The largest batch of each net, where a limit was given. */
struct ls_cli_largest {
    int64_t batch;
    int bounded; /* by memory */
};

/* To stdout. `largest`: one a net, or NULL. */
void ls_cli_put_plan(const struct lockstep_plan *plan, const struct ls_cli_largest *largest);

#endif
