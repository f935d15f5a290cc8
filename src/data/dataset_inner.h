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
    struct ls_transform transform; /* of images */
    struct ls_sample_tensor tensor[LS_RECORD_TENSORS];
    int tensors;
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
/* The hash of what was read of record `index`. One without a label counts as if it had label 0. */
uint64_t ls_record_hash(int64_t index, const struct ls_record *record, uint32_t wanted);
/* Reads the first and the last record for their hashes: a source that cannot be read is found now.
 */
int ls_dataset_take_ends(struct ls_dataset *dataset, struct ls_error *error);
/* Makes a tensor of a sample, which no transformation changes, of a record. It is written to `out`,
 * or only checked (NULL). LOCKSTEP_DATA where the tensor's type does not have one of the numbers.
 */
int ls_dataset_convert(const struct ls_dataset *dataset, int tensor, const struct ls_record *record,
                       void *out, struct ls_problem *problem);
/* Finds the largest shape, after all else is known. */
int ls_dataset_measure(struct ls_dataset *dataset, struct ls_error *error);

#endif
