/* Whether the ranks of a job are about to do the same: what decides bits, or in which order they
 * meet, must be equal on all of them. What differs is found before the first update and named;
 * otherwise it would be found late, by other weights, or never.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_RANKS_H
#define LS_SOLVER_RANKS_H

#include "solver/trainer.h"

/* Compares data, numeric environment, definition and what the options ask for. All ranks call it
 * and return the same: LOCKSTEP_DIFFERENT says what differs, with the values of two ranks. */
int ls_ranks_compare(struct ls_trainer *trainer, const struct lockstep_train_options *options,
                     struct ls_error *error);

/* The same for where a run ends. Not agreed: what differs is an error of the ranks that differ. */
int ls_ranks_compare_end(struct ls_trainer *trainer, int64_t end, struct ls_error *error);

#endif
