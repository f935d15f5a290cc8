/* What a data set consists of; for the files of data sets only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DATASET_INNER_H
#define LS_DATA_DATASET_INNER_H

#include <stdatomic.h>

#include "data/cache.h"
#include "data/dataset.h"
#include "data/order.h"
#include "data/source.h"
#include "data/transform.h"

struct ls_dataset {
    struct ls_source *source;
    struct ls_transform transform;
    int64_t largest[3]; /* see ls_dataset_largest_shape */
    uint32_t *records;  /* of the split, ascending; NULL: all */
    int64_t size;       /* samples */
    bool shuffle;
    uint64_t shuffle_key;
    enum ls_last_batch last_batch;
    int prefetch;
    char *name;       /* of the source, for messages: its first path */
    uint64_t ends[2]; /* hashes of the first and the last record */
    _Atomic uint64_t reads;
    struct ls_cache *cache; /* NULL: nothing is kept */
};

/* The record behind an ordinal. `order` is the caller's: that of the epoch which it asked for last,
 * or zeros. */
int64_t ls_dataset_record(const struct ls_dataset *dataset, int64_t ordinal,
                          struct ls_order *order);
/* Finds the largest shape, after all else is known. */
int ls_dataset_measure(struct ls_dataset *dataset, struct ls_error *error);

#endif
