/* What a training says of itself as a run begins.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_REPORT_H
#define LS_SOLVER_REPORT_H

#include "solver/trainer.h"

/* The start of a run: what matters, and warnings. */
int ls_trainer_report_start(struct ls_trainer *trainer, int64_t iterations, struct ls_error *error);

#endif
