/* Throughput over what was varied, as text and as JSON.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_TUNE_TABLE_H
#define LS_CLI_TUNE_TABLE_H

#include "lockstep/lockstep.h"

/* What is varied while the others stay as in the first point. */
enum ls_cli_varied { LS_CLI_MICRO_BATCH, LS_CLI_BATCH, LS_CLI_WORKERS, LS_CLI_VARIED };

/* A point's value of it. */
int64_t ls_cli_varied_value(const struct lockstep_tune_point *point, enum ls_cli_varied varied);

/* To stdout. The first point is the base; `in[i]` says in which tables point i is (bits 1 <<
 * ls_cli_varied), the base is in all that have another point. Tables are as wide as `width`. */
void ls_cli_put_tune(const struct lockstep_tune_point *points, const unsigned *in, size_t count,
                     int width);
void ls_cli_put_tune_json(const struct lockstep_tune_point *points, size_t count);

#endif
