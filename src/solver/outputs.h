/* Outputs: the figures of a test, as they are printed.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_OUTPUTS_H
#define LS_SOLVER_OUTPUTS_H

#include "data/class_names.h"
#include "ir/graph.h"
#include "lockstep/lockstep.h"

/* Outputs of the last evaluation, as the public interface shows them. All zeros is an empty list.
 */
struct ls_outputs {
    struct lockstep_output *items;
    size_t count, capacity;
    double *values;       /* of all items, one behind the other */
    const char **classes; /* the names of their classes, likewise */
    size_t value_capacity;
};

/* Turns the figures of a record into outputs, in the order in which they are printed. The graph may
 * be another one each time; names are the graph's, and those of the classes `names`' (NULL: they
 * have none). What is ranked stands behind what is one figure. */
int ls_outputs_set(struct ls_outputs *outputs, const struct ls_graph *graph,
                   const struct ls_class_names *names, const double *record,
                   struct ls_error *error);
void ls_outputs_free(struct ls_outputs *outputs);

#endif
