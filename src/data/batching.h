/* Which samples an update sees: a function of the update's number, nothing else.
 *
 * The samples of a data source are visited in epochs; the ordinal of a visit is epoch x N +
 * position. Batches are runs of consecutive ordinals; each is cut into micro-batches by itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_BATCHING_H
#define LS_DATA_BATCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum ls_last_batch {
    LS_LAST_WRAP,    /* a batch goes on into the next epoch (training's default, as in Caffe) */
    LS_LAST_PARTIAL, /* the update ends with the epoch, with its true count (testing's default) */
    LS_LAST_DROP     /* samples that do not fill a batch are left out of the epoch */
};

struct ls_batching {
    int64_t samples;     /* N; INT64_MAX where there is no end (Input, DummyData) */
    int64_t batch;       /* samples per batch */
    int64_t micro_batch; /* at most this many samples per micro-batch */
    int iter_size;       /* batches per update */
    enum ls_last_batch last;
};

struct ls_batch {
    int64_t ordinal; /* of its first sample */
    int64_t count;   /* samples, >= 1 */
};

/* Refuses what has no updates: counts below one, no samples, DROP with too few of them. `place` is
 * for the message. */
int ls_batching_check(const struct ls_batching *batching, const char *place,
                      struct ls_error *error);

/* The batches of update `update` (0, 1, ...), at most iter_size of them, to `batches`; how many.
 * With PARTIAL and DROP the last update of an epoch has the batches that remain, which may be fewer
 * than iter_size. */
int ls_batching_update(const struct ls_batching *batching, int64_t update,
                       struct ls_batch *batches);
/* Updates that an epoch takes: exact for PARTIAL and DROP, a fraction for WRAP. */
double ls_batching_updates_per_epoch(const struct ls_batching *batching);

/* n = ceil(count / micro_batch) micro-batches; micro-batch i holds samples
 * [floor(i count / n), floor((i + 1) count / n)) of the batch. */
int64_t ls_micro_batch_count(int64_t count, int64_t micro_batch);
struct ls_batch ls_micro_batch(const struct ls_batch *batch, int64_t n, int64_t i);

/* The default of micro_batch: an eighth of the batch, at least 1 and at most 16. */
int64_t ls_micro_batch_default(int64_t batch);

#endif
