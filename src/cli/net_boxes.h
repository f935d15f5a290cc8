/* A net as boxes that read each other: layers that work in place, or behind one layer alone, share
 * its box. Of copies of a block the first one is there, in a frame.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_NET_BOXES_H
#define LS_CLI_NET_BOXES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/net_copies.h"
#include "lockstep/lockstep.h"

struct ls_net_box {
    size_t first, last; /* layers: whose box it is, and whose tops it has */
    size_t layers;
    double parameters, flops; /* of all of them; a sample's, forward */
    double bytes;             /* of their tops, for a batch */
};

struct ls_net_boxes {
    struct ls_net_box *box;
    size_t boxes;
    size_t *box_of; /* by layer; of a copy's that is not there that of the first one */
    struct ls_net_repeats repeats;
    size_t (*edge)[2]; /* from box to box */
    size_t edges;
};

/* Adds a layer to what a box has. */
void ls_net_box_add(struct ls_net_box *box, const struct lockstep_net_layer *layer, size_t index);
/* False: no memory. */
bool ls_net_boxes_make(const struct lockstep_net_layer *layers, size_t count,
                       struct ls_net_boxes *boxes);
void ls_net_boxes_free(struct ls_net_boxes *boxes);

#endif
