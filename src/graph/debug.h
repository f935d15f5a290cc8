/* debug_info: how large the blobs of a net and their gradients are.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_DEBUG_H
#define LS_GRAPH_DEBUG_H

#include "ir/graph.h"

/* Adds ops that measure, behind the ops that write them, every top and the gradient of every bottom
 * that has one: graph->debug says where the record has what. After the rewrites, so that what is
 * trained has the same bits; what they have made one with something else cannot be measured. Sets
 * graph->failed without memory. */
void ls_graph_add_debug(struct ls_graph *graph);

#endif
