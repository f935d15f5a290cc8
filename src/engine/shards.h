/* Shards: the layout of parameters in flat arrays, and the part of them that each rank owns.
 *
 * Parameters whose gradients are reduced as sums lie one behind the other, the last of the net
 * first: the order in which their gradients become ready. The array is cut into buckets of whole
 * parameters, which are reduced one by one, and each bucket into one part per rank. Parts begin at
 * tiles of parameters. Parameters whose gradients are exchanged as factors are not included: every
 * rank updates them in full, because that costs less than sending their weights.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_SHARDS_H
#define LS_ENGINE_SHARDS_H

#include "base/error.h"
#include "ir/graph.h"

struct ls_bucket {
    size_t begin, end;  /* elements of the flat array */
    size_t *cut;        /* [ranks + 1]: rank r owns [cut[r], cut[r + 1]) */
    size_t first, last; /* of its parameters in ls_shards.order */
};

struct ls_shards {
    int ranks;
    size_t elements; /* of the flat array */
    int *order;      /* parameters, as they lie there */
    size_t count;
    size_t *place; /* by parameter: where it begins; 0 for those that are not in it */
    int *bucket;   /* by parameter; -1: not in it */
    struct ls_bucket *buckets;
    size_t bucket_count;
    size_t *cuts; /* memory of all cuts */
};

/* `elements` by parameter; 0 for those that are not to be in the flat array. One rank owns all of a
 * parameter that is `whole` (NULL: none is). */
int ls_shards_create(size_t parameters, const size_t *elements, const bool *whole, int ranks,
                     struct ls_shards **shards, struct ls_error *error);
void ls_shards_free(struct ls_shards *shards);
/* The elements of a parameter that a rank owns: [*begin, *end), maybe none. */
void ls_shards_own(const struct ls_shards *shards, int parameter, size_t elements, int rank,
                   size_t *begin, size_t *end);
/* Which rank owns an element of a parameter that is in the flat array. */
int ls_shards_owner(const struct ls_shards *shards, int parameter, size_t element);

#endif
