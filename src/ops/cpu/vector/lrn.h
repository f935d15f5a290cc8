/* Loops of local response normalisation.
 *
 * All sums run from the first channel (row, column) of a window to the last, and everything else is
 * elementwise, so that layouts and instruction sets give the same bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_LRN_H
#define LS_OPS_CPU_VECTOR_LRN_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_lrn {
    int64_t samples, channels;
    int64_t height, width;
    int64_t block; /* channels a block: 1 (plain), 8, 16 */
    int64_t size;  /* odd */
    float factor;  /* of the sum of squares: alpha / size, or alpha / size^2 */
    float beta, k; /* within: k is 1 */
    float slope;   /* 2 * factor * beta */
    bool bf16;     /* x, y, dy and dx are bf16, and plain */
};

/* s = k + factor * sum of x^2 over `size` channels around; y = x * s^-beta. */
struct ls_vector_lrn_across {
    int64_t (*scratch)(const struct ls_lrn *lrn); /* floats that the others need */
    /* scale, which gets s, may be NULL. */
    void (*forward)(const struct ls_lrn *lrn, const void *x, void *y, float *scale, float *scratch);
    /* dx = dy * s^-beta - slope * x * sum of dy * y / s over the channels around */
    void (*backward)(const struct ls_lrn *lrn, const void *x, const void *y, const void *dy,
                     const float *scale, void *dx, float *scratch);
};
LS_VECTOR_TABLES(ls_vector_lrn_across)

/* The same with sums over size x size positions around, in the plane of the channel. */
struct ls_vector_lrn_within {
    int64_t (*scratch)(const struct ls_lrn *lrn);
    void (*forward)(const struct ls_lrn *lrn, const void *x, void *y, float *scratch);
    void (*backward)(const struct ls_lrn *lrn, const void *x, const void *y, const void *dy,
                     void *dx, float *scratch);
};
LS_VECTOR_TABLES(ls_vector_lrn_within)

#endif
