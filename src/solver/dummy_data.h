/* Dummy data: a definition can be planned, timed and tried out where its data are not there.
 *
 * Data layers become DummyData layers with tops of the same names: random pictures, and labels that
 * are random classes. DummyData is keyed by the ordinal of the sample, so that a training on it is
 * as exact as any other.
 *
 * What the size of a top is comes from, in this order: what the caller says; the definition
 * (crop_size, new_height, windows of a text, shapes); for labels, the shape of what they are
 * compared with. The number of channels is that of mean_value. Where nothing says it, pictures have
 * 3 channels and 224 x 224 pixels, or, if the net cannot be built so, the first of some other usual
 * sizes that it can be built with. What was assumed is said.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DUMMY_DATA_H
#define LS_SOLVER_DUMMY_DATA_H

#include "lockstep/lockstep.h"
#include "schema/solver.h"

/* In the nets of a solver, or in one net, before they are opened. */
int ls_dummy_data_solver(struct ls_solver_definition *solver,
                         const struct lockstep_dummy_options *options, struct ls_error *error);
int ls_dummy_data_net(struct ls_net_definition *net, const struct lockstep_dummy_options *options,
                      struct ls_error *error);

#endif
