/* What a net computes although it cannot be meant. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_ODD_LAYERS_H
#define LS_GRAPH_ODD_LAYERS_H

#include "ir/graph.h"

/* Calls `say` with a sentence, which begins with a place, for each layer that is odd: a loss that
 * applies a softmax to what has been through one, one class, weights of classes that are all 0,
 * bottoms that are not read. */
void ls_graph_tell_odd(const struct ls_graph *graph, void (*say)(void *user, const char *sentence),
                       void *user);

#endif
