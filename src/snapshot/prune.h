/* Pruning: masks of the smallest weights of a file.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_PRUNE_H
#define LS_SNAPSHOT_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ls_prune_request {
    double sparsity;           /* 0 to 1: the part of the weights that becomes zero */
    const char *const *layers; /* patterns of names (fnmatch); none: all layers */
    size_t layer_count;
    bool global; /* the part of all weights together; else of each parameter */
    /* Told of each parameter, by its name; may be NULL. */
    void (*tell)(void *user, const char *parameter, int64_t weights, int64_t masked);
    void *user;
};

/* Reads the weights of `path` and writes a mask for each parameter that is pruned: weights with two
 * axes or more, no biases and no statistics. The smallest magnitudes are masked; of equal ones
 * those that come first in the file. *masked and *weights: of all together. */
int ls_prune(const char *path, const char *output, const struct ls_prune_request *request,
             int64_t *weights, int64_t *masked, struct ls_error *error);

#endif
