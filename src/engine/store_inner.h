/* What the files of a store share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STORE_INNER_H
#define LS_ENGINE_STORE_INNER_H

#include "engine/store.h"

struct ls_stored_weights {
    float **of;  /* by parameter */
    float *flat; /* those whose gradients are reduced as sums, as engine/shards.h lays them */
    int (*wait)(void *user, int bucket, struct ls_error *error); /* NULL: none are ever sent */
    void *user;
};

/* Waits until the weights of a bucket are there, or those of all (LS_BUCKETS_ALL). */
int ls_store_wait(const struct ls_store *store, int bucket, struct ls_error *error);

#endif
