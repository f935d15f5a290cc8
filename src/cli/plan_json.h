/* A plan as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_PLAN_JSON_H
#define LS_CLI_PLAN_JSON_H

#include "cli/plan_table.h"

/* To stdout, as ls_cli_put_plan. */
void ls_cli_put_plan_json(const struct lockstep_plan *plan, const struct ls_cli_largest *largest);

#endif
