/* The loops of exact sums (ops/cpu/exact.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_EXACT_H
#define LS_OPS_CPU_VECTOR_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_exact {
    /* sum[i] = or += round(gradient[i] * scale); the bits of the largest |gradient[i]|. */
    uint32_t (*store)(int64_t *restrict sum, const float *restrict gradient, size_t n,
                      double scale);
    uint32_t (*add)(int64_t *restrict sum, const float *restrict gradient, size_t n, double scale);
    /* The same where element i is scaled by 2^exponent[i], and where lane i % LS_EXACT_LANES has
     * that exponent. `largest` (of n elements, of the lanes) becomes at least their magnitudes. */
    uint32_t (*add_each)(int64_t *restrict sum, const float *restrict gradient, size_t n,
                         const int32_t *restrict exponent, uint32_t *restrict largest, bool first);
    uint32_t (*add_lanes)(int64_t *restrict sum, const float *restrict gradient, size_t n,
                          const int32_t *restrict exponent, uint32_t *restrict largest, bool first);
    /* out[i] = (float)(sum[i] * scale), 2^-exponent[i], 2^-(that of its lane); of the first: the
     * bits of the largest |out[i]|. */
    uint32_t (*to_float)(const int64_t *restrict sum, float *restrict out, size_t n, double scale);
    void (*to_float_each)(const int64_t *restrict sum, float *restrict out, size_t n,
                          const int32_t *restrict exponent);
    void (*to_float_lanes)(const int64_t *restrict sum, float *restrict out, size_t n,
                           const int32_t *restrict exponent);
    /* Sums over at most LS_EXACT_CHUNK elements, in 16 lanes and their tree: of x[i]^2, |x[i]|,
     * x[i]. */
    double (*float_squares)(const float *x, size_t n);
    double (*float_magnitudes)(const float *x, size_t n);
    double (*float_values)(const float *x, size_t n);
    /* The bits of the largest |x[i]|; from 0x7f800000 on something is not finite. */
    uint32_t (*largest)(const float *x, size_t n);
    /* The same, and `largest` as above. */
    uint32_t (*largest_each)(const float *restrict x, size_t n, uint32_t *restrict largest);
    uint32_t (*largest_lanes)(const float *restrict x, size_t n, uint32_t *restrict largest);
};
LS_VECTOR_TABLES(ls_vector_exact)

#endif
