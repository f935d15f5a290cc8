/* Data sets whose records lie in a device's memory: micro-batches are made there, and what is
 * decoded ahead are draws, which say for each sample which record it is made from, and what its
 * random draws came to. Records are digested once, when they are brought there.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_RESIDENT_H
#define LS_DATA_RESIDENT_H

#include "data/dataset.h"
#include "data/reader.h"
#include "ir/sample_recipe.h"

/* Why samples cannot be made from records that lie there, in words that follow "because"; NULL:
 * they can. All records must be alike, none is skipped as bad, and of the tensors that are wanted
 * (bit k: tensor k of a sample) those of images are only cut out, mirrored, lit and normalized, and
 * the others are as they are. */
const char *ls_dataset_stays_away(const struct ls_dataset *dataset, uint32_t wanted);

/* The recipe of a tensor, without what is the micro-batch's; and the numbers of its mean, in the
 * host's memory (NULL: none). */
void ls_dataset_recipe(const struct ls_dataset *dataset, int tensor,
                       struct ls_sample_recipe *recipe);
const float *ls_dataset_mean(const struct ls_dataset *dataset, size_t *numbers);

/* Reads the record at a place of the split: to out[k] the bytes of the recipe of each tensor k that
 * is wanted (not NULL), and its hash. */
int ls_reader_load(struct ls_reader *reader, int64_t place, void *const *out, uint64_t *hash,
                   struct ls_error *error);
/* The draw of a sample's tensors, and the number of its record. */
void ls_reader_draw(struct ls_reader *reader, int64_t ordinal, struct ls_sample_draw *draw,
                    int64_t *record);

#endif
