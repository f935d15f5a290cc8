/* The loss of a prior and its gradient, as SSD has it, for host code and kernels alike. See
 * device/multibox.h and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_MULTIBOX_LOSS_H
#define LS_DEVICE_MULTIBOX_LOSS_H

#include <math.h>

#include "device/elementary_double.h"
#include "device/multibox.h"

/* ---- Classes --------------------------------------------------------------------------------- */

/* The loss of the classes of a prior, and its gradient where `slope` is there. */
LS_HOST_DEVICE double ls_multibox_class_loss(const struct ls_multibox_attr *attr, const float *x,
                                             int64_t kind, float *slope)
{
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < attr->classes; c++)
        largest = fmax(largest, (double)x[c]);
    for (int64_t c = 0; c < attr->classes; c++)
        sum += ls_double_exp((double)x[c] - largest);
    for (int64_t c = 0; slope != NULL && c < attr->classes; c++)
        slope[c] = (float)(ls_double_exp((double)x[c] - largest) / sum - (c == kind ? 1 : 0));
    return ls_double_log(sum) - ((double)x[kind] - largest);
}

/* The same of independent yes-or-no predictions. */
LS_HOST_DEVICE double ls_multibox_logistic_loss(const struct ls_multibox_attr *attr, const float *x,
                                                int64_t kind, float *slope)
{
    double sum = 0;
    for (int64_t c = 0; c < attr->classes; c++) {
        const double number = (double)x[c], wanted = c == kind ? 1 : 0;
        sum += ls_double_log1p(ls_double_exp(-fabs(number))) -
               number * (wanted - (number >= 0 ? 1 : 0));
        if (slope != NULL)
            slope[c] = (float)(1 / (1 + ls_double_exp(-number)) - wanted);
    }
    return sum;
}

/* NaN where `kind` is none. */
LS_HOST_DEVICE double ls_multibox_confidence_loss(const struct ls_multibox_attr *attr,
                                                  const struct ls_multibox_sample *sample,
                                                  int64_t p, int64_t kind, bool learn)
{
    const float *x = sample->conf + p * attr->classes;
    float *slope = learn ? sample->dconf + p * attr->classes : NULL;
    if (kind < 0)
        return (double)NAN;
    return attr->logistic ? ls_multibox_logistic_loss(attr, x, kind, slope)
                          : ls_multibox_class_loss(attr, x, kind, slope);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Whether side k of the box of prior p lies in the picture; else it learns nothing. */
LS_HOST_DEVICE void ls_multibox_find_inside(const struct ls_multibox_attr *attr,
                                            const struct ls_multibox_sample *sample, int64_t p,
                                            int64_t kind, bool inside[4])
{
    const struct ls_box box = attr->by_place ? ls_multibox_predicted(attr, sample, p, kind)
                                             : ls_box_read(sample->prior + 4 * p);
    const double side[4] = {box.xmin, box.ymin, box.xmax, box.ymax};
    for (int k = 0; k < 4; k++)
        inside[k] = !(side[k] < 0 || side[k] > 1);
}

/* The loss of where the box of prior p, which has a match of class `kind`, is. */
LS_HOST_DEVICE double ls_multibox_place_loss(const struct ls_multibox_attr *attr,
                                             const struct ls_multibox_sample *sample,
                                             const struct ls_multibox_room *room, int64_t p,
                                             int64_t kind, bool learn)
{
    const struct ls_box prior = ls_box_read(sample->prior + 4 * p);
    const struct ls_box object = ls_true_box(sample->rows + room->object[p] * LS_TRUE_BOX);
    const float *variance = sample->prior + 4 * (attr->priors + p);
    const int64_t at = p * ls_multibox_places(attr) + (attr->by_class ? 4 * kind : 0);
    double target[4], sum = 0;
    bool inside[4] = {true, true, true, true};
    ls_box_encode(attr->code, &prior, &object, target);
    if (attr->inside)
        ls_multibox_find_inside(attr, sample, p, kind, inside);
    for (int k = 0; k < 4; k++) {
        if (!inside[k])
            continue;
        const double v = (double)variance[k], predicted = (double)sample->loc[at + k];
        /* Else both are divided by the variance. */
        const double by = attr->variance_in_target ? v : 1;
        const double apart =
            (predicted - (attr->variance_in_target ? target[k] : target[k] / v)) / by;
        const bool square = attr->euclidean || fabs(apart) < 1;
        const double slope = square ? apart : apart > 0 ? 1 : -1;
        sum += square ? apart * apart / 2 : fabs(apart) - 0.5;
        if (learn)
            sample->dloc[at + k] = (float)((double)attr->loc_weight * slope / by);
    }
    return sum;
}

/* ---- Of a prior, of a sample ---------------------------------------------------------------- */

LS_HOST_DEVICE int64_t ls_multibox_class_of(const struct ls_multibox_attr *attr,
                                            const struct ls_multibox_sample *sample,
                                            const struct ls_multibox_room *room, int64_t p)
{
    const int32_t object = room->object[p];
    return object < 0 ? attr->background
                      : ls_multibox_class(attr, sample->rows + object * LS_TRUE_BOX);
}

/* What one sample adds to the count that the loss is divided by. */
LS_HOST_DEVICE double ls_multibox_count_of(const struct ls_multibox_attr *attr, int64_t matches)
{
    switch (attr->normalization) {
    case LS_NORM_FULL:
        return (double)attr->priors;
    case LS_NORM_BATCH_SIZE:
        return 1;
    case LS_NORM_NONE:
        return 0;
    default:
        return (double)matches;
    }
}

#endif
