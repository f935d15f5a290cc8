/* What happens to a record before the net sees it: Caffe's transformations and Lockstep's own.
 *
 * Before all else come colours, canvas, part and size by the fields of SSD's fork
 * (data/augment.h). The order of operations then, each only if it is asked for:
 *   1. pad         `pad` pixels on each side: zeros, or the picture mirrored at its border pixels
 *   2. crop        a square of crop_size; its place is random in training, the centre else
 *   3. mirror      left to right, for half of the samples; in training only
 *   4. brightness  + a uniform number of [-b, b]; in training only
 *   5. contrast    x -> (x - m) f + m with m the mean of the channel, f uniform; in training only
 *   6. mean        x - mean: of the file, at the pixel's place before the crop (the mean picture is
 *                  padded as the picture is), or of the channel
 *   7. scale       x scale
 *   8. standardize (x - m) / max(s, 1 / sqrt(n)): m, s mean and standard deviation of the n numbers
 *                  of the sample, as TensorFlow's CIFAR-10 tutorial trains with
 * Caffe has 2, 3, 6 and 7, in this order, and also mirrors in the test phase.
 *
 * Only the image of a record, and maps and boxes of it, are transformed. A map goes through 1, 2
 * and 3 with its picture; zeros are `label_pad` there. Where records differ in size and there is no
 * crop, samples differ as they do.
 *
 * Random choices are functions of (seed, layer name, ordinal): draw 0 mirrors, 1 and 2 place the
 * crop, 3 is the brightness, 4 the contrast, whichever of them are in use; data/augment.c has those
 * from 8 on.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_TRANSFORM_H
#define LS_DATA_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/augment.h"
#include "data/source.h"
#include "ir/sample_recipe.h"
#include "schema/definition.h"

struct ls_transform {
    struct ls_augment before;
    int64_t input[3];  /* of the first record, when that is done */
    int64_t output[3]; /* of every sample; where records vary and are not cropped, of the first */
    bool varies;       /* records may have other heights and widths than the first */
    int crop, pad;
    float label_pad; /* what is put around a label map */
    bool reflect, standardize;
    bool mirror, augment; /* augment: crops are random, and mirror, brightness, contrast happen */
    float brightness, contrast_lower, contrast_upper;
    float scale;
    float *mean;         /* a picture of input's shape, or NULL */
    float *channel_mean; /* one for each channel, or NULL */
    uint64_t key;
    /* Where nothing is random: 0 is the centre; 1 to LS_VIEWS are the corners (top left, top right,
     * bottom left, bottom right) and the centre, and the same mirrored. */
    int view;
};
enum { LS_VIEWS = 10 };

/* What a transformation depends on. */
struct ls_transform_options {
    const Lockstep__TransformationParameter *param; /* NULL: nothing is asked for */
    const struct ls_definition *definition;         /* for places and relative paths */
    const char *layer;                              /* name */
    uint64_t seed;
    bool augment;      /* the train phase, and `plain` is not asked for */
    int64_t record[3]; /* shape of the first record */
    bool varies;       /* the records' heights and widths differ */
    uint32_t label_pad;
    const float *mean;     /* a mean picture in place of a file; NULL: there is none */
    int64_t mean_shape[3]; /* its shape */
    const Lockstep__AnnotatedDataParameter *annotated; /* (optional) */
    bool boxes, maps, floats; /* records have such; floats: their pixels are not of 8 bits */
};
/* Checks the parameters against the records and reads the mean file. All problems are reported:
 * LOCKSTEP_DEFINITION for parameters, LOCKSTEP_DATA for the file. Free also after a failure. */
int ls_transform_open(const struct ls_transform_options *options, struct ls_transform *transform,
                      struct ls_error *error);
void ls_transform_free(struct ls_transform *transform);

/* Its part for what comes first; free it also after a failure. */
int ls_augment_open(const struct ls_transform_options *options, struct ls_augment *augment,
                    struct ls_error *error);

/* The shape that a record of shape `record` becomes. LOCKSTEP_DATA where there is none. */
int ls_transform_shape(const struct ls_transform *transform, const int64_t record[3],
                       int64_t shape[3], struct ls_problem *problem);

/* Writes the sample (of that shape) that a record's image becomes at an ordinal. `boxes` are those
 * of the record; NULL: it has none. `augment` false: centre crop, nothing random. `room` is the
 * caller's, used again and again. LOCKSTEP_DATA for a record of another shape. */
int ls_transform_apply(const struct ls_transform *transform, const struct ls_record_tensor *image,
                       const struct ls_record_tensor *boxes, uint64_t ordinal, bool augment,
                       struct ls_augment_room *room, float *sample, struct ls_problem *problem);

/* For records in a device's memory. Whether a recipe says all that becomes of an image; that recipe
 * without what is the micro-batch's (`bytes`, `runs`, `rounded`), for records of fp32 or of bytes;
 * and what the random draws of a sample come to, `record` left as it is. */
bool ls_transform_has_recipe(const struct ls_transform *transform);
void ls_transform_recipe(const struct ls_transform *transform, bool floats,
                         struct ls_sample_recipe *recipe);
void ls_transform_draw(const struct ls_transform *transform, uint64_t ordinal,
                       struct ls_sample_draw *draw);

/* Writes what the boxes of a record become, as many rows as it has (data/annotation.h), the first
 * number of each of which is `item`. Only the shape of the image counts. */
int ls_transform_boxes(const struct ls_transform *transform, const struct ls_record_tensor *image,
                       const struct ls_record_tensor *boxes, uint64_t ordinal, bool augment,
                       float item, float *out, struct ls_problem *problem);

/* Writes what a map of the record becomes, height x width of the sample's shape: the pixel of the
 * map that belongs to the pixel of the sample. */
int ls_transform_map(const struct ls_transform *transform, const struct ls_record_tensor *map,
                     uint64_t ordinal, bool augment, float *out, struct ls_problem *problem);

#endif
