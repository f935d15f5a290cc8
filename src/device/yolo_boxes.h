/* Boxes as YOLO predicts them: each position of a plane has some, one for each anchor, in 5 +
 * `classes` numbers each, which are planes apart: x, y, width, height, object, classes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_YOLO_BOXES_H
#define LS_DEVICE_YOLO_BOXES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/boxes.h"
#include "device/elementary_double.h"

enum { LS_YOLO_OBJECT = 4, LS_YOLO_CLASSES = 5 }; /* numbers of a cell */

struct ls_yolo_box {
    double x, y, w, h; /* the centre, and the size */
};

/* What is predicted of one sample. */
struct ls_yolo_planes {
    const float *x;
    int64_t rows, columns, classes;
};

/* Of one anchor at one position: where the numbers of its planes are, `plane` apart. */
struct ls_yolo_cell {
    int64_t at, plane, row, column;
    int anchor;
};

LS_HOST_DEVICE struct ls_yolo_cell ls_yolo_cell_at(const struct ls_yolo_planes *planes, int64_t row,
                                                   int64_t column, int anchor)
{
    const int64_t plane = planes->rows * planes->columns;
    const int64_t each = (LS_YOLO_CLASSES + planes->classes) * plane;
    const struct ls_yolo_cell cell = {anchor * each + row * planes->columns + column, plane, row,
                                      column, anchor};
    return cell;
}

/* Number k of a cell. */
LS_HOST_DEVICE double ls_yolo_number(const struct ls_yolo_planes *planes,
                                     const struct ls_yolo_cell *cell, int64_t k)
{
    return (double)planes->x[cell->at + k * cell->plane];
}

LS_HOST_DEVICE double ls_yolo_sigmoid(double x)
{
    return 1 / (1 + ls_double_exp(-x));
}

/* The box that a cell predicts with an anchor of this size. */
LS_HOST_DEVICE struct ls_yolo_box ls_yolo_box_of(const struct ls_yolo_planes *planes,
                                                 const struct ls_yolo_cell *cell,
                                                 const struct ls_yolo_box *anchor)
{
    const struct ls_yolo_box box = {
        ((double)cell->column + ls_yolo_sigmoid(ls_yolo_number(planes, cell, 0))) /
            (double)planes->columns,
        ((double)cell->row + ls_yolo_sigmoid(ls_yolo_number(planes, cell, 1))) /
            (double)planes->rows,
        ls_double_flush(ls_double_exp(ls_yolo_number(planes, cell, 2)) * anchor->w),
        ls_double_flush(ls_double_exp(ls_yolo_number(planes, cell, 3)) * anchor->h)};
    return box;
}

/* Along one axis, how far two intervals around their centres are in both. */
LS_HOST_DEVICE double ls_yolo_shared(double a, double a_size, double b, double b_size)
{
    const double begin = fmax(a - a_size / 2, b - b_size / 2);
    return fmin(a + a_size / 2, b + b_size / 2) - begin;
}

/* Intersection over union. */
LS_HOST_DEVICE double ls_yolo_overlap(const struct ls_yolo_box *a, const struct ls_yolo_box *b)
{
    const double width = ls_yolo_shared(a->x, a->w, b->x, b->w);
    const double height = ls_yolo_shared(a->y, a->h, b->y, b->h);
    if (!(width > 0 && height > 0))
        return 0;
    const double shared = ls_double_flush(width * height);
    return shared / (ls_double_flush(a->w * a->h) + ls_double_flush(b->w * b->h) - shared);
}

/* Reads a row of a true box (device/boxes.h); false: the row is empty, or the box is. */
LS_HOST_DEVICE bool ls_yolo_truth(const float *row, struct ls_yolo_box *box)
{
    const struct ls_box true_box = ls_true_box(row);
    box->x = (true_box.xmin + true_box.xmax) / 2;
    box->y = (true_box.ymin + true_box.ymax) / 2;
    box->w = true_box.xmax - true_box.xmin;
    box->h = true_box.ymax - true_box.ymin;
    return ls_is_true_box(row) && box->w > 0 && box->h > 0;
}

/* Along an axis of `count` positions, that which a centre from 0 to 1 lies at; beyond the border
 * the last one. */
LS_HOST_DEVICE int64_t ls_yolo_position(double centre, int64_t count)
{
    return (int64_t)fmin(fmax(floor(centre * (double)count), 0.0), (double)(count - 1));
}

#endif
