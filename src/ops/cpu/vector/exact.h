/* The loops of exact sums (ops/cpu/exact.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_EXACT_H
#define LS_OPS_CPU_VECTOR_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_exact {
    /* sum[i] = or += round(gradient[i] * scale); the bits of the largest |gradient[i]|. */
    uint32_t (*store)(int64_t *restrict sum, const float *restrict gradient, size_t n,
                      double scale);
    uint32_t (*add)(int64_t *restrict sum, const float *restrict gradient, size_t n, double scale);
    /* out[i] = (float)(sum[i] * scale); the bits of the largest |out[i]|. */
    uint32_t (*to_float)(const int64_t *restrict sum, float *restrict out, size_t n, double scale);
    /* Sums over at most LS_EXACT_CHUNK elements, in 16 lanes and their tree: the squares of
     * (float)(sum[i] * scale), the squares of x[i], |x[i]|, x[i]. */
    double (*squares)(const int64_t *sum, size_t n, double scale);
    double (*float_squares)(const float *x, size_t n);
    double (*float_magnitudes)(const float *x, size_t n);
    double (*float_values)(const float *x, size_t n);
    /* The bits of the largest |x[i]|; from 0x7f800000 on something is not finite. */
    uint32_t (*largest)(const float *x, size_t n);
};
LS_VECTOR_TABLES(ls_vector_exact)

#endif
