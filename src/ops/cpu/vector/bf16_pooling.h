/* Pooling of bf16 numbers in the plain layout, read and written as they lie: the lanes are
 * neighbouring windows of a row, or neighbouring inputs. The bits are those of vector/pooling.h,
 * rounded once.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_POOLING_H
#define LS_OPS_CPU_VECTOR_BF16_POOLING_H

#include "ops/cpu/vector/pooling.h"

/* For windows that ls_bf16_pooling_fits; index may be NULL in `maximum`. `share` has room for a
 * number of each window of a plane. */
struct ls_vector_bf16_pooling {
    void (*maximum)(const struct ls_windows *windows, const uint16_t *x, uint16_t *y,
                    int32_t *index);
    void (*average)(const struct ls_windows *windows, const uint16_t *x, uint16_t *y);
    void (*maximum_backward)(const struct ls_windows *windows, const uint16_t *dy,
                             const int32_t *index, uint16_t *dx);
    void (*average_backward)(const struct ls_windows *windows, const uint16_t *dy, uint16_t *dx,
                             float *share);
};
LS_VECTOR_TABLES(ls_vector_bf16_pooling)

/* Whether the functions above are there and take these windows: steps of 1 or 2 along rows, which
 * have not too few windows for the lanes nor too many. */
static inline bool ls_bf16_pooling_fits(const struct ls_windows *windows)
{
    const struct ls_pooling_axis *width = &windows->axis[2];
    return ls_vector_bf16_pooling()->maximum != NULL && width->stride <= 2 && width->kernel <= 8 &&
           width->out >= 4 && width->in <= 1024 && width->out <= 1024 &&
           windows->axis[0].in <= 1024 && windows->axis[1].in <= 1024;
}

#endif
