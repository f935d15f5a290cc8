/* Loops of normalisation by the statistics of each group of a sample's values.
 *
 * x [outer][groups][channels][points], plain. Statistics are sums in double, in 16 lanes, in two
 * passes, so that a large mean costs no precision.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_NORMALIZE_H
#define LS_OPS_CPU_VECTOR_NORMALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_normalize_job {
    int64_t outer, groups, channels, points;      /* channels: of one group */
    bool variance, behind, elements, around_zero; /* see struct ls_normalize_attr */
    float eps;
    bool bf16; /* x, y, dy and dx are bf16 */
};

enum { LS_NORMALIZE_STATS = 4 }; /* numbers a group */

struct ls_vector_normalize {
    /* bias, or scale and bias, and stats may be NULL; y may be x. */
    void (*forward)(const struct ls_vector_normalize_job *normalize, const void *x,
                    const float *scale, const float *bias, void *y, float *stats);
    /* dx = (dz - mean of dz - x^ ratio mean of dz x^) / deviation, with dz = scale dy and x^ the
     * normalised x. scale may be NULL; dx may be dy. */
    void (*data)(const struct ls_vector_normalize_job *normalize, const void *dy, const void *x,
                 const float *stats, const float *scale, void *dx);
    /* Sums of dy x^ and of dy for each element of scale and bias: over the points in 16 lanes, then
     * over `outer` in order. */
    void (*sums)(const struct ls_vector_normalize_job *normalize, const void *dy, const void *x,
                 const float *stats, double *scale, double *bias);
};
LS_VECTOR_TABLES(ls_vector_normalize)

#endif
