/* The writer and the readers of each value, and the ops of each layer, kept up to date while
 * rewrites change the graph.
 *
 * Ops keep their places in graph->ops; that of an op that was removed is NULL until the end.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_GRAPH_LINKS_H
#define LS_GRAPH_LINKS_H

#include "ir/graph.h"

struct ls_link;
struct ls_node;

struct ls_links {
    struct ls_graph *graph;
    size_t value_capacity; /* values that there may be, with those that rewrites add: one an op */
    int *producer;         /* by value: the place of the op that writes it; -1: none */
    int *head;             /* by value: a link; -1: it has no reader */
    int *readers;          /* by value: how often it is read */
    int *of_layer;         /* by layer: the place of an op; -1: none */
    struct ls_node *node;  /* by place */
    struct ls_link *link;
    size_t link_count, link_capacity;
};

/* After a failed allocation graph->failed is set, false is returned, nothing is to be closed. */
bool ls_links_open(struct ls_links *links, struct ls_graph *graph);
/* Closes the gaps that removed ops left, and frees the tables. */
void ls_links_close(struct ls_links *links);

/* The op that writes `value`, or NULL. */
struct ls_op *ls_links_producer(const struct ls_links *links, const struct ls_value *value);
/* How often ops read `value`. */
int ls_links_readers(const struct ls_links *links, const struct ls_value *value);
/* The first op of a kind and direction that reads `value`, or NULL. */
struct ls_op *ls_links_reader(const struct ls_links *links, const struct ls_value *value,
                              enum ls_op_kind kind, bool backward);
/* The first op of a kind and direction that a layer has, or NULL. */
struct ls_op *ls_links_of_layer(const struct ls_links *links, const struct ls_layer *layer,
                                enum ls_op_kind kind, bool backward);

/* An op may be changed in between, but for its place; while it is detached no look-up finds it.
 * Attaching it may set graph->failed. */
void ls_links_detach(struct ls_links *links, struct ls_op *op);
void ls_links_attach(struct ls_links *links, struct ls_op *op);
/* Detaches an op and frees it; NULL is allowed. */
void ls_links_remove(struct ls_links *links, struct ls_op *op);
/* Two ops change places. */
void ls_links_swap(struct ls_links *links, struct ls_op *a, struct ls_op *b);

#endif
