/* Items: what micro-batches hold in memory, how large that is, and how it is decoded.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_ITEM_H
#define LS_DATA_ITEM_H

#include "data/prefetcher.h"

struct ls_reader; /* data/reader.h */

/* What the items of a prefetcher have. */
struct ls_item_layout {
    struct ls_dataset **datasets;
    int dataset_count;
    int (*inputs)[2]; /* by input: the data set, and which tensor of its samples */
    size_t *runs;     /* by input: in how many parts a sample lies (struct ls_sample_place) */
    bool *rounded;    /* by input: fp32 that becomes bf16 */
    const uint64_t **hashes; /* by data set, as in struct ls_prefetcher_options */
    int input_count;
    struct ls_batching batching;
};

/* Copies what a prefetcher's options say. Free it also after a failure. */
int ls_item_layout_init(const struct ls_prefetcher_options *options, struct ls_item_layout *layout,
                        struct ls_error *error);
void ls_item_layout_free(struct ls_item_layout *layout);

/* Bytes of an input in an item with `samples` samples; `shape` is that of an item. Fails where no
 * memory could hold it. */
int ls_item_input_bytes(const struct ls_item_layout *layout, int input, int64_t samples,
                        const int64_t shape[3], size_t *bytes, struct ls_error *error);
/* Bytes of a sample as its data set has it, for all inputs that are rounded: where they are until
 * then. */
size_t ls_item_rounded_bytes(const struct ls_item_layout *layout);
/* Bytes of the largest item that is known of, each input aligned to 64. */
int ls_item_largest(const struct ls_item_layout *layout, size_t *bytes, struct ls_error *error);

/* Decodes the samples of an item into its inputs, and notes what was read in its digests; `readers`
 * by data set. What no batch has is hashed. */
int ls_item_decode(const struct ls_item_layout *layout, struct ls_reader *const *readers,
                   const struct ls_prefetch_item *item, struct ls_error *error);

#endif
