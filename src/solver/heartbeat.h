/* status.json of a training by one process: where it is, at most some seconds old, and how it
 * ended. (For jobs of several the failure detector writes it: docs/jobs.md.)
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_HEARTBEAT_H
#define LS_SOLVER_HEARTBEAT_H

#include "solver/trainer.h"

/* Where it goes: lockstep_train_options.status_file. */
int ls_heartbeat_place(struct ls_trainer *trainer, const char *status_file, struct ls_error *error);
/* A run has begun. */
void ls_heartbeat_begin(struct ls_trainer *trainer);
/* Some time has passed, perhaps. */
void ls_heartbeat_beat(struct ls_trainer *trainer);
/* A run that has begun has ended with this status and error (may be NULL). */
void ls_heartbeat_end(struct ls_trainer *trainer, int status, const struct ls_error *error);

#endif
