/* What a data set consists of; for the files of data sets only.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DATASET_INNER_H
#define LS_DATA_DATASET_INNER_H

#include <stdatomic.h>

#include "data/buckets.h"
#include "data/cache.h"
#include "data/dataset.h"
#include "data/samples.h"
#include "data/source.h"
#include "data/transform.h"

struct ls_dataset {
    struct ls_source *source;
    struct ls_transform transform; /* of images */
    struct ls_sample_tensor tensor[LS_RECORD_TENSORS];
    int tensors;
    uint32_t tops;      /* the tensors of a sample that the layer has tops for, bit k is tensor k */
    int64_t largest[3]; /* see ls_dataset_largest_shape */
    uint32_t *records;  /* of the split, ascending; NULL: all */
    int64_t size;       /* samples */
    int64_t batch;      /* samples in a batch; 0: unknown */
    int64_t skip;       /* where epochs begin, see rand_skip */
    bool shuffle;
    uint64_t shuffle_key;
    struct ls_buckets *buckets; /* samples of one length come together; NULL: they do not */
    enum ls_last_batch last_batch;
    int prefetch;
    char *name;       /* of the source, for messages: its first path */
    uint64_t ends[2]; /* hashes of the first and the last record */
    _Atomic uint64_t reads;
    struct ls_cache *cache;       /* NULL: nothing is kept */
    struct ls_bad_records *bad;   /* NULL: they are errors */
    struct ls_oddities *oddities; /* NULL: nothing is looked for */
};

#endif
