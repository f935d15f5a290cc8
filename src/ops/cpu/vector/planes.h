/* Convolutions whose vectors lie along the positions of a plane, for numbers of channels that would
 * leave many lanes of blocks empty.
 *
 * With a stride of 1, and all rows of x (padded) cut out for each column of the window, one behind
 * the other ("unrolled"), what a weight meets at all positions of y lies in one piece:
 *
 *     y[o, p] = b[o] + sum over (c, i, j) of w[o, c, i, j] u[c, j, (i dilation) Y + p]
 *
 * with Y the width of y, u[c, j] the rows for column j. So a row of u costs a copy for each column
 * of the window and none for its rows, and y is a product of two matrices.
 *
 * Every instruction set gives the same bits: products are added with one rounding, in y and dx one
 * weight after the other; dw and db are kept in 16 lanes, position p in lane p % 16.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_PLANES_H
#define LS_OPS_CPU_VECTOR_PLANES_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

enum { LS_PLANES_WINDOW_MAX = 121 }; /* weights of a plane */

/* Axes: rows, columns. All tensors are plain. */
struct ls_planes {
    int64_t samples, in, out; /* samples; channels of x, of y */
    int64_t x[2], y[2];       /* extents of planes of x, of y */
    int64_t kernel[2], pad[2], dilation[2];
    bool relu; /* of the forward pass: y = y > 0 ? y : slope y */
    float slope;
    /* What follows from these (ops/cpu/planes.c). */
    int64_t window, terms;    /* weights of a plane; of an output */
    int64_t positions;        /* of a plane of y */
    int64_t rows;             /* of a plane of u: all that windows move over */
    int64_t sample;           /* floats of u of a sample */
    int64_t chunk;            /* samples whose dw are summed up together */
    const int64_t *meets;     /* by term: where in u of a sample what it meets begins */
    const int64_t *gradients; /* by channel of y: where its plane begins */
};

/* All need scratch of so many floats. */
struct ls_vector_planes {
    int64_t (*forward_scratch)(const struct ls_planes *planes);
    /* bias may be NULL */
    void (*forward)(const struct ls_planes *planes, const float *x, const float *w,
                    const float *bias, float *y, float *scratch);
    int64_t (*data_scratch)(const struct ls_planes *planes);
    void (*data)(const struct ls_planes *planes, const float *dy, const float *w, float *dx,
                 float *scratch);
};
LS_VECTOR_TABLES(ls_vector_planes)

struct ls_vector_planes_weights {
    int64_t (*scratch)(const struct ls_planes *planes);
    /* db may be NULL */
    void (*run)(const struct ls_planes *planes, const float *x, const float *dy, float *dw,
                float *db, float *scratch);
};
LS_VECTOR_TABLES(ls_vector_planes_weights)

#endif
