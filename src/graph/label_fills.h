/* Constant labels of DummyData layers. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_LABEL_FILLS_H
#define LS_GRAPH_LABEL_FILLS_H

#include "ir/graph.h"

/* Refuses a constant that is no class of a layer that reads it as labels, and cuts off what is
 * behind the point where all that read it do so. Called before there are backward ops. */
int ls_graph_check_label_fills(const struct ls_graph *graph, struct ls_error *error);

#endif
