/* Layers that a net repeats, such as the copies of a block, by their names: "h.0.conv", "h.1.conv".
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_NET_COPIES_H
#define LS_CLI_NET_COPIES_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/lockstep.h"

/* `times` copies of `length` layers each, of which the first begins with the layer `first`. They
 * are alike in types, shapes and in what they read of themselves. */
struct ls_net_copies {
    size_t first, length, times;
    int name; /* characters of the first layer's name that all have: "h" */
};

struct ls_net_repeats {
    struct ls_net_copies *copies; /* those inside of others behind them */
    size_t count;
};

/* False: no memory. */
bool ls_net_repeats_find(const struct lockstep_net_layer *layers, size_t count,
                         struct ls_net_repeats *repeats);
void ls_net_repeats_free(struct ls_net_repeats *repeats);
/* The layers of the first copies in place of *a and *b. False: these are in two copies. */
bool ls_net_repeats_map(const struct ls_net_repeats *repeats, size_t *a, size_t *b);
/* Whether a layer is in a first copy, or in none. */
bool ls_net_repeats_shows(const struct ls_net_repeats *repeats, size_t layer);

#endif
