/* Loops over windows, for the plain layout and for channels in blocks of 8 and 16.
 *
 * Every layout and instruction set gives the same bits: windows are walked in row-major order, and
 * an input position gets the gradients of the windows that cover it in row-major order too.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_POOLING_H
#define LS_OPS_CPU_VECTOR_POOLING_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

/* One axis of the windows; axes that the tensor lacks have size 1 and one window. */
struct ls_pooling_axis {
    int64_t in, out;
    int64_t kernel, stride, pad;
    /* By output, `out` of them each: the inputs [begin, end) that its window covers (none where
     * begin = end), and the window's extent within the padded input, for the average. */
    const int32_t *begin, *end, *extent;
    /* The outputs [full_begin, full_end) whose windows lie entirely within the input. */
    int64_t full_begin, full_end;
};

struct ls_windows {
    int64_t planes;                 /* samples x channels, or x channel blocks */
    struct ls_pooling_axis axis[3]; /* depth, height, width */
    bool disjoint;                  /* no input lies in two windows */
    bool covered;                   /* every input lies in some window */
};

/* Loops for one layout. index may be NULL; it holds -1 where nothing in the window is greater than
 * -FLT_MAX. */
struct ls_vector_pooling_layout {
    int64_t (*scratch)(const struct ls_windows *windows); /* floats for `maximum` and `average` */
    void (*maximum)(const struct ls_windows *windows, const float *x, float *y, int32_t *index,
                    float *scratch);
    void (*maximum_backward)(const struct ls_windows *windows, const float *dy,
                             const int32_t *index, float *dx);
    void (*average)(const struct ls_windows *windows, const float *x, float *y, float *scratch);
    void (*average_backward)(const struct ls_windows *windows, const float *dy, float *dx);
};

struct ls_vector_pooling {
    struct ls_vector_pooling_layout blocked8, blocked16;
};
LS_VECTOR_TABLES(ls_vector_pooling)

struct ls_vector_pooling_plain {
    struct ls_vector_pooling_layout plain;
};
LS_VECTOR_TABLES(ls_vector_pooling_plain)

/* The factor of an average over a window with these extents; 0 for a window that is empty. */
static inline float ls_pooling_factor(int64_t depth, int64_t height, int64_t width)
{
    if (depth <= 0 || height <= 0 || width <= 0)
        return 0;
    return 1.0F / (float)(depth * height * width);
}

#endif
