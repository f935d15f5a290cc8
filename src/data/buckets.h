/* Buckets: an order of samples of different lengths in which a batch has samples of one length.
 *
 * A bucket is all samples of one length. Each is shuffled by itself, and cut into whole batches;
 * what does not fill a batch comes behind, from the shortest to the longest, and is cut into
 * batches of several lengths. The batches are shuffled, too; without shuffling they come in the
 * order of the lengths. All of that follows from the seed, the epoch and the lengths.
 *
 * Where epochs follow each other without a gap, one may begin inside a batch. Then the end of its
 * order comes first, so that its batches lie where those of the training do.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_BUCKETS_H
#define LS_DATA_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct ls_buckets;

struct ls_buckets_options {
    int64_t size;  /* samples */
    int64_t batch; /* samples of a batch, at least 1 */
    bool wraps;    /* batches go on into the next epoch */
    bool shuffle;
    uint64_t key; /* of the shuffle */
    /* The length of the sample at a place of the data, from 0 to size - 1. */
    int64_t (*length)(const void *user, int64_t place);
    const void *user; /* asked while the buckets are made */
};

/* LOCKSTEP_RESOURCE where there is no memory, LOCKSTEP_DATA for more than 65536 lengths. */
int ls_buckets_make(const struct ls_buckets_options *options, struct ls_buckets **buckets,
                    struct ls_error *error);
void ls_buckets_free(struct ls_buckets *buckets);
/* The place in the data of position `position` of an epoch: a permutation. */
int64_t ls_buckets_at(const struct ls_buckets *buckets, int64_t epoch, int64_t position);

#endif
