/* What becomes of a picture before a net without a data layer sees it: what it was trained with.
 *
 * Who says it, each in place of those behind: the caller (mean, scale, resize); transform_param of
 * the Input layer; the snapshot; a data layer that the definition has for another phase. What the
 * net's input has no room for (another size than training made of pictures) is refused, and so is
 * a mean picture that is not there.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_PICTURE_RULE_H
#define LS_API_PICTURE_RULE_H

#include "data/transform.h"

struct lockstep_model;

struct ls_picture_rule {
    struct ls_transform transform; /* output[0] 0: not opened yet */
    bool whole; /* pictures are transformed as they are; else resized to transform.input first */
    bool interpolates; /* they are resized without antialiasing */
    bool rgb;          /* three channels are red, green, blue; else blue, green, red */
    bool known;        /* the weights, the definition or the caller say it */
};

/* Opens the rule of a model (model->rule), unless that has been done. */
int ls_picture_rule_open(struct lockstep_model *model, struct ls_error *error);
void ls_picture_rule_close(struct ls_picture_rule *rule);
/* The same for any model: where it has a data layer of pictures, that layer's transformation. *rule
 * has the rest, and a transformation that is not to be read. */
int ls_picture_rule_find(struct lockstep_model *model, const struct ls_transform **transform,
                         struct ls_picture_rule *rule, struct ls_error *error);
/* The mean of each number of a sample, padded and cut as pictures are; *mean is freed with ls_free.
 */
int ls_picture_rule_mean(const struct ls_transform *transform, float **mean,
                         struct ls_error *error);
/* The transform_param that counts, and whether a mean picture was subtracted, without looking at
 * files; NULL: nothing says it. */
const Lockstep__TransformationParameter *ls_picture_rule_param(const struct lockstep_model *model,
                                                               bool *has_mean);
/* Warns where the data layer of a model makes other numbers of pictures than the training did. */
void ls_picture_rule_compare(struct lockstep_model *model);
/* Warns where pictures are taken as they are because nothing says what training did with them. */
void ls_picture_rule_warn(struct lockstep_model *model);

#endif
