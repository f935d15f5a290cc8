/* Older forms of definitions, made new: what the rest of the program sees is the newest form only.
 * Places are kept.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_UPGRADE_H
#define LS_SCHEMA_UPGRADE_H

#include "schema/definition.h"

/* Brings a net of `definition` up to date, in place:
 *   - V0 and V1 layers (`layers`) become `layer`;
 *   - scale, mean_file, crop_size and mirror of data parameters move to transform_param;
 *   - input with input_shape or input_dim becomes an Input layer in front; input alone (as in old
 *     files of weights) goes away;
 *   - a BatchNorm layer with three `param` gets multipliers 0 (they are statistics);
 *   - blocks become the layers of their copies (schema/blocks.h).
 * Problems are reported with places; the net is then of no use. */
int ls_net_upgrade(struct ls_definition *definition, Lockstep__NetParameter *net,
                   struct ls_error *error);

/* What snapshots of the solver in `file` are called when `given` (may be NULL) says so: a folder is
 * completed by the solver's name, and nothing is the solver's path without its extension:
 * "examples/mnist/lenet_solver.prototxt" makes "examples/mnist/lenet_solver", and with the folder
 * "out" given "out/lenet_solver". Freed by the caller; NULL: no memory. */
char *ls_snapshot_prefix(const char *file, const char *given);

/* solver_type becomes type; snapshot_prefix defaults to the file's name without its extension, and
 * a folder is completed by that name. Nets within the solver are upgraded too. */
int ls_solver_upgrade(struct ls_definition *definition, Lockstep__SolverParameter *solver,
                      struct ls_error *error);

#endif
