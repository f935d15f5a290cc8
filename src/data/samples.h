/* What the samples of a data set are: their tensors, of which shape, from which record.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_SAMPLES_H
#define LS_DATA_SAMPLES_H

#include "data/dataset.h"
#include "data/order.h"
#include "data/record.h"

/* A tensor of each sample: what a top of the layer gets. */
struct ls_sample_tensor {
    int source;            /* which tensor of a record it is made from */
    enum ls_dtype type;    /* LS_F32 or LS_I32 */
    struct ls_shape shape; /* of sample 0, after transformation; rank 0: one number */
    bool finite;           /* a record with an infinity is bad, as one with NaN is */
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

/* C, H, W of the image after transformation; where sizes vary, of record 0; of sequences 1, steps,
 * 1. Zeros where there are neither. */
const int64_t *ls_dataset_shape(const struct ls_dataset *dataset);
/* Whether samples differ in height or width. */
bool ls_dataset_varies(const struct ls_dataset *dataset);
/* Where they do, a shape that no sample is larger than, in height or in width; else the shape. */
const int64_t *ls_dataset_largest_shape(const struct ls_dataset *dataset);
/* The shape of the image at an ordinal: a function of the definition and the data. Any thread may
 * call; nothing is read from files. */
int ls_dataset_sample_shape(const struct ls_dataset *dataset, int64_t ordinal, int64_t shape[3],
                            struct ls_error *error);

/* ---- For the files of data sets ---- */

/* The place of an ordinal in the order of the split's records. `order` is the caller's: that of the
 * epoch which it asked for last, or zeros. */
int64_t ls_dataset_place_of(const struct ls_dataset *dataset, int64_t ordinal,
                            struct ls_order *order);
/* The record at a place. */
int64_t ls_dataset_place(const struct ls_dataset *dataset, int64_t place);
/* The first record from a place on, around the end, that is not known to be bad: the one that is
 * read, once all up to it have been. */
int64_t ls_dataset_stand_in(const struct ls_dataset *dataset, int64_t place);
/* Fails with a problem of a record, naming source and record. */
int ls_dataset_fail_record(const struct ls_dataset *dataset, int64_t index,
                           const struct ls_problem *problem, struct ls_error *error);
/* Makes a tensor of a sample, which no transformation changes, of a record. It is written to `out`,
 * or only checked (NULL). LOCKSTEP_DATA where the tensor's type does not have one of the numbers.
 */
int ls_dataset_convert(const struct ls_dataset *dataset, int tensor, const struct ls_record *record,
                       void *out, struct ls_problem *problem);
/* From now on a record with an infinity in this tensor is bad. */
void ls_dataset_refuse_infinities(struct ls_dataset *dataset, int tensor);
/* Finds the largest shape, after all else is known. */
int ls_dataset_measure(struct ls_dataset *dataset, struct ls_error *error);

#endif
