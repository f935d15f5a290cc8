/* Losses for a net that has none, so that its training step can be timed.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_ADDED_LOSSES_H
#define LS_SOLVER_ADDED_LOSSES_H

#include "schema/net.h"

/* Where no layer of the net is a loss, the mean of each top that only layers without gradients
 * read becomes one: a Reduction layer over all axes, behind the others. */
int ls_add_losses(struct ls_net_definition *definition, struct ls_error *error);

#endif
