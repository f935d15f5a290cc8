/* A drawing of a directed graph in layers: nodes in rows, edges downwards, few crossings.
 *
 * Nodes are put into rows by their longest way from a source; an edge that crosses rows bends in
 * each of them, together with others from the same node. The order within rows comes from sweeps
 * that put a node at the mean of its neighbours. Then as many lines as possible become straight
 * without crossing each other, and are moved towards what they are joined with.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_LAYERED_H
#define LS_CLI_LAYERED_H

#include <stdbool.h>
#include <stddef.h>

struct ls_layered_node {
    double width; /* given */
    double x;     /* of its middle, from 0 */
    int row;      /* from 0 */
};

struct ls_layered_edge {
    size_t from, to;    /* given: from < to */
    size_t bend, bends; /* in ls_layered.bend: one for each row between */
};

struct ls_layered {
    struct ls_layered_node *node; /* the caller's */
    size_t nodes;
    struct ls_layered_edge *edge; /* the caller's */
    size_t edges;
    double gap;   /* between nodes of a row */
    double *bend; /* x of bends; freed by ls_layered_free */
    int rows;
    double width;
};

/* False: no memory. */
bool ls_layered_run(struct ls_layered *drawing);
void ls_layered_free(struct ls_layered *drawing);

#endif
