/* Bilinear resizing of planes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_RESIZE_H
#define LS_OPS_CPU_VECTOR_RESIZE_H

#include <stdint.h>

#include "ops/cpu/isa.h"

/* Position i of y along an axis is near[i] times position low[i] of x and far[i] times high[i]. */
struct ls_resize_axis {
    int64_t in, out;
    const int32_t *low, *high; /* [out], neither ever decreases */
    const float *near, *far;   /* [out] */
};

struct ls_resize {
    int64_t planes, block; /* planes of `block` lanes; block 1: plain */
    struct ls_resize_axis row, column;
};

struct ls_vector_resize {
    /* `scratch` has column.in * block floats. */
    void (*forward)(const struct ls_resize *resize, const float *x, float *y, float *scratch);
    void (*backward)(const struct ls_resize *resize, const float *dy, float *dx, float *scratch);
};
LS_VECTOR_TABLES(ls_vector_resize)

#endif
