/* Checking the promise: the same training with several numbers of workers, compared byte for byte.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_VERIFY_H
#define LS_SOLVER_VERIFY_H

#include "solver/trainer.h"

/* See lockstep_verify. */
int ls_verify(const struct ls_solver_definition *definition,
              const struct lockstep_train_options *options, const int *workers, size_t count,
              int64_t iterations, struct ls_error *error);

#endif
