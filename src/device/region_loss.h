/* What a cell learns by YOLOv2's loss of regions, for host code and kernels alike: see
 * layers/region_loss.c, which has the formulas, and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_REGION_LOSS_H
#define LS_DEVICE_REGION_LOSS_H

#include <math.h>

#include "device/yolo_boxes.h"
#include "ir/detection.h"

/* One sample: planes of predictions, what is true of it, and what is learned from that. */
struct ls_region_sample {
    const struct ls_region_attr *attr;
    struct ls_yolo_planes planes;
    const float *truths;
    float *slope;
};

LS_HOST_DEVICE float *ls_region_slope(const struct ls_region_sample *sample,
                                      const struct ls_yolo_cell *cell, int64_t k)
{
    return &sample->slope[cell->at + k * cell->plane];
}

/* The size of an anchor, in sizes of the image. */
LS_HOST_DEVICE struct ls_yolo_box ls_region_anchor(const struct ls_region_sample *sample,
                                                   int anchor)
{
    const float *size = sample->attr->anchor_sizes + 2 * (size_t)anchor;
    const struct ls_yolo_box box = {0, 0, (double)size[0] / (double)sample->planes.columns,
                                    (double)size[1] / (double)sample->planes.rows};
    return box;
}

LS_HOST_DEVICE struct ls_yolo_box ls_region_box(const struct ls_region_sample *sample,
                                                const struct ls_yolo_cell *cell)
{
    const struct ls_yolo_box anchor = ls_region_anchor(sample, cell->anchor);
    return ls_yolo_box_of(&sample->planes, cell, &anchor);
}

LS_HOST_DEVICE double ls_region_number(const struct ls_region_sample *sample,
                                       const struct ls_yolo_cell *cell, int64_t k)
{
    return ls_yolo_number(&sample->planes, cell, k);
}

/* Nothing is anywhere, but where a predicted box covers a true one well, which is not judged. */
LS_HOST_DEVICE void ls_region_learn_nothing(const struct ls_region_sample *sample,
                                            const struct ls_yolo_cell *cell)
{
    const struct ls_region_attr *attr = sample->attr;
    const struct ls_yolo_box box = ls_region_box(sample, cell);
    const double object = ls_yolo_sigmoid(ls_region_number(sample, cell, LS_YOLO_OBJECT));
    double best = 0;
    for (int64_t t = 0; t < attr->objects; t++) {
        struct ls_yolo_box truth;
        if (ls_yolo_truth(sample->truths + t * LS_TRUE_BOX, &truth))
            best = fmax(best, ls_yolo_overlap(&box, &truth));
    }
    if (best <= (double)attr->threshold)
        *ls_region_slope(sample, cell, LS_YOLO_OBJECT) =
            (float)((double)attr->no_object * object * object * (1 - object));
}

/* The cell that a true box belongs to: the position of its centre, and the anchor that is most like
 * it, the first one of equals. */
LS_HOST_DEVICE struct ls_yolo_cell ls_region_find_cell(const struct ls_region_sample *sample,
                                                       const struct ls_yolo_box *truth)
{
    const int64_t column = ls_yolo_position(truth->x, sample->planes.columns);
    const int64_t row = ls_yolo_position(truth->y, sample->planes.rows);
    const struct ls_yolo_box size = {0, 0, truth->w, truth->h};
    struct ls_yolo_cell best = ls_yolo_cell_at(&sample->planes, row, column, 0);
    double most = 0;
    for (int a = 0; a < sample->attr->anchors; a++) {
        const struct ls_yolo_cell cell = ls_yolo_cell_at(&sample->planes, row, column, a);
        struct ls_yolo_box like = ls_region_box(sample, &cell);
        if (sample->attr->by_anchor)
            like = ls_region_anchor(sample, a);
        like.x = like.y = 0;
        const double overlap = ls_yolo_overlap(&like, &size);
        if (overlap > most) {
            most = overlap;
            best = cell;
        }
    }
    return best;
}

/* By Intel's rule no difference counts more than 1; by Darknet's every one as it is, and small
 * boxes more than large ones where scores learn to be 1. */
LS_HOST_DEVICE double ls_region_place_slope(const struct ls_region_sample *sample,
                                            const struct ls_yolo_box *truth, double difference)
{
    const struct ls_region_attr *attr = sample->attr;
    const double weight = (double)attr->place;
    if (attr->score == LS_REGION_SCORE_FOCUSED)
        return -weight * fmin(fmax(difference, -1.0), 1.0);
    const double size = attr->score == LS_REGION_SCORE_ONE ? 2 - truth->w * truth->h : 1;
    return -weight * size * difference;
}

LS_HOST_DEVICE void ls_region_learn_place(const struct ls_region_sample *sample,
                                          const struct ls_yolo_cell *cell,
                                          const struct ls_yolo_box *truth)
{
    const struct ls_yolo_box anchor = ls_region_anchor(sample, cell->anchor);
    const double centre[] = {truth->x * (double)sample->planes.columns - (double)cell->column,
                             truth->y * (double)sample->planes.rows - (double)cell->row};
    const double size[] = {ls_double_log(truth->w / anchor.w), ls_double_log(truth->h / anchor.h)};
    for (int k = 0; k < 2; k++) {
        const double at = ls_yolo_sigmoid(ls_region_number(sample, cell, k));
        *ls_region_slope(sample, cell, k) =
            (float)(ls_region_place_slope(sample, truth, centre[k] - at) * at * (1 - at));
        *ls_region_slope(sample, cell, 2 + k) = (float)ls_region_place_slope(
            sample, truth, size[k] - ls_region_number(sample, cell, 2 + k));
    }
}

/* What the score of an object learns. */
LS_HOST_DEVICE double ls_region_object_slope(const struct ls_region_sample *sample,
                                             const struct ls_yolo_cell *cell,
                                             const struct ls_yolo_box *truth)
{
    const struct ls_region_attr *attr = sample->attr;
    const double object = ls_yolo_sigmoid(ls_region_number(sample, cell, LS_YOLO_OBJECT));
    const double miss = 1 - object;
    if (attr->score == LS_REGION_SCORE_FOCUSED)
        return -2 * (double)attr->object * miss * miss * miss * object * miss;
    const struct ls_yolo_box box = ls_region_box(sample, cell);
    const double wanted = attr->score == LS_REGION_SCORE_ONE ? 1 : ls_yolo_overlap(&box, truth);
    return -(double)attr->object * (wanted - object) * object * miss;
}

/* Something of this class is there. */
LS_HOST_DEVICE void ls_region_learn_object(const struct ls_region_sample *sample,
                                           const struct ls_yolo_cell *cell,
                                           const struct ls_yolo_box *truth, int64_t kind)
{
    const struct ls_region_attr *attr = sample->attr;
    double largest = ls_region_number(sample, cell, LS_YOLO_CLASSES), sum = 0;
    for (int64_t c = 1; c < attr->classes; c++)
        largest = fmax(largest, ls_region_number(sample, cell, LS_YOLO_CLASSES + c));
    for (int64_t c = 0; c < attr->classes; c++)
        sum += ls_double_exp(ls_region_number(sample, cell, LS_YOLO_CLASSES + c) - largest);
    *ls_region_slope(sample, cell, LS_YOLO_OBJECT) =
        (float)ls_region_object_slope(sample, cell, truth);
    for (int64_t c = 0; c < attr->classes; c++) {
        const double score = ls_region_number(sample, cell, LS_YOLO_CLASSES + c) - largest;
        const double wanted = c == kind ? 1 : 0;
        *ls_region_slope(sample, cell, LS_YOLO_CLASSES + c) =
            (float)((double)attr->kind * (ls_double_exp(score) / sum - wanted));
    }
}

#endif
