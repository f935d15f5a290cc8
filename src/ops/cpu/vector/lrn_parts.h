/* What the two kinds of LRN share: powers and sums over shifted arrays.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_LRN_PARTS_H
#define LS_OPS_CPU_VECTOR_LRN_PARTS_H

#include <math.h>

#include "ops/cpu/vector/lanes.h"
#include "ops/cpu/vector/lrn.h"
#include "ops/cpu/vector/math.h"

/* sum[i] = (sum[i] + a[i]) + b[i]. Not inlined: seeing the loop around it, gcc 12 would merge its
 * rounds and then not make vectors of it. */
static __attribute__((noinline)) void
ls_lrn_add_pair(const float *restrict a, const float *restrict b, int64_t n, float *restrict sum)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = (sum[i] + a[i]) + b[i];
}

/* sum[i] = from[i] + from[i + step] + ... (size terms, odd, in this order). Reads
 * n + (size - 1) * step elements. */
static inline void ls_lrn_sum(const float *restrict from, int64_t step, int64_t size, int64_t n,
                              float *restrict sum)
{
    memcpy(sum, from, (size_t)n * sizeof *sum);
    for (int64_t term = 1; term < size; term += 2)
        ls_lrn_add_pair(from + term * step, from + (term + 1) * step, n, sum);
}

/* s[i] = k + factor * s[i] */
static inline void ls_lrn_scale(const struct ls_lrn *lrn, int64_t n, float *restrict s)
{
    for (int64_t i = 0; i < n; i++)
        s[i] = lrn->k + lrn->factor * s[i];
}

/* inverse[i] = 1 / s[i], power[i] = s[i]^-beta. Roots and divisions are exactly rounded and much
 * faster than powers, so that they serve the exponents that networks have. */
static inline void ls_lrn_powers(float beta, const float *restrict s, int64_t n,
                                 float *restrict power, float *restrict inverse)
{
    for (int64_t i = 0; i < n; i++)
        inverse[i] = 1.0F / s[i];
    if (beta == 0.75F) {
        for (int64_t i = 0; i < n; i++)
            power[i] = inverse[i] * sqrtf(sqrtf(s[i]));
    } else if (beta == 0.5F) {
        for (int64_t i = 0; i < n; i++)
            power[i] = inverse[i] * sqrtf(s[i]);
    } else if (beta == 1) {
        memcpy(power, inverse, (size_t)n * sizeof *power);
    } else {
        LS_ISA_NAME(ls_vector_math).pow(s, -beta, power, (size_t)n);
    }
}

#endif
