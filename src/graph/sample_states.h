/* States per sample of a graph: each is declared once, and kept once, as what it is.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_SAMPLE_STATES_H
#define LS_GRAPH_SAMPLE_STATES_H

#include "ir/graph.h"

/* What only a mistake in a layer's code can be, and states of samples that were mixed. */
int ls_graph_check_states(const struct ls_graph *graph, struct ls_error *error);

#endif
