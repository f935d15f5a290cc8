/* How boxes differ from priors, in the codes that nets of SSD predict. See device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_BOX_CODES_H
#define LS_DEVICE_BOX_CODES_H

#include <stddef.h>

#include "device/boxes.h"
#include "device/elementary_double.h"
#include "ir/detection.h"

/* How `box` differs from the prior: what a net learns to predict. */
LS_HOST_DEVICE void ls_box_encode(enum ls_box_code code, const struct ls_box *prior,
                                  const struct ls_box *box, double target[4])
{
    const double w = prior->xmax - prior->xmin, h = prior->ymax - prior->ymin;
    if (code == LS_BOX_CENTER_SIZE) {
        target[0] = ((box->xmin + box->xmax) - (prior->xmin + prior->xmax)) / 2 / w;
        target[1] = ((box->ymin + box->ymax) - (prior->ymin + prior->ymax)) / 2 / h;
        target[2] = ls_double_log((box->xmax - box->xmin) / w);
        target[3] = ls_double_log((box->ymax - box->ymin) / h);
        return;
    }
    const bool by_size = code == LS_BOX_CORNER_SIZE;
    target[0] = (box->xmin - prior->xmin) / (by_size ? w : 1);
    target[1] = (box->ymin - prior->ymin) / (by_size ? h : 1);
    target[2] = (box->xmax - prior->xmax) / (by_size ? w : 1);
    target[3] = (box->ymax - prior->ymax) / (by_size ? h : 1);
}

/* The box that `code` says of the prior; `variance` has the prior's four, NULL: they are ones. */
LS_HOST_DEVICE struct ls_box ls_box_decode(enum ls_box_code code, const struct ls_box *prior,
                                           const float *variance, const float *difference)
{
    const double w = prior->xmax - prior->xmin, h = prior->ymax - prior->ymin;
    double d[4];
    for (int k = 0; k < 4; k++)
        d[k] = (variance != NULL ? (double)variance[k] : 1) * (double)difference[k];
    if (code == LS_BOX_CENTER_SIZE) {
        const double x = d[0] * w + (prior->xmin + prior->xmax) / 2;
        const double y = d[1] * h + (prior->ymin + prior->ymax) / 2;
        const double half_w = ls_double_flush(ls_double_exp(d[2]) * w / 2);
        const double half_h = ls_double_flush(ls_double_exp(d[3]) * h / 2);
        const struct ls_box box = {x - half_w, y - half_h, x + half_w, y + half_h};
        return box;
    }
    const double sx = code == LS_BOX_CORNER_SIZE ? w : 1, sy = code == LS_BOX_CORNER_SIZE ? h : 1;
    const struct ls_box box = {prior->xmin + d[0] * sx, prior->ymin + d[1] * sy,
                               prior->xmax + d[2] * sx, prior->ymax + d[3] * sy};
    return box;
}

#endif
