/* The rewrites of a graph, which keep the numerical contract, in the order in which they are done.
 * Each goes through the ops once. After a failed allocation graph->failed is set.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_REWRITE_H
#define LS_GRAPH_REWRITE_H

#include "graph/links.h"

/* Removes backward ops whose results are not read. */
void ls_graph_remove_dead(struct ls_links *links);
/* Removes a linear loss whose gradient is there, too, since that measures the loss itself. */
void ls_graph_merge_linear_loss(struct ls_links *links);
/* A softmax and the logarithmic loss behind it become one op, and so do their gradients. */
void ls_graph_fuse_softmax(struct ls_links *links);
/* Batch norm takes in the learned scale and bias behind it, and then the ReLU behind that. */
void ls_graph_fuse_batch_norm(struct ls_links *links);
/* Convolutions, deconvolutions and inner products take in the ReLU behind them. */
void ls_graph_fuse_relu(struct ls_links *links);
/* Gradients go back through a ReLU where its result was joined or pooled, not in front of that, and
 * through a ReLU and a dropout in one go. */
void ls_graph_move_relu(struct ls_links *links);
/* Sums, products and maxima take in the ReLU behind them, sums of gradients that of a ReLU. */
void ls_graph_fuse_eltwise(struct ls_links *links);

#endif
