/* How a training goes on from a snapshot.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_RESUME_H
#define LS_SOLVER_RESUME_H

#include "solver/trainer.h"

/* Continues from `resume`: a file, or "auto". All ranks call it; only rank 0 needs to
 * see the file. */
int ls_trainer_resume(struct ls_trainer *trainer, const char *resume, struct ls_error *error);

#endif
