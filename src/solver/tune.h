/* How fast a training is with other numbers of workers, batches and micro-batches.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_TUNE_H
#define LS_SOLVER_TUNE_H

#include "solver/trainer.h"

/* See lockstep_tune. */
int ls_tune(const struct ls_solver_definition *definition,
            const struct lockstep_tune_options *options, struct lockstep_tune_point *points,
            size_t count, struct ls_error *error);

#endif
