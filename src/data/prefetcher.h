/* A prefetcher: decodes micro-batches ahead of the workers, in threads of its own.
 *
 * The micro-batches of all updates form one sequence: update by update, batch by batch, micro-batch
 * by micro-batch. Workers take them by number within the update; each is fetched once. A prefetcher
 * may be for a share of each batch only: the others' micro-batches are numbered, too.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PREFETCHER_H
#define LS_DATA_PREFETCHER_H

#include "base/partition.h"
#include "base/pinning.h"
#include "data/dataset.h"
#include "data/digest.h"

struct ls_prefetcher;
struct ls_ring_buffer;

/* A micro-batch in memory. */
struct ls_prefetch_item {
    int64_t update;  /* of which update */
    int index;       /* which micro-batch of the update, over all its batches */
    int64_t ordinal; /* of the first sample */
    int64_t samples;
    int64_t shape[3]; /* of each image of the data set whose sizes vary; zeros if none does */
    /* By input: `samples` samples each, or those of its data set's own batch (ls_batching_of);
     * 64-byte aligned. */
    void **input;
    struct ls_ring_buffer *buffer; /* where it lies; for the prefetcher only */
    /* By data set: what was read. Of the last micro-batch of an epoch that leaves samples out
     * (LS_LAST_DROP) with those, so that every epoch has all records. */
    struct ls_digests *digests;
};

/* Memory for decoded samples that prefetchers share of which one at a time is read from, such as
 * those of training and testing. All zeros is empty; it outlives its prefetchers. */
struct ls_prefetch_memory {
    struct ls_pinned own;
    size_t bytes;
    struct ls_prefetcher *user; /* the prefetcher whose seek was the last */
};
void ls_prefetch_memory_free(struct ls_prefetch_memory *room);

struct ls_prefetcher_options {
    struct ls_dataset **datasets; /* all Data layers of the net */
    int dataset_count;
    /* Which inputs an item has, in order: for each the data set, and which tensor of its samples.
     */
    const int (*inputs)[2];
    int input_count;
    /* By input, in how many parts a sample lies (struct ls_sample_place); NULL: in one each. */
    const size_t *runs;
    /* (optional) By data set: hashes of its records by their places, where these lie in a device's
     * memory. The inputs of an item are draws then (ir/sample_recipe.h). NULL: they are samples.
     */
    const uint64_t *const *hashes;
    const bool *rounded;         /* by input: fp32 that becomes bf16; NULL: none does */
    struct ls_batching batching; /* with size_of, if a data set's sizes vary */
    /* Only these micro-batches of each batch are decoded, and may be taken. Any of them: those that
     * are wanted (ls_prefetcher_request), in that order. */
    struct ls_share share;
    int64_t updates_end; /* where the sequence ends (test: batches of one pass); INT64_MAX */
    int threads;         /* decoding threads; 0: a default for the source */
    size_t memory; /* bytes to decode ahead at most; 0: a default; at least 2 items are kept */
    int held;      /* items that takers still hold when they take the next one */
    const struct ls_pinning *pinning; /* (optional) for decoded samples */
    /* (optional) Where to decode to. A seek takes it from the prefetcher that used it last, which
     * loses what it had decoded, and needs a seek of its own before it is read from again. */
    struct ls_prefetch_memory *room;
};
int ls_prefetcher_open(const struct ls_prefetcher_options *options,
                       struct ls_prefetcher **prefetcher, struct ls_error *error);
void ls_prefetcher_close(struct ls_prefetcher *prefetcher);
/* What a prefetcher with these options will take in memory, without opening it: its decoded
 * samples, which may lie in a room that is shared, and the threads that decode. */
int ls_prefetcher_bytes(const struct ls_prefetcher_options *options, size_t *samples,
                        size_t *threads, struct ls_error *error);

/* Goes to the start of update `update` (forward or back) and begins to decode there; before the
 * first seek nothing is decoded. Items of the earlier position are dropped, and none may be held.
 * Called at the start, after a resume, and to repeat an update. */
void ls_prefetcher_seek(struct ls_prefetcher *prefetcher, int64_t update);
/* For a prefetcher of any micro-batches: decodes this one ahead, because it will be taken. Does
 * nothing where there is no such micro-batch, or it has been requested. A seek drops all requests.
 * Any thread. */
void ls_prefetcher_request(struct ls_prefetcher *prefetcher, int64_t update, int index);
/* Waits until micro-batch `index` of update `update` is decoded and hands it out; release it when
 * it is no longer read. Items must be taken without gaps: what is never taken blocks the sequence
 * (or a part of the memory, where it was wanted). Any thread may call. A source's failure is
 * reported to the taker of the item concerned; a size that cannot be read, to the takers of items
 * of that batch or of a later one. */
int ls_prefetcher_take(struct ls_prefetcher *prefetcher, int64_t update, int index,
                       const struct ls_prefetch_item **item, struct ls_error *error);
void ls_prefetcher_release(struct ls_prefetcher *prefetcher, const struct ls_prefetch_item *item);

#endif
