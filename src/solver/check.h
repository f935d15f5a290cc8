/* Checks that need the built net.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_CHECK_H
#define LS_SOLVER_CHECK_H

#include "solver/trainer.h"

/* Names that a snapshot could not tell from its own; a net without a loss or with nothing to learn,
 * or too many micro-batches; and, when its weights are there, layers that normalise by averages
 * which were never computed. */
int ls_trainer_check_names(const struct ls_trainer *trainer, struct ls_error *error);
int ls_trainer_check_training(const struct ls_trainer *trainer, struct ls_error *error);
int ls_trainer_check_averages(const struct ls_trainer *trainer, struct ls_error *error);
/* Fails, with the place of the layer, where the net of `graph` normalises by saved averages that
 * the store's weights do not have. */
int ls_check_averages(const struct ls_store *store, const struct ls_graph *graph, const char *hint,
                      struct ls_error *error);

#endif
