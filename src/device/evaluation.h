/* Which of the boxes that a net has found are right, for host code and kernels alike. See
 * device/defined_evaluation.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_EVALUATION_H
#define LS_DEVICE_EVALUATION_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/boxes.h"
#include "device/label.h"
#include "device/yolo_boxes.h"
#include "ir/detection.h"

/* What was found of one sample; class -1: nothing, or what does not count. */
struct ls_found_box {
    struct ls_box box;
    float score;
    int32_t kind;
};

/* Of one sample: its true boxes, and of its picture the height and behind it the width; NULL: not
 * in pixels. */
struct ls_judge {
    const struct ls_evaluate_attr *attr;
    const float *truths;
    const int32_t *height;
};

/* What is no number is the lowest score; of equal scores the first one comes first. */
LS_HOST_DEVICE bool ls_found_is_before(const struct ls_found_box *found, int32_t a, int32_t b)
{
    const float x = found[a].score, y = found[b].score;
    if (x > y || (y != y && x == x))
        return true;
    if (y > x || (x != x && y == y))
        return false;
    return a < b;
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

LS_HOST_DEVICE double ls_limit_side(double x, double most)
{
    return fmax(fmin(x, most), 0.0);
}

/* Where a box of the net's input is in the picture itself, in pixels. */
LS_HOST_DEVICE struct ls_box ls_in_pixels(const struct ls_judge *it, struct ls_box box)
{
    const struct ls_picture_sizes *pictures = &it->attr->pictures;
    if (it->height == NULL)
        return box;
    const double height = it->height[0], width = it->height[1], aspect = width / height;
    double x = 0, y = 0; /* parts of the input's sides that are padding, at either end */
    if (pictures->fit == LS_FIT_CROPPED) {
        const struct ls_box cropped = {ls_limit_side(box.xmin * pictures->width, width),
                                       ls_limit_side(box.ymin * pictures->height, height),
                                       ls_limit_side(box.xmax * pictures->width, width),
                                       ls_limit_side(box.ymax * pictures->height, height)};
        return cropped;
    }
    if (pictures->fit == LS_FIT_PADDED && aspect > pictures->width / pictures->height)
        y = (pictures->height - pictures->width / aspect) / 2 / pictures->height;
    else if (pictures->fit == LS_FIT_PADDED)
        x = (pictures->width - pictures->height * aspect) / 2 / pictures->width;
    const struct ls_box whole = {ls_limit_side((box.xmin - x) / (1 - 2 * x), 1) * width,
                                 ls_limit_side((box.ymin - y) / (1 - 2 * y), 1) * height,
                                 ls_limit_side((box.xmax - x) / (1 - 2 * x), 1) * width,
                                 ls_limit_side((box.ymax - y) / (1 - 2 * y), 1) * height};
    return whole;
}

LS_HOST_DEVICE double ls_judge_overlap(const struct ls_judge *it, const struct ls_box *a,
                                       const struct ls_box *b)
{
    return ls_box_overlap(a, b, it->height != NULL ? 1 : 0);
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* The class of a row of truths, or -1. The first class of regions is 1, and they have no
 * background. */
LS_HOST_DEVICE int64_t ls_truth_class(const struct ls_evaluate_attr *attr, const float *row)
{
    const int64_t kind = ls_label_class(row[1] - (attr->anchors > 0 ? 1 : 0), attr->classes);
    return kind == attr->background ? -1 : kind;
}

/* Where true box g is counted, in the record's numbers by class: behind them where it has none; -1:
 * nowhere. */
LS_HOST_DEVICE int64_t ls_truth_place(const struct ls_evaluate_attr *attr, const float *row)
{
    const int64_t kind = ls_truth_class(attr, row);
    if (!ls_is_true_box(row))
        return -1;
    return kind < 0 ? attr->classes : attr->difficult || row[7] == 0 ? kind : -1;
}

/* The row of the true box of its class that a find overlaps most, the first of equals, if that is
 * enough; -1: there is none. */
LS_HOST_DEVICE int64_t ls_judge_truth(const struct ls_judge *it, const struct ls_found_box *found)
{
    const struct ls_evaluate_attr *attr = it->attr;
    const struct ls_box box = ls_in_pixels(it, found->box);
    double best = -1;
    int64_t chosen = -1;
    for (int64_t g = 0; g < attr->objects; g++) {
        const float *row = it->truths + g * LS_TRUE_BOX;
        if (!ls_is_true_box(row) || ls_truth_class(attr, row) != found->kind)
            continue;
        const struct ls_box truth = ls_in_pixels(it, ls_true_box(row));
        const double overlap = ls_judge_overlap(it, &box, &truth);
        if (overlap > best) {
            best = overlap;
            chosen = g;
        }
    }
    return best >= (double)attr->overlap ? chosen : -1;
}

/* Whether a find whose true box is row g is neither right nor wrong. */
LS_HOST_DEVICE bool ls_judge_skips(const struct ls_judge *it, int64_t g)
{
    return !it->attr->difficult && it->truths[g * LS_TRUE_BOX + 7] != 0;
}

/* A row of what was found. */
LS_HOST_DEVICE struct ls_found_box ls_found_read(const struct ls_evaluate_attr *attr,
                                                 const float *row)
{
    const int64_t kind = row[0] < 0 ? -1 : ls_label_class(row[1], attr->classes);
    const struct ls_found_box found = {ls_box_read(row + 3), row[2],
                                       kind == attr->background ? -1 : (int32_t)kind};
    return found;
}

/* ---- YOLO's regions -------------------------------------------------------------------------- */

/* What a cell predicts. */
LS_HOST_DEVICE struct ls_found_box ls_found_region(const struct ls_evaluate_attr *attr,
                                                   const struct ls_yolo_planes *planes,
                                                   const struct ls_yolo_cell *cell)
{
    const float *size = attr->anchor_sizes + 2 * (size_t)cell->anchor;
    const struct ls_yolo_box anchor = {0, 0, (double)size[0] / (double)planes->columns,
                                       (double)size[1] / (double)planes->rows};
    const struct ls_yolo_box box = ls_yolo_box_of(planes, cell, &anchor);
    const float *scores = planes->x + cell->at + LS_YOLO_CLASSES * cell->plane;
    int32_t best = 0;
    double sum = 0;
    for (int32_t c = 1; c < attr->classes; c++)
        best = scores[c * cell->plane] > scores[best * cell->plane] ? c : best;
    for (int32_t c = 0; c < attr->classes; c++)
        sum += ls_double_exp((double)scores[c * cell->plane] - (double)scores[best * cell->plane]);
    const double object = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_OBJECT));
    const double score = attr->score == LS_SCORE_OBJECT  ? object
                         : attr->score == LS_SCORE_CLASS ? 1 / sum
                                                         : object / sum;
    const struct ls_found_box found = {
        {box.x - box.w / 2, box.y - box.h / 2, box.x + box.w / 2, box.y + box.h / 2},
        (float)score,
        best};
    return found;
}

/* Whether a region has hardly any score. */
LS_HOST_DEVICE bool ls_found_is_faint(const struct ls_found_box *found)
{
    return found->score < 0.005F;
}

#endif
