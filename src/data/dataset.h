/* A data set: what one Data layer reads, in one phase: source, split, order, transformation.
 *
 * Everything about sample `ordinal` (which record, which crop, mirrored or not) is a function of
 * the definition, the seed and the ordinal; any thread may fetch any ordinal at any time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_DATASET_H
#define LS_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "data/batching.h"
#include "data/class_names.h"
#include "schema/definition.h"

struct ls_cache;
struct ls_dataset;
struct ls_transform; /* data/transform.h */

struct ls_dataset_wishes {
    /* Random crops, mirrors, brightness and contrast (false: centre crop), which the test phase
     * never has. */
    bool augment;
    bool forgiving; /* bad records are no failure, to look for them (data/check.h) */
    const struct ls_class_names *known; /* what the training calls its classes; NULL: not known */
};

/* Opens the source of a Data layer and reads enough of it to know its shape.
 * The order of a shuffled epoch depends on the seed and the epoch only, not on the layer's name, so
 * that layers which read pictures and targets from two sources stay together; so does a split,
 * which does not even depend on the seed. Synthetic samples of the test phase are never those of
 * the train phase. Its classes get the numbers that they are known by. */
int ls_dataset_open(const Lockstep__LayerParameter *layer, const struct ls_definition *definition,
                    Lockstep__Phase phase, uint64_t seed, const struct ls_dataset_wishes *wishes,
                    struct ls_dataset **dataset, struct ls_error *error);
void ls_dataset_close(struct ls_dataset *dataset);

int64_t ls_dataset_size(const struct ls_dataset *dataset); /* samples after `split` */

enum ls_last_batch ls_dataset_last_batch(const struct ls_dataset *dataset);
int ls_dataset_classes(const struct ls_dataset *dataset); /* class names known; else 0 */
/* Whether its class names are a vocabulary: what its ids stand for. */
bool ls_dataset_has_vocabulary(const struct ls_dataset *dataset);
/* All of them, which live as long as the data set. */
struct ls_class_names ls_dataset_class_names(const struct ls_dataset *dataset);
/* LOCKSTEP_DATA if it has names, and they contradict the known ones (data/class_names.h). */
int ls_dataset_check_names(const struct ls_dataset *dataset, const struct ls_class_names *known,
                           struct ls_error *error);
/* What its users should hear once (pictures that were passed over); NULL: nothing. */
const char *ls_dataset_warning(const struct ls_dataset *dataset);
/* How many streams go on from batch to batch; 0: there are none. */
int64_t ls_dataset_streams(const struct ls_dataset *dataset);
const char *ls_dataset_class_name(const struct ls_dataset *dataset, int index);
/* The largest number in a tensor, where it is known without decoding all records (a database larger
 * than 1 GiB is not looked through); else -1. */
int64_t ls_dataset_largest(const struct ls_dataset *dataset, int tensor);
/* The cache of its records (data/cache.h), which other data sets may share; NULL: there is none. */
const struct ls_cache *ls_dataset_cache(const struct ls_dataset *dataset);
/* What becomes of its pictures, whose size is transform->input; NULL: records have none, or are
 * without their mean already (WINDOWS). Whether they are resized as OpenCV does it, and whether
 * channels are red, green, blue. */
const struct ls_transform *ls_dataset_transform(const struct ls_dataset *dataset,
                                                bool *interpolates, bool *rgb);
/* The mean picture that is subtracted from records, and its shape; NULL: there is none. */
const float *ls_dataset_mean_picture(const struct ls_dataset *dataset, int64_t shape[3]);
int ls_dataset_prefetch(const struct ls_dataset *dataset); /* batches to decode ahead */
bool ls_dataset_encoded(const struct ls_dataset *dataset); /* decoding takes long */
/* Bytes that each of its readers takes to decode records. */
size_t ls_dataset_decode_bytes(const struct ls_dataset *dataset);
/* The path that messages about the data begin with. */
const char *ls_dataset_name(const struct ls_dataset *dataset);
int64_t ls_dataset_records(const struct ls_dataset *dataset); /* of the source, before `split` */
/* "record 12 (dog/a.jpg)" */
void ls_dataset_name_record(const struct ls_dataset *dataset, int64_t record, struct ls_text *text);
/* Records read so far by all readers; tests check that every sample is read once. */
uint64_t ls_dataset_reads(const struct ls_dataset *dataset);

#endif
