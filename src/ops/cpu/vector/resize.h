/* Bilinear resizing of planes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_RESIZE_H
#define LS_OPS_CPU_VECTOR_RESIZE_H

#include <stdbool.h>
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
    bool bf16; /* x, y, dy and dx are bf16, and plain */
};

struct ls_vector_resize {
    int64_t (*scratch)(const struct ls_resize *resize, bool backward); /* floats */
    void (*forward)(const struct ls_resize *resize, const void *x, void *y, float *scratch);
    void (*backward)(const struct ls_resize *resize, const void *dy, void *dx, float *scratch);
};
LS_VECTOR_TABLES(ls_vector_resize)

#endif
