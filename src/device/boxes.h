/* Boxes and how much of them two have in common, for ops that every device computes alike.
 *
 * True boxes are rows [item, label, instance, xmin, ymin, xmax, ymax, difficult], a fixed number of
 * rows a sample; a row whose item or label is below 0 is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_BOXES_H
#define LS_DEVICE_BOXES_H

#include <math.h>
#include <stdbool.h>

#include "base/host_device.h"

enum { LS_TRUE_BOX = 8 };  /* numbers of a row */
enum { LS_FOUND_ROW = 7 }; /* and of what was found: [sample, class, score, box] */

struct ls_box {
    double xmin, ymin, xmax, ymax;
};

LS_HOST_DEVICE struct ls_box ls_box_read(const float *numbers)
{
    const struct ls_box box = {(double)numbers[0], (double)numbers[1], (double)numbers[2],
                               (double)numbers[3]};
    return box;
}

/* The box of a row that is not empty. */
LS_HOST_DEVICE struct ls_box ls_true_box(const float *row)
{
    return ls_box_read(row + 3);
}

LS_HOST_DEVICE bool ls_is_true_box(const float *row)
{
    return row[0] >= 0 && row[1] >= 0;
}

/* `more` is what a side is longer than its ends are apart: 1 where they are pixels, else 0. */
LS_HOST_DEVICE double ls_box_area(const struct ls_box *box, double more)
{
    if (box->xmax < box->xmin || box->ymax < box->ymin)
        return 0;
    return (box->xmax - box->xmin + more) * (box->ymax - box->ymin + more);
}

/* Intersection over union. */
LS_HOST_DEVICE double ls_box_overlap(const struct ls_box *a, const struct ls_box *b, double more)
{
    const double width = fmin(a->xmax, b->xmax) - fmax(a->xmin, b->xmin) + more;
    const double height = fmin(a->ymax, b->ymax) - fmax(a->ymin, b->ymin) + more;
    if (!(width > 0 && height > 0))
        return 0;
    return width * height / (ls_box_area(a, more) + ls_box_area(b, more) - width * height);
}

#endif
