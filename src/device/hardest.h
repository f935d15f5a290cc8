/* The regions of a picture that a net finds hardest, for host code and kernels alike. See
 * device/defined_hardest.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_HARDEST_H
#define LS_DEVICE_HARDEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

enum { LS_HARD_REGION = 5 }; /* numbers of a region */

struct ls_hard_region {
    int32_t picture; /* -1: no picture has such a number */
    int32_t at;      /* among the positions of all rows */
    float loss;
};

/* Whether `a` comes before `b`: picture by picture, the largest loss first, a NaN before all
 * numbers, and of equal losses the first position. A total order, so that one result is right. */
LS_HOST_DEVICE bool ls_region_is_harder(const struct ls_hard_region *a,
                                        const struct ls_hard_region *b)
{
    const bool a_nan = a->loss != a->loss, b_nan = b->loss != b->loss;
    if (a->picture != b->picture)
        return a->picture < b->picture;
    if (a_nan != b_nan)
        return a_nan;
    if (a->loss > b->loss || a->loss < b->loss)
        return a->loss > b->loss;
    return a->at < b->at;
}

/* The number of a picture, with what is behind the point cut off. */
LS_HOST_DEVICE int32_t ls_picture_number(float number)
{
    return number > -1 && number < 2147483648.0F ? (int32_t)number : -1;
}

/* Position i, of `inner` in each row of regions. */
LS_HOST_DEVICE struct ls_hard_region ls_hard_region_of(const float *rois, const float *loss,
                                                       int64_t inner, int64_t i)
{
    const struct ls_hard_region region = {
        ls_picture_number(rois[i / inner * LS_HARD_REGION * inner + i % inner]), (int32_t)i,
        loss[i]};
    return region;
}

#endif
