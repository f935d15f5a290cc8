/* For files in vector/: sixteen lanes, whatever the registers are.
 *
 * Every loop gives the same bits on every instruction set. Elementwise arithmetic does by itself
 * (each operation rounds, nothing is contracted). Sums are kept in 16 lanes, element i in lane
 * i % 16, and folded by the fixed tree below. Functions are SLEEF's deterministic ones, whose bits
 * do not depend on the width.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_LANES_H
#define LS_OPS_CPU_VECTOR_LANES_H

#include <sleef.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ops/cpu/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LS_LANES = 16 };

/* In front of a loop whose arrays are either apart or the same (element i depends on elements i
 * alone), which a compiler cannot know where pointers are not restrict. */
#if defined(__clang__)
#define LS_ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define LS_ELEMENTWISE _Pragma("GCC ivdep")
#endif

static inline uint32_t ls_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float ls_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t ls_double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double ls_bits_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Round to nearest, ties to even, for |x| <= 2^51 (something else beyond, and for NaN): the sum
 * with 1.5 * 2^52 has no bits behind the point, and its lower ones are the integer. */
static inline int64_t ls_round_to_int64(double x)
{
    const double magic = 0x1.8p52;
    return (int64_t)(ls_double_bits(x + magic) - ls_double_bits(magic));
}

/* (double)x, correctly rounded. Only AVX-512 has an instruction for vectors; the others put the
 * halves of x into the mantissas of 2^84 (the upper one with 2^31 added) and 2^52, take off
 * 2^84 + 2^63 + 2^52, and round once, in the last addition. */
static inline double ls_int64_to_double(int64_t x)
{
#if LS_ISA_IS(AVX512) || !defined(__x86_64__)
    return (double)x;
#else
    uint64_t high = ((uint64_t)x >> 32) ^ UINT64_C(0x4530000080000000);
    uint64_t low = ((uint64_t)x & UINT64_C(0xffffffff)) | UINT64_C(0x4330000000000000);
    return (ls_bits_double(high) - 0x1.00000801p84) + ls_bits_double(low);
#endif
}

/* The one order in which lanes are summed: distance 8, 4, 2, 1. */
static inline float ls_fold_lanes(const float lane[LS_LANES])
{
    float sum[8];
    for (int i = 0; i < 8; i++)
        sum[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++)
        sum[i] += sum[i + 4];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static inline double ls_fold_lanes_double(const double lane[LS_LANES])
{
    double sum[8];
    for (int i = 0; i < 8; i++)
        sum[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++)
        sum[i] += sum[i + 4];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* One register of floats, and SLEEF's deterministic functions on it (at most 1 ulp off). */
#if LS_ISA_IS(AVX512)
#define LS_REGISTER         __m512
#define LS_WIDTH            16
#define LS_LOAD(from)       _mm512_loadu_ps(from)
#define LS_STORE(to, value) _mm512_storeu_ps(to, value)
#define LS_SPREAD(value)    _mm512_set1_ps(value)
#define LS_SLEEF(function)  Sleef_cinz_##function##f16_u10avx512fnofma
#elif LS_ISA_IS(AVX2)
#define LS_REGISTER         __m256
#define LS_WIDTH            8
#define LS_LOAD(from)       _mm256_loadu_ps(from)
#define LS_STORE(to, value) _mm256_storeu_ps(to, value)
#define LS_SPREAD(value)    _mm256_set1_ps(value)
#define LS_SLEEF(function)  Sleef_cinz_##function##f8_u10avx
#elif LS_ISA_IS(SSE41)
#define LS_REGISTER         __m128
#define LS_WIDTH            4
#define LS_LOAD(from)       _mm_loadu_ps(from)
#define LS_STORE(to, value) _mm_storeu_ps(to, value)
#define LS_SPREAD(value)    _mm_set1_ps(value)
#define LS_SLEEF(function)  Sleef_cinz_##function##f4_u10sse4
#else
#define LS_REGISTER         float
#define LS_WIDTH            1
#define LS_LOAD(from)       (*(from))
#define LS_STORE(to, value) (*(to) = (value))
#define LS_SPREAD(value)    (value)
#define LS_SLEEF(function)  Sleef_cinz_##function##f1_u10purec
#endif

/* Sixteen values at a time, in place if wanted. A shorter rest is copied to a buffer of 16. */
static inline void ls_lanes_exp(const float *x, float *y)
{
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, LS_SLEEF(exp)(LS_LOAD(x + i)));
}

static inline void ls_lanes_log(const float *x, float *y)
{
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, LS_SLEEF(log)(LS_LOAD(x + i)));
}

/* exp(x) - 1 and log(1 + x), without cancellation near 0. */
static inline void ls_lanes_expm1(const float *x, float *y)
{
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, LS_SLEEF(expm1)(LS_LOAD(x + i)));
}

static inline void ls_lanes_log1p(const float *x, float *y)
{
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, LS_SLEEF(log1p)(LS_LOAD(x + i)));
}

static inline void ls_lanes_tanh(const float *x, float *y)
{
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, LS_SLEEF(tanh)(LS_LOAD(x + i)));
}

/* y = x^exponent */
static inline void ls_lanes_pow(const float *x, float exponent, float *y)
{
    const LS_REGISTER power = LS_SPREAD(exponent);
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, LS_SLEEF(pow)(LS_LOAD(x + i), power));
}

#endif
