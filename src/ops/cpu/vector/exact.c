/* Exact sums: floats to 64-bit integers and back.
 *
 * A float times a power of two is exact in double as long as its exponent stays in range, so the
 * one rounding is that to an integer, by ls_round_to_int64. Integers are added as unsigned
 * numbers: what does not fit wraps around, which the caller finds by the largest element.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/exact.h"

#include "ops/cpu/vector/lanes.h"

static inline uint32_t magnitude_bits(float x)
{
    return ls_float_bits(x) & UINT32_C(0x7fffffff);
}

static uint32_t vector_store(int64_t *restrict sum, const float *restrict gradient, size_t n,
                             double scale)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(gradient[i]);
        largest = bits > largest ? bits : largest;
        sum[i] = ls_round_to_int64((double)gradient[i] * scale);
    }
    return largest;
}

static uint32_t vector_add(int64_t *restrict sum, const float *restrict gradient, size_t n,
                           double scale)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(gradient[i]);
        largest = bits > largest ? bits : largest;
        uint64_t units = (uint64_t)ls_round_to_int64((double)gradient[i] * scale);
        sum[i] = (int64_t)((uint64_t)sum[i] + units);
    }
    return largest;
}

static uint32_t vector_to_float(const int64_t *restrict sum, float *restrict out, size_t n,
                                double scale)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)(ls_int64_to_double(sum[i]) * scale);
        uint32_t bits = magnitude_bits(out[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Adds TERM(i) for all i < n in lanes. */
#define LS_SUM_LANES(TERM)                                                                         \
    double lane[LS_LANES] = {0};                                                                   \
    size_t i = 0;                                                                                  \
    for (; i + LS_LANES <= n; i += LS_LANES)                                                       \
        for (size_t j = 0; j < LS_LANES; j++)                                                      \
            lane[j] += TERM(i + j);                                                                \
    for (size_t j = 0; i + j < n; j++)                                                             \
        lane[j] += TERM(i + j);                                                                    \
    return ls_fold_lanes_double(lane)

static inline double square(double x)
{
    return x * x;
}

static double vector_squares(const int64_t *sum, size_t n, double scale)
{
#define TERM(i) square((float)(ls_int64_to_double(sum[i]) * scale))
    LS_SUM_LANES(TERM);
#undef TERM
}

static double vector_float_squares(const float *x, size_t n)
{
#define TERM(i) square(x[i])
    LS_SUM_LANES(TERM);
#undef TERM
}

static double vector_float_magnitudes(const float *x, size_t n)
{
#define TERM(i) (double)__builtin_fabsf(x[i])
    LS_SUM_LANES(TERM);
#undef TERM
}

static double vector_float_values(const float *x, size_t n)
{
#define TERM(i) (double)x[i]
    LS_SUM_LANES(TERM);
#undef TERM
}

static uint32_t vector_largest(const float *x, size_t n)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(x[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

const struct ls_vector_exact LS_ISA_NAME(ls_vector_exact) = {
    .store = vector_store,
    .add = vector_add,
    .to_float = vector_to_float,
    .squares = vector_squares,
    .float_squares = vector_float_squares,
    .float_magnitudes = vector_float_magnitudes,
    .float_values = vector_float_values,
    .largest = vector_largest,
};
