/* The gradient by x of a convolution of each channel by itself, in blocks of channels.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_DEPTHWISE_H
#define LS_OPS_CPU_VECTOR_DEPTHWISE_H

#include <stdint.h>

#include "ops/cpu/isa.h"

enum { LS_DEPTHWISE_TAPS_MAX = 49 };

/* A product that comes to a number of dx: where its factors lie, in floats. */
struct ls_depthwise_term {
    int64_t dy; /* behind dy of the row, and of the number in it */
    int64_t weight;
};

/* Numbers of a row of dx at first, first + step, ..., `count` of them, to which the same weights
 * come, with dy one position further for each number: terms [begin, end). */
struct ls_depthwise_run {
    int64_t first, step, count;
    size_t begin, end;
};

/* A row of dx: its runs [begin, end), with dy from position `from` of its plane on. */
struct ls_depthwise_row {
    size_t begin, end;
    int64_t from;
};

struct ls_depthwise {
    int64_t samples, channels, block; /* block: 8 or 16 */
    int64_t in[2], out[2], kernel[2]; /* extents of x, y and the windows: rows, columns */
    const struct ls_depthwise_row *row;
    const struct ls_depthwise_run *run;
    const struct ls_depthwise_term *term;
};

struct ls_vector_depthwise {
    /* dx = sum of dy w over the weights of a window, in their order, for channels [begin, end),
     * which begin a block; w [channels, kernel]. */
    void (*data)(const struct ls_depthwise *shape, const float *dy, const float *w, float *dx,
                 int64_t begin, int64_t end);
};
LS_VECTOR_TABLES(ls_vector_depthwise)

#endif
