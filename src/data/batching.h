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
    /* Above 0: micro-batches are made of whole groups of so many samples, one at least. */
    int64_t group;
    /* Where data differ in size from sample to sample: how large they are; any thread may call.
     * NULL: all are alike. */
    int (*size_of)(void *user, int64_t ordinal, int64_t shape[3], struct ls_error *error);
    void *user;
    /* By data set: the samples of a batch and of an epoch that are its own, where batches of data
     * sets differ in size. Micro-batches are whole batches then. NULL: all are as above. */
    const struct ls_own_batch *own;
};

struct ls_own_batch {
    int64_t batch, samples;
};

struct ls_batch {
    int64_t ordinal; /* of its first sample */
    int64_t count;   /* samples, >= 1 */
};

/* A micro-batch: consecutive samples of one batch. */
struct ls_micro {
    int64_t ordinal, count;
    int64_t shape[3]; /* of each sample's data; zeros where sizes do not differ */
};

/* Refuses what has no updates: counts below one, no samples, DROP with too few of them; groups of
 * samples that differ in size; more than 2^20 micro-batches in a batch. `place` is for the message.
 */
int ls_batching_check(const struct ls_batching *batching, const char *place,
                      struct ls_error *error);

/* The batches of update `update` (0, 1, ...), at most iter_size of them, to `batches`; how many.
 * With PARTIAL and DROP the last update of an epoch has the batches that remain, which may be fewer
 * than iter_size. */
int ls_batching_update(const struct ls_batching *batching, int64_t update,
                       struct ls_batch *batches);
/* How many samples that no batch has follow ordinal `end`, the end of a batch: those that DROP
 * leaves out at the end of an epoch; else 0. */
int64_t ls_batching_left_out(const struct ls_batching *batching, int64_t end);
/* What data set `dataset` brings to a micro-batch with these samples: as many samples, or, where
 * its batches have a size of their own, its batch of the same number. How many samples that no
 * batch has follow those. */
int64_t ls_batching_of(const struct ls_batching *batching, int dataset, const struct ls_batch *of,
                       struct ls_batch *its);
/* Updates that an epoch takes: exact for PARTIAL and DROP, a fraction for WRAP. */
double ls_batching_updates_per_epoch(const struct ls_batching *batching);

/* The most micro-batches that a batch of `count` samples can be cut into, and the most samples that
 * one of them can have. */
int64_t ls_batching_most(const struct ls_batching *batching, int64_t count);
int64_t ls_batching_largest(const struct ls_batching *batching);
/* Cuts a batch, as evenly as possible: n = ceil(count / micro_batch) micro-batches, micro-batch i
 * holds samples [floor(i count / n), floor((i + 1) count / n)). With `group`, the groups of the
 * batch (see ls_batching_groups) are cut in the same way into runs of max(1, micro_batch / group)
 * groups at most. With `size_of`, each run of samples of equal size is cut by itself. `micro` has
 * room for ls_batching_most. Fails only where a size cannot be read. */
int ls_batching_cut(const struct ls_batching *batching, const struct ls_batch *batch,
                    struct ls_micro *micro, int64_t *count, struct ls_error *error);

/* Groups of a batch: ceil(count / group) even ones, group j holds samples [floor(j count / n),
 * floor((j + 1) count / n)); group 0: one group, the batch. */
int64_t ls_batching_groups(int64_t count, int64_t group);
/* The first sample of part i when `count` things are cut into n even parts: floor(i count / n). */
int64_t ls_even_cut(int64_t count, int64_t n, int64_t i);

/* The default of micro_batch: a batch is cut into eight even parts for each 128 samples that it
 * begins, so that 2, 4 or 8 workers have equal work: ceil(batch / (8 ceil(batch / 128))). */
int64_t ls_micro_batch_default(int64_t batch);

#endif
