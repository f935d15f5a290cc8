/* Outputs: the figures of a test, as they are printed.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_OUTPUTS_H
#define LS_SOLVER_OUTPUTS_H

#include "ir/graph.h"
#include "lockstep/lockstep.h"

/* Outputs of the last evaluation, as the public interface shows them. All zeros is an empty list.
 */
struct ls_outputs {
    struct lockstep_output *items;
    size_t count, capacity;
    double *values; /* of all items, one behind the other */
    size_t value_capacity;
};

/* Turns the figures of a record into outputs, in the order in which they are printed. The graph may
 * be another one each time; names are the graph's. */
int ls_outputs_set(struct ls_outputs *outputs, const struct ls_graph *graph, const double *record,
                   struct ls_error *error);
void ls_outputs_free(struct ls_outputs *outputs);

#endif
