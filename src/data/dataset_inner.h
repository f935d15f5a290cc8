/* What a data set consists of; for the files of data sets only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DATASET_INNER_H
#define LS_DATA_DATASET_INNER_H

#include <stdatomic.h>

#include "data/bad_records.h"
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
    struct ls_cache *cache;     /* NULL: nothing is kept */
    struct ls_bad_records *bad; /* NULL: they are errors */
};

/* The place of an ordinal in the order of the split's records. `order` is the caller's: that of the
 * epoch which it asked for last, or zeros. */
int64_t ls_dataset_place_of(const struct ls_dataset *dataset, int64_t ordinal,
                            struct ls_order *order);
/* The record at a place. */
int64_t ls_dataset_place(const struct ls_dataset *dataset, int64_t place);
/* The first record from a place on, around the end, that is not known to be bad: the one that is
 * read, once all up to it have been. */
int64_t ls_dataset_stand_in(const struct ls_dataset *dataset, int64_t place);
/* Reads the sample at an ordinal, all of it, without a transformation. */
int ls_reader_read(struct ls_reader *reader, int64_t ordinal, struct ls_record *record,
                   struct ls_error *error);
/* Reads the first and the last record for their hashes: a source that cannot be read is found now.
 * *floats: whether the first (good) one is floats. */
int ls_dataset_take_ends(struct ls_dataset *dataset, bool *floats, struct ls_error *error);
/* Finds the largest shape, after all else is known. */
int ls_dataset_measure(struct ls_dataset *dataset, struct ls_error *error);

#endif
