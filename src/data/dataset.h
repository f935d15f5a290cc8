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
#include "data/record.h"
#include "schema/definition.h"

struct ls_cache;
struct ls_dataset;
struct ls_reader; /* data/reader.h */

/* Opens the source of a Data layer and reads enough of it to know its shape. `augment` false leaves
 * random crops, mirrors, brightness and contrast out (centre crop), as the test phase does anyway.
 * The order of a shuffled epoch depends on the seed and the epoch only, not on the layer's name, so
 * that layers which read pictures and targets from two sources stay together; so does a split,
 * which does not even depend on the seed. Synthetic samples of the test phase are never those of
 * the train phase. */
int ls_dataset_open(const Lockstep__LayerParameter *layer, const struct ls_definition *definition,
                    Lockstep__Phase phase, uint64_t seed, bool augment, struct ls_dataset **dataset,
                    struct ls_error *error);
/* The same, where bad records are no failure, to look for them (data/check.h). */
int ls_dataset_open_forgiving(const Lockstep__LayerParameter *layer,
                              const struct ls_definition *definition, Lockstep__Phase phase,
                              uint64_t seed, struct ls_dataset **dataset, struct ls_error *error);
void ls_dataset_close(struct ls_dataset *dataset);

int64_t ls_dataset_size(const struct ls_dataset *dataset); /* samples after `split` */

/* A tensor of each sample: what a top of the layer gets. */
struct ls_sample_tensor {
    int source;            /* which tensor of a record it is made from */
    enum ls_dtype type;    /* LS_F32 or LS_I32 */
    struct ls_shape shape; /* of sample 0, after transformation; rank 0: one number */
};
/* How many tensors a sample has; the layer may have fewer tops. */
int ls_dataset_tensors(const struct ls_dataset *dataset);
const struct ls_sample_tensor *ls_dataset_tensor(const struct ls_dataset *dataset, int tensor);
/* The shape of a tensor in a sample whose image has this shape. */
void ls_dataset_tensor_shape(const struct ls_dataset *dataset, int tensor, const int64_t image[3],
                             struct ls_shape *shape);
/* Whether it is an image, which transform_param changes. */
bool ls_dataset_is_image(const struct ls_dataset *dataset, int tensor);
/* Bytes of a tensor in such a sample. */
size_t ls_dataset_tensor_bytes(const struct ls_dataset *dataset, int tensor,
                               const int64_t image[3]);

/* C, H, W of the image after transformation; where sizes vary, of record 0. Zeros where there are
 * no images. */
const int64_t *ls_dataset_shape(const struct ls_dataset *dataset);
/* Whether samples differ in height or width. */
bool ls_dataset_varies(const struct ls_dataset *dataset);
/* Where they do, a shape that no sample is larger than, in height or in width; else the shape. */
const int64_t *ls_dataset_largest_shape(const struct ls_dataset *dataset);
/* The shape of the image at an ordinal: a function of the definition and the data. Any thread may
 * call; nothing is read from files. */
int ls_dataset_sample_shape(const struct ls_dataset *dataset, int64_t ordinal, int64_t shape[3],
                            struct ls_error *error);
enum ls_last_batch ls_dataset_last_batch(const struct ls_dataset *dataset);
int ls_dataset_classes(const struct ls_dataset *dataset); /* class names known; else 0 */
const char *ls_dataset_class_name(const struct ls_dataset *dataset, int index);
/* The largest number in a tensor, where it is known without decoding all records (a database larger
 * than 1 GiB is not looked through); else -1. */
int64_t ls_dataset_largest(const struct ls_dataset *dataset, int tensor);
/* The cache of its records (data/cache.h), which other data sets may share; NULL: there is none. */
const struct ls_cache *ls_dataset_cache(const struct ls_dataset *dataset);
int ls_dataset_prefetch(const struct ls_dataset *dataset); /* batches to decode ahead */
bool ls_dataset_encoded(const struct ls_dataset *dataset); /* decoding takes long */
/* Bytes that each of its readers takes to decode records. */
size_t ls_dataset_decode_bytes(const struct ls_dataset *dataset);
/* What is known of the data from the start, as lines of text that begin with `prefix`: the kind of
 * source, how many records, their shape, and hashes of sizes, labels, class names, mean file, first
 * and last record. Equal for equal data, wherever they lie. */
void ls_dataset_describe(const struct ls_dataset *dataset, const char *prefix,
                         struct ls_text *text);
/* A hash of that. */
uint64_t ls_dataset_fingerprint(const struct ls_dataset *dataset);
/* The path that messages about the data begin with. */
const char *ls_dataset_name(const struct ls_dataset *dataset);
int64_t ls_dataset_records(const struct ls_dataset *dataset); /* of the source, before `split` */
/* "record 12 (dog/a.jpg)" */
void ls_dataset_name_record(const struct ls_dataset *dataset, int64_t record, struct ls_text *text);
/* on_bad_record: SKIP. */
bool ls_dataset_skips(const struct ls_dataset *dataset);
/* A layer that takes a tensor of a data set as labels, and which of them it knows. */
struct ls_label_rule {
    int tensor;
    char layer[104];
    int64_t classes;
    bool has_ignore;
    int ignore_label;
    bool (*takes)(const struct ls_label_rule *rule, float label); /* any thread */
};
/* Before anything is read: records with labels that break one of these rules are bad, where bad
 * records are skipped (else nothing happens). */
int ls_dataset_set_labels(struct ls_dataset *dataset, const struct ls_label_rule *rules,
                          size_t count, struct ls_error *error);
/* Whether layers take a number of a tensor of a sample for a label; LOCKSTEP_DATA: one of them does
 * not. Any thread. */
typedef int (*ls_label_judge)(void *user, int tensor, float label, struct ls_problem *problem);
/* The next of the first few bad records that were skipped, and what is wrong with it; false: there
 * is no further one by now. Any thread. */
bool ls_dataset_next_bad(const struct ls_dataset *dataset, int64_t *record, char *reason,
                         size_t size);
/* Records read so far by all readers; tests check that every sample is read once. */
uint64_t ls_dataset_reads(const struct ls_dataset *dataset);

#endif
