/* debug_info: the lines about a net's blobs, parameters and gradients that Caffe writes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DEBUG_INFO_H
#define LS_SOLVER_DEBUG_INFO_H

#include "solver/trainer.h"

/* Between the gradients of an update and the change of weights: tells the mean absolute values of
 * all tops, gradients of bottoms, parameters and their gradients, where the solver wants that and
 * the update is displayed. All ranks call it; a failure is that of all. Sums are added up in the
 * order of micro-batches and elements, in double: they are the same on any number of workers. */
int ls_debug_info_tell(struct ls_trainer *trainer, struct ls_error *error);

#endif
