/* Exact sums: floats to 64-bit integers and back.
 *
 * A float times a power of two is exact in double as long as its exponent stays in range, so the
 * one rounding is that to an integer, by ls_round_to_int64. Integers are added as unsigned
 * numbers: what does not fit wraps around, which the caller finds by the largest element.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/exact.h"

#include "ops/cpu/exact.h"
#include "ops/cpu/vector/lanes.h"

_Static_assert(LS_LANES == (int)LS_EXACT_LANES, "lanes of exponents");

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

/* 2^exponent, for what a double's exponent can be. */
static inline double power_of_two(int32_t exponent)
{
    return ls_bits_double((uint64_t)(int64_t)(exponent + 1023) << 52);
}

static uint32_t vector_add_each(int64_t *restrict sum, const float *restrict gradient, size_t n,
                                const int32_t *restrict exponent, uint32_t *restrict largest,
                                bool first)
{
    const uint64_t keep = first ? 0 : UINT64_MAX;
    uint32_t all = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(gradient[i]);
        all = bits > all ? bits : all;
        largest[i] = bits > largest[i] ? bits : largest[i];
        uint64_t units =
            (uint64_t)ls_round_to_int64((double)gradient[i] * power_of_two(exponent[i]));
        sum[i] = (int64_t)(((uint64_t)sum[i] & keep) + units);
    }
    return all;
}

static uint32_t vector_add_lanes(int64_t *restrict sum, const float *restrict gradient, size_t n,
                                 const int32_t *restrict exponent, uint32_t *restrict largest,
                                 bool first)
{
    const uint64_t keep = first ? 0 : UINT64_MAX;
    uint32_t lane[LS_LANES] = {0}, all = 0;
    double scale[LS_LANES];
    for (size_t j = 0; j < LS_LANES; j++)
        scale[j] = power_of_two(exponent[j]);
#define LS_ADD(i, j)                                                                               \
    do {                                                                                           \
        uint32_t bits = magnitude_bits(gradient[i]);                                               \
        lane[j] = bits > lane[j] ? bits : lane[j];                                                 \
        uint64_t units = (uint64_t)ls_round_to_int64((double)gradient[i] * scale[j]);              \
        sum[i] = (int64_t)(((uint64_t)sum[i] & keep) + units);                                     \
    } while (0)
    size_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES)
        for (size_t j = 0; j < LS_LANES; j++)
            LS_ADD(i + j, j);
    for (size_t j = 0; i + j < n; j++)
        LS_ADD(i + j, j);
#undef LS_ADD
    for (size_t j = 0; j < LS_LANES; j++) {
        all = lane[j] > all ? lane[j] : all;
        largest[j] = lane[j] > largest[j] ? lane[j] : largest[j];
    }
    return all;
}

static void vector_to_float_each(const int64_t *restrict sum, float *restrict out, size_t n,
                                 const int32_t *restrict exponent)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(ls_int64_to_double(sum[i]) * power_of_two(-exponent[i]));
}

static void vector_to_float_lanes(const int64_t *restrict sum, float *restrict out, size_t n,
                                  const int32_t *restrict exponent)
{
    double scale[LS_LANES];
    for (size_t j = 0; j < LS_LANES; j++)
        scale[j] = power_of_two(-exponent[j]);
    size_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES)
        for (size_t j = 0; j < LS_LANES; j++)
            out[i + j] = (float)(ls_int64_to_double(sum[i + j]) * scale[j]);
    for (size_t j = 0; i + j < n; j++)
        out[i + j] = (float)(ls_int64_to_double(sum[i + j]) * scale[j]);
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

static uint32_t vector_largest_each(const float *restrict x, size_t n, uint32_t *restrict largest)
{
    uint32_t all = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(x[i]);
        all = bits > all ? bits : all;
        largest[i] = bits > largest[i] ? bits : largest[i];
    }
    return all;
}

static uint32_t vector_largest_lanes(const float *restrict x, size_t n, uint32_t *restrict largest)
{
    uint32_t lane[LS_LANES] = {0}, all = 0;
    size_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES)
        for (size_t j = 0; j < LS_LANES; j++) {
            uint32_t bits = magnitude_bits(x[i + j]);
            lane[j] = bits > lane[j] ? bits : lane[j];
        }
    for (size_t j = 0; i + j < n; j++) {
        uint32_t bits = magnitude_bits(x[i + j]);
        lane[j] = bits > lane[j] ? bits : lane[j];
    }
    for (size_t j = 0; j < LS_LANES; j++) {
        all = lane[j] > all ? lane[j] : all;
        largest[j] = lane[j] > largest[j] ? lane[j] : largest[j];
    }
    return all;
}

const struct ls_vector_exact LS_ISA_NAME(ls_vector_exact) = {
    .store = vector_store,
    .add = vector_add,
    .add_each = vector_add_each,
    .add_lanes = vector_add_lanes,
    .to_float = vector_to_float,
    .to_float_each = vector_to_float_each,
    .to_float_lanes = vector_to_float_lanes,
    .float_squares = vector_float_squares,
    .float_magnitudes = vector_float_magnitudes,
    .float_values = vector_float_values,
    .largest = vector_largest,
    .largest_each = vector_largest_each,
    .largest_lanes = vector_largest_lanes,
};
