/* What several ranks will do, as text and as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_SCALING_TABLE_H
#define LS_CLI_SCALING_TABLE_H

#include "lockstep/lockstep.h"

/* To stdout. */
void ls_cli_put_scaling(const struct lockstep_scaling *scaling);
void ls_cli_put_scaling_json(const struct lockstep_scaling *scaling);

#endif
