/* The loop of a training.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_LOOP_H
#define LS_SOLVER_LOOP_H

#include "solver/trainer.h"

/* See lockstep_trainer_run. */
int ls_trainer_run(struct ls_trainer *trainer, int64_t iterations, struct ls_error *error);

#endif
