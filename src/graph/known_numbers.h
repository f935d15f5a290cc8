/* Numbers that are known before anything is computed. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_KNOWN_NUMBERS_H
#define LS_GRAPH_KNOWN_NUMBERS_H

#include "ir/graph.h"

/* Refuses layers that look up rows, or take labels, which the layer that makes them cannot make in
 * their range: places of a sequence beyond a table, random labels beyond the classes. */
int ls_graph_check_known_numbers(const struct ls_graph *graph, struct ls_error *error);

#endif
