/* What the layers that read predictions of boxes share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_BOXES_H
#define LS_LAYERS_BOXES_H

#include "layers/common.h"

/* Checks bottoms 0, places [N, P 4], by class [N, P classes 4], 1, scores [N, P classes], and 2,
 * the top of PriorBox layers [1, 2, P 4]; sets P. */
int ls_boxes_check(const struct ls_layer *layer, struct ls_error *error, int64_t classes,
                   bool by_class, int64_t *priors);
/* Checks num_classes, a field of `message`. */
int ls_boxes_check_classes(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, bool given, uint32_t classes);
/* Checks that a bottom has rows of true boxes (docs/caffe.md, "Boxes"); sets how many a sample has.
 */
int ls_boxes_check_truths(const struct ls_layer *layer, struct ls_error *error, int bottom,
                          int64_t *objects);
/* Checks the field `biases` of `message`, widths and heights of `count` anchors. */
int ls_boxes_check_anchors(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, const float *sizes, size_t given, int64_t count);
/* Checks that a bottom has planes for so many anchors, with 5 numbers and `classes` each. */
int ls_boxes_check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom,
                          int64_t anchors, int64_t classes);
/* Tells that a field `side` is ignored where a bottom has other positions: forks go by the bottom,
 * too, since pictures of a training have several sizes there. */
void ls_boxes_note_side(const struct ls_layer *layer, int bottom, bool given, uint32_t side);
enum ls_box_code ls_boxes_code(Lockstep__PriorBoxParameter__CodeType code);

#endif
