/* Matrices of losses that are read from files (InfogainLoss): numbers of the training that its
 * definition does not show. Snapshots and ranks know them by their content.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_MATRICES_H
#define LS_SOLVER_MATRICES_H

#include "base/text.h"
#include "snapshot/archive.h"
#include "solver/trainer.h"

/* A line for each layer of the net that has one: its name and a hash. */
void ls_matrices_describe(const struct ls_net *net, struct ls_text *text);
/* That a snapshot was made with the matrices of the train net. `*untold`: it was written by a
 * version that did not say which it had. */
int ls_matrices_compare(const struct ls_trainer *trainer, const struct ls_archive *snapshot,
                        bool *untold, struct ls_error *error);

#endif
