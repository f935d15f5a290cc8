/* What YOLO's nets have found, for host code and kernels alike. See device/defined_yolo_output.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_YOLO_FINDS_H
#define LS_DEVICE_YOLO_FINDS_H

#include <stddef.h>

#include "device/yolo_boxes.h"
#include "ir/detection.h"

struct ls_yolo_find {
    float score;
    int32_t cell, kind; /* cells of all inputs, one behind the other */
};

/* The higher score first; of equal ones that of the first cell, then of the first class. */
LS_HOST_DEVICE bool ls_yolo_find_is_before(const struct ls_yolo_find *a,
                                           const struct ls_yolo_find *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return a->cell != b->cell ? a->cell < b->cell : a->kind < b->kind;
}

/* The size of anchor `a` of an input, in sizes of the image. */
LS_HOST_DEVICE struct ls_yolo_box ls_yolo_output_size(const struct ls_yolo_output_attr *attr,
                                                      const struct ls_yolo_planes *planes,
                                                      int input, int a)
{
    const double step = attr->steps != NULL ? attr->steps[input] : 1;
    const size_t anchor = attr->mask != NULL ? attr->mask[input * attr->anchors + a] : (size_t)a;
    const struct ls_yolo_box size = {
        0, 0, (double)attr->biases[2 * anchor] / ((double)planes->columns * step),
        (double)attr->biases[2 * anchor + 1] / ((double)planes->rows * step)};
    return size;
}

/* Of a class by itself, whose cell has this score of an object; it counts above the threshold. */
LS_HOST_DEVICE float ls_yolo_class_score(const struct ls_yolo_planes *planes,
                                         const struct ls_yolo_cell *cell, double object, int64_t c)
{
    return (float)(ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_CLASSES + c)) * object);
}

/* Of a softmax: the class with the highest score, the first one of equals, and its score, which
 * counts from the threshold on. */
LS_HOST_DEVICE float ls_yolo_best_score(const struct ls_yolo_planes *planes,
                                        const struct ls_yolo_cell *cell, double object,
                                        int64_t *best)
{
    double largest = ls_yolo_number(planes, cell, LS_YOLO_CLASSES), sum = 0;
    *best = 0;
    for (int64_t c = 1; c < planes->classes; c++) {
        const double number = ls_yolo_number(planes, cell, LS_YOLO_CLASSES + c);
        if (number > largest) {
            largest = number;
            *best = c;
        }
    }
    for (int64_t c = 0; c < planes->classes; c++)
        sum += ls_double_exp(ls_yolo_number(planes, cell, LS_YOLO_CLASSES + c) - largest);
    return (float)(object / sum);
}

/* Row of the top. */
LS_HOST_DEVICE void ls_yolo_write_find(double ordinal, const struct ls_yolo_find *find,
                                       const struct ls_yolo_box *box, float *row)
{
    const double numbers[LS_FOUND_ROW] = {ordinal,
                                          find->kind + 1.0,
                                          (double)find->score,
                                          box->x - box->w / 2,
                                          box->y - box->h / 2,
                                          box->x + box->w / 2,
                                          box->y + box->h / 2};
    for (int i = 0; i < LS_FOUND_ROW; i++)
        row[i] = (float)numbers[i];
}

#endif
