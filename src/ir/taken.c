/* What ops take numbers for. See ir/taken.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/taken.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ir/op_type.h"

enum { BOX = 8 }; /* numbers of a row: picture, class, instance, corners, difficult */

static void take_labels(const struct ls_op *op, struct ls_taken *taken)
{
    struct ls_op_labels labels;
    const bool rows = op->kind == LS_OP_EMBED || op->kind == LS_OP_EMBED_BAG;
    ls_op_type(op->kind)->labels(op, &labels);
    *taken = (struct ls_taken){.kind = rows ? LS_TAKEN_ROWS : LS_TAKEN_CLASSES,
                               .input = 1,
                               .count = labels.classes,
                               .has_ignore = labels.has_ignore,
                               .ignore_label = labels.ignore_label};
}

/* Boxes of classes 0 to classes - 1, one of which may be the background. */
static void take_boxes(int input, int64_t classes, int background, struct ls_taken *taken)
{
    *taken = (struct ls_taken){
        .kind = LS_TAKEN_BOXES, .input = input, .count = classes, .background = background};
}

/* The same of YOLO's layers, whose first class is 1. */
static void take_yolo_boxes(int64_t classes, struct ls_taken *taken)
{
    take_boxes(1, classes, -1, taken);
    taken->first = 1;
}

bool ls_taken_by(const struct ls_op *op, struct ls_taken *taken)
{
    const struct ls_multibox_attr *multibox = &op->attr.multibox;
    const struct ls_loss_attr *loss = &op->attr.loss;
    if (ls_op_type(op->kind)->labels != NULL) {
        take_labels(op, taken);
        return taken->count > 0;
    }
    switch (op->kind) {
    case LS_OP_SIGMOID_LOSS:
        *taken = (struct ls_taken){.kind = LS_TAKEN_SHARES,
                                   .input = 1,
                                   .has_ignore = loss->has_ignore,
                                   .ignore_label = loss->ignore_label};
        return true;
    case LS_OP_CONTRASTIVE_LOSS:
        *taken = (struct ls_taken){.kind = LS_TAKEN_FLAGS, .input = 2};
        return true;
    case LS_OP_MULTIBOX_LOSS:
        take_boxes(3, multibox->agnostic ? INT32_MAX : multibox->classes, multibox->background,
                   taken);
        return true;
    case LS_OP_REGION_LOSS:
        take_yolo_boxes(op->attr.region.classes, taken);
        return true;
    case LS_OP_YOLO_LOSS:
        take_yolo_boxes(op->attr.yolo.classes, taken);
        return true;
    case LS_OP_DETECTION_EVALUATE:
        take_boxes(1, op->attr.evaluate.classes, op->attr.evaluate.background, taken);
        return true;
    case LS_OP_REGION_EVALUATE:
        take_yolo_boxes(op->attr.evaluate.classes, taken);
        return true;
    default:
        return false;
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

bool ls_taken_ignores(const struct ls_taken *taken, float number)
{
    return taken->has_ignore && trunc((double)number) == (double)taken->ignore_label;
}

static bool is_class(const struct ls_taken *taken, float number)
{
    const double class = (double)number - (double)taken->first;
    return class >= 0 && class < (double)taken->count && number == truncf(number);
}

static bool is_box(const float *row)
{
    return row[0] >= 0 && row[1] >= 0;
}

/* Whether a box lies in another place than the picture, whose sides are 0 to 1, or goes far beyond
 * it: as boxes do whose corners are pixels. */
static bool is_elsewhere(const float *row)
{
    const float left = row[3], top = row[4], right = row[5], bottom = row[6];
    return left >= 1 || top >= 1 || right <= 0 || bottom <= 0 || left < -1 || top < -1 ||
           right > 2 || bottom > 2;
}

int64_t ls_taken_find_bad(const struct ls_taken *taken, const float *numbers, int64_t count)
{
    switch (taken->kind) {
    case LS_TAKEN_CLASSES:
    case LS_TAKEN_ROWS:
        for (int64_t i = 0; i < count; i++)
            if (!is_class(taken, numbers[i]) && !ls_taken_ignores(taken, numbers[i]))
                return i;
        return -1;
    case LS_TAKEN_BOXES:
        for (int64_t i = 0; i + BOX <= count; i += BOX)
            if (is_box(numbers + i) && !is_class(taken, numbers[i + 1]))
                return i;
        return -1;
    default:
        return -1;
    }
}

/* Numbers outside of 0 to 1: counted first, which takes hardly any time where there is none. */
static int64_t find_outside(const struct ls_taken *taken, const float *numbers, int64_t count)
{
    int64_t outside = 0;
    for (int64_t i = 0; i < count; i++)
        outside += !(numbers[i] >= 0 && numbers[i] <= 1);
    for (int64_t i = 0; i < count && outside > 0; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1) && !ls_taken_ignores(taken, numbers[i]))
            return i;
    return -1;
}

bool ls_taken_may_be_odd(const struct ls_taken *taken)
{
    return taken->kind != LS_TAKEN_CLASSES && taken->kind != LS_TAKEN_ROWS;
}

int64_t ls_taken_find_odd(const struct ls_taken *taken, const float *numbers, int64_t count)
{
    switch (taken->kind) {
    case LS_TAKEN_SHARES:
        return find_outside(taken, numbers, count);
    case LS_TAKEN_FLAGS:
        for (int64_t i = 0; i < count; i++)
            if (numbers[i] != 0 && numbers[i] != 1)
                return i;
        return -1;
    case LS_TAKEN_BOXES:
        for (int64_t i = 0; i + BOX <= count; i += BOX)
            if (is_box(numbers + i) &&
                (is_elsewhere(numbers + i) || numbers[i + 1] == (float)taken->background))
                return i;
        return -1;
    default:
        return -1;
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void tell_box(const struct ls_taken *taken, const float *row, int64_t index,
                     const char *layer, char *text, size_t size)
{
    const long long box = (long long)(index / BOX + 1);
    const double class = (double)row[1];
    if (!is_class(taken, row[1]))
        snprintf(text, size,
                 "box %lld has class %.9g, and those of layer '%.100s' are %" PRId64 " to %" PRId64,
                 box, class, layer, taken->first == 0 && taken->background == 0 ? 1 : taken->first,
                 taken->first + taken->count - 1);
    else if (row[1] == (float)taken->background)
        snprintf(text, size, "box %lld has class %.9g, which is the background of layer '%.100s'",
                 box, class, layer);
    else
        snprintf(text, size,
                 "box %lld (%.6g, %.6g to %.6g, %.6g) is outside of the picture, whose sides are 0 "
                 "to 1 for layer '%.100s' (are these pixels?)",
                 box, (double)row[3], (double)row[4], (double)row[5], (double)row[6], layer);
}

void ls_taken_tell(const struct ls_taken *taken, const float *numbers, int64_t index,
                   const char *layer, char *text, size_t size)
{
    const double number = (double)numbers[0];
    switch (taken->kind) {
    case LS_TAKEN_CLASSES:
    case LS_TAKEN_ROWS:
        snprintf(text, size, "%s %.9g is none of the %" PRId64 " %s of layer '%.100s'",
                 taken->kind == LS_TAKEN_ROWS ? "number" : "label", number, taken->count,
                 taken->kind == LS_TAKEN_ROWS ? "rows" : "classes", layer);
        break;
    case LS_TAKEN_BOXES:
        tell_box(taken, numbers, index, layer, text, size);
        break;
    case LS_TAKEN_SHARES:
        snprintf(text, size,
                 "target %.9g is outside of 0 to 1, so that the loss of layer '%.100s' can fall "
                 "without end",
                 number, layer);
        break;
    case LS_TAKEN_FLAGS:
        snprintf(text, size,
                 "flag %.9g is neither 0 nor 1; layer '%.100s' takes it for 1, which is 'similar'",
                 number, layer);
        break;
    }
}
