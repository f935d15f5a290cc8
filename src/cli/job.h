/* The program as one of a job's ranks: which rank prints, and which commands ranks may run.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_JOB_H
#define LS_CLI_JOB_H

#include "lockstep/lockstep.h"

/* Where a launcher has started several processes with a command that is for one: rank 0 says so,
 * and the result is LOCKSTEP_USAGE; else 0. */
int ls_cli_refuse_ranks(const char *command);

/* "mpirun -np 4" or "srun -n 4": how a job of so many ranks is started where this one was; "" for
 * one. */
const char *ls_cli_launch_command(int ranks, char text[64]);

#endif
