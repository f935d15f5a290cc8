/* What a cell learns by YOLOv3's loss, for host code and kernels alike: see layers/yolov3.c, which
 * has the formulas, and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_YOLO_LOSS_H
#define LS_DEVICE_YOLO_LOSS_H

#include <math.h>

#include "device/yolo_boxes.h"
#include "ir/detection.h"

/* One sample: planes of predictions, what is true of it, and what is learned from that. */
struct ls_yolo_sample {
    const struct ls_yolo_attr *attr;
    struct ls_yolo_planes planes;
    const float *truths;
    float *slope;
};

LS_HOST_DEVICE float *ls_yolo_slope(const struct ls_yolo_sample *sample,
                                    const struct ls_yolo_cell *cell, int64_t k)
{
    return &sample->slope[cell->at + k * cell->plane];
}

LS_HOST_DEVICE double ls_yolo_logistic(const struct ls_yolo_sample *sample,
                                       const struct ls_yolo_cell *cell, int64_t k)
{
    return ls_yolo_sigmoid(ls_yolo_number(&sample->planes, cell, k));
}

/* The size of an anchor of all, in sizes of the image, around the corner of it. */
LS_HOST_DEVICE struct ls_yolo_box ls_yolo_anchor(const struct ls_yolo_sample *sample,
                                                 int64_t anchor)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const float *size = attr->biases + 2 * anchor;
    const struct ls_yolo_box box = {0, 0,
                                    (double)size[0] / ((double)sample->planes.columns * attr->step),
                                    (double)size[1] / ((double)sample->planes.rows * attr->step)};
    return box;
}

/* Nothing is anywhere, but where a predicted box covers a true one well, which is not judged. */
LS_HOST_DEVICE void ls_yolo_learn_nothing(const struct ls_yolo_sample *sample,
                                          const struct ls_yolo_cell *cell)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const struct ls_yolo_box anchor = ls_yolo_anchor(sample, attr->mask[cell->anchor]);
    const struct ls_yolo_box box = ls_yolo_box_of(&sample->planes, cell, &anchor);
    double best = 0;
    for (int64_t t = 0; t < attr->objects; t++) {
        struct ls_yolo_box truth;
        if (ls_yolo_truth(sample->truths + t * LS_TRUE_BOX, &truth))
            best = fmax(best, ls_yolo_overlap(&box, &truth));
    }
    if (best <= (double)attr->threshold)
        *ls_yolo_slope(sample, cell, LS_YOLO_OBJECT) =
            (float)ls_yolo_logistic(sample, cell, LS_YOLO_OBJECT);
}

/* Small boxes count more than large ones. */
LS_HOST_DEVICE void ls_yolo_learn_place(const struct ls_yolo_sample *sample,
                                        const struct ls_yolo_cell *cell,
                                        const struct ls_yolo_box *truth)
{
    const struct ls_yolo_box anchor = ls_yolo_anchor(sample, sample->attr->mask[cell->anchor]);
    const double weight = (double)sample->attr->place * (2 - truth->w * truth->h);
    const double centre[] = {truth->x * (double)sample->planes.columns - (double)cell->column,
                             truth->y * (double)sample->planes.rows - (double)cell->row};
    const double size[] = {ls_double_log(truth->w / anchor.w), ls_double_log(truth->h / anchor.h)};
    for (int k = 0; k < 2; k++) {
        *ls_yolo_slope(sample, cell, k) =
            (float)(-weight * (centre[k] - ls_yolo_logistic(sample, cell, k)));
        *ls_yolo_slope(sample, cell, 2 + k) =
            (float)(-weight * (size[k] - ls_yolo_number(&sample->planes, cell, 2 + k)));
    }
}

/* Something of this class is there; where something else is, too, the class joins it. */
LS_HOST_DEVICE void ls_yolo_learn_class(const struct ls_yolo_sample *sample,
                                        const struct ls_yolo_cell *cell, int64_t kind)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const double smoothing = (double)attr->smoothing;
    const bool joins = *ls_yolo_slope(sample, cell, LS_YOLO_CLASSES + kind) != 0;
    for (int64_t c = 0; c < attr->classes; c++) {
        if (joins && c != kind)
            continue;
        const double wanted = (c == kind ? 1 : 0) * (1 - smoothing) + smoothing / 2;
        const double score = ls_yolo_logistic(sample, cell, LS_YOLO_CLASSES + c);
        *ls_yolo_slope(sample, cell, LS_YOLO_CLASSES + c) =
            (float)(-(double)attr->kind * (wanted - score));
    }
}

LS_HOST_DEVICE void ls_yolo_learn_truth(const struct ls_yolo_sample *sample,
                                        const struct ls_yolo_box *truth, int anchor, int64_t kind)
{
    const struct ls_yolo_planes *planes = &sample->planes;
    const struct ls_yolo_cell cell =
        ls_yolo_cell_at(planes, ls_yolo_position(truth->y, planes->rows),
                        ls_yolo_position(truth->x, planes->columns), anchor);
    ls_yolo_learn_place(sample, &cell, truth);
    *ls_yolo_slope(sample, &cell, LS_YOLO_OBJECT) =
        (float)(-(double)sample->attr->object *
                (1 - ls_yolo_logistic(sample, &cell, LS_YOLO_OBJECT)));
    if (kind >= 0)
        ls_yolo_learn_class(sample, &cell, kind);
}

/* How well the size of an anchor of all fits. */
LS_HOST_DEVICE double ls_yolo_fit(const struct ls_yolo_sample *sample,
                                  const struct ls_yolo_box *truth, int64_t anchor)
{
    const struct ls_yolo_box size = {0, 0, truth->w, truth->h};
    const struct ls_yolo_box like = ls_yolo_anchor(sample, anchor);
    return ls_yolo_overlap(&like, &size);
}

/* The anchor of all that fits best, the first one of equals; -1: none does. */
LS_HOST_DEVICE int64_t ls_yolo_best_anchor(const struct ls_yolo_sample *sample,
                                           const struct ls_yolo_box *truth)
{
    int64_t best = -1;
    double most = 0;
    for (int64_t n = 0; n < sample->attr->all; n++) {
        const double fit = ls_yolo_fit(sample, truth, n);
        if (fit > most) {
            most = fit;
            best = n;
        }
    }
    return best;
}

/* Whether anchor `a` of this bottom learns a true box: it is the best one of all, or it fits well,
 * too. */
LS_HOST_DEVICE bool ls_yolo_anchor_learns(const struct ls_yolo_sample *sample,
                                          const struct ls_yolo_box *truth, int64_t best, int a)
{
    const struct ls_yolo_attr *attr = sample->attr;
    return attr->mask[a] == best ||
           (attr->also < 1 && ls_yolo_fit(sample, truth, attr->mask[a]) > (double)attr->also);
}

/* From slope i by what the logistic function gives to that by what it takes. */
LS_HOST_DEVICE void ls_yolo_go_through_logistic(const struct ls_yolo_sample *sample, int64_t i)
{
    const int64_t plane = sample->planes.rows * sample->planes.columns;
    const int64_t k = i / plane % (LS_YOLO_CLASSES + sample->attr->classes);
    if (k == 2 || k == 3)
        return;
    const double y = ls_yolo_sigmoid((double)sample->planes.x[i]);
    sample->slope[i] = (float)((double)sample->slope[i] * y * (1 - y));
}

#endif
