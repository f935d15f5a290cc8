/* Where the time of a training went, as text and as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_TIME_TABLE_H
#define LS_CLI_TIME_TABLE_H

#include "lockstep/lockstep.h"

/* To stdout. */
void ls_cli_put_time(const struct lockstep_timing *timing);
void ls_cli_put_time_json(const struct lockstep_timing *timing);

#endif
