/* Tests of a training.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_EVALUATE_H
#define LS_SOLVER_EVALUATE_H

#include "solver/trainer.h"

/* Tests net `index` and leaves its figures in trainer->figures.outputs. */
int ls_trainer_evaluate(struct ls_trainer *trainer, size_t index, int64_t *samples,
                        struct ls_error *error);

#endif
