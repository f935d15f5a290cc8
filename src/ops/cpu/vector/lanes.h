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

/* bf16 as fp32, and rounded back: nearest, ties to even, as in vector/convert.c. For arithmetic: a
 * signalling NaN becomes quiet there. */
static inline float ls_widen_bf16(uint16_t x)
{
    return ls_bits_float((uint32_t)x << 16);
}

static inline uint16_t ls_round_bf16(float x)
{
    uint32_t bits = ls_float_bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
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
#else
#define LS_REGISTER         float
#define LS_WIDTH            1
#define LS_LOAD(from)       (*(from))
#define LS_STORE(to, value) (*(to) = (value))
#define LS_SPREAD(value)    (value)
#define LS_SLEEF(function)  Sleef_cinz_##function##f1_u10purec
#endif

/* The same of LS_WIDTH numbers in bf16: ls_widen_bf16 and ls_round_bf16. */
#if LS_ISA_IS(AVX512)
static inline __m512 ls_load_bf16(const uint16_t *from)
{
    __m256i numbers = _mm256_loadu_si256((const __m256i *)(const void *)from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

static inline void ls_store_bf16(uint16_t *to, __m512 value)
{
    const __m512i bits = _mm512_castps_si512(value), upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    rounded = _mm512_mask_or_epi32(_mm512_srli_epi32(rounded, 16),
                                   _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q), upper,
                                   _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16(rounded));
}
#elif LS_ISA_IS(AVX2)
static inline __m256 ls_load_bf16(const uint16_t *from)
{
    __m128i numbers = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(numbers), 16));
}

static inline void ls_store_bf16(uint16_t *to, __m256 value)
{
    const __m256i bits = _mm256_castps_si256(value), upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    rounded = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, nan);
    rounded = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(rounded));
}
#else
static inline float ls_load_bf16(const uint16_t *from)
{
    return ls_widen_bf16(*from);
}

static inline void ls_store_bf16(uint16_t *to, float value)
{
    *to = ls_round_bf16(value);
}
#endif

/* exp, with the bits of SLEEF's function: calls of it would keep everything else out of registers.
 * With n = x / log 2, rounded, and r = x - n log 2, whose factor has two parts, it is 1 + (r + r^2
 * p) times 2^n, where p is a polynomial; each operation rounds. Below -104 it is 0, and above 100
 * infinite. */
#if defined(__x86_64__) && !LS_ISA_IS(GENERIC)
static inline LS_REGISTER ls_exp_mantissa(LS_REGISTER x, LS_REGISTER n)
{
    const LS_REGISTER r = (x - n * LS_SPREAD(0x1.62e4p-1F)) - n * LS_SPREAD(0x1.7f7d1cp-20F);
    LS_REGISTER p = LS_SPREAD(0.000198527617612853646278381F);
    p = p * r + LS_SPREAD(0.00139304355252534151077271F);
    p = p * r + LS_SPREAD(0.00833336077630519866943359F);
    p = p * r + LS_SPREAD(0.0416664853692054748535156F);
    p = p * r + LS_SPREAD(0.166666671633720397949219F);
    p = p * r + LS_SPREAD(0.5F);
    return LS_SPREAD(1.0F) + (r * r * p + r);
}
#endif

#if LS_ISA_IS(AVX512)
static inline LS_REGISTER ls_exp(LS_REGISTER x)
{
    const LS_REGISTER n = _mm512_roundscale_ps(x * LS_SPREAD(0x1.715476p+0F),
                                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    LS_REGISTER y = _mm512_scalef_ps(ls_exp_mantissa(x, n), n);
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, LS_SPREAD(100), _CMP_GT_OQ),
                           LS_SPREAD(__builtin_inff()));
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, LS_SPREAD(-104), _CMP_NLT_UQ), y);
}
#elif LS_ISA_IS(AVX2)
static inline LS_REGISTER ls_exp(LS_REGISTER x)
{
    const __m256i n = _mm256_cvtps_epi32(x * LS_SPREAD(0x1.715476p+0F)),
                  half = _mm256_srai_epi32(n, 1);
    const __m256i bias = _mm256_set1_epi32(127), other = _mm256_sub_epi32(n, half);
    LS_REGISTER y = ls_exp_mantissa(x, _mm256_cvtepi32_ps(n));
    y = y * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    y = y * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(other, bias), 23));
    y = _mm256_blendv_ps(y, LS_SPREAD(__builtin_inff()),
                         _mm256_cmp_ps(x, LS_SPREAD(100), _CMP_GT_OQ));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, LS_SPREAD(-104), _CMP_LT_OQ), y);
}
#else
#define ls_exp(x) LS_SLEEF(exp)(x)
#endif

/* Sixteen values at a time, in place if wanted. A shorter rest is copied to a buffer of 16. */
static inline void ls_lanes_exp(const float *x, float *y)
{
    for (int i = 0; i < LS_LANES; i += LS_WIDTH)
        LS_STORE(y + i, ls_exp(LS_LOAD(x + i)));
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
