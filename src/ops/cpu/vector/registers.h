/* For files in vector/ that multiply and add with one rounding: registers of 16 or 8 floats, or of
 * one, by instruction set, and parts of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_REGISTERS_H
#define LS_OPS_CPU_VECTOR_REGISTERS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "ops/cpu/vector/lanes.h"

#if LS_ISA_IS(AVX512)

#define FUSED
#define REGISTER                 __m512
#define WIDTH                    16
#define ZERO()                   _mm512_setzero_ps()
#define LOAD(from)               _mm512_loadu_ps(from)
#define STORE(to, value)         _mm512_storeu_ps(to, value)
#define SPREAD(value)            _mm512_set1_ps(value)
#define ADD(a, b)                _mm512_add_ps(a, b)
#define FMA(a, b, c)             _mm512_fmadd_ps(a, b, c)
#define MASK(n)                  ((__mmask16)((1U << (n)) - 1))
#define LOAD_SOME(from, n)       _mm512_maskz_loadu_ps(MASK(n), from)
#define STORE_SOME(to, n, value) _mm512_mask_storeu_ps(to, MASK(n), value)

static inline float fold(const REGISTER lane[1])
{
    __m256 high = _mm512_castps512_ps256(_mm512_shuffle_f32x4(lane[0], lane[0], 0x4e));
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lane[0]), high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#elif LS_ISA_IS(AVX2)

#define FUSED                    __attribute__((target("avx2,fma")))
#define REGISTER                 __m256
#define WIDTH                    8
#define ZERO()                   _mm256_setzero_ps()
#define LOAD(from)               _mm256_loadu_ps(from)
#define STORE(to, value)         _mm256_storeu_ps(to, value)
#define SPREAD(value)            _mm256_set1_ps(value)
#define ADD(a, b)                _mm256_add_ps(a, b)
#define FMA(a, b, c)             _mm256_fmadd_ps(a, b, c)
#define LOAD_SOME(from, n)       _mm256_maskload_ps(from, mask(n))
#define STORE_SOME(to, n, value) _mm256_maskstore_ps(to, mask(n), value)

/* The first `n` of 8. */
static inline __m256i mask(size_t n)
{
    static const int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(bits + 8 - n));
}

FUSED static inline float fold(const REGISTER lane[2])
{
    __m256 eight = _mm256_add_ps(lane[0], lane[1]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#else

#define FUSED
#define REGISTER                 float
#define WIDTH                    1
#define ZERO()                   0.0F
#define LOAD(from)               (*(from))
#define STORE(to, value)         (*(to) = (value))
#define SPREAD(value)            (value)
#define ADD(a, b)                ((a) + (b))
#define FMA(a, b, c)             fused(a, b, c)
#define LOAD_SOME(from, n)       (*(from))
#define STORE_SOME(to, n, value) (*(to) = (value))

/* a b + c with one rounding. The product is exact in double. Its sum with c is rounded to odd (the
 * last bit says that something was cut off), which 24 bits can be rounded from correctly. Boldo and
 * Melquiond: Emulation of a FMA and correctly rounded sums; 2008. */
static inline float fused(float a, float b, float c)
{
    double product = (double)a * (double)b, added = (double)c;
    double sum = product + added, part = sum - product;
    double rest = (product - (sum - part)) + (added - part);
    uint64_t bits = ls_double_bits(sum);
    bool away = (rest > 0) == (sum > 0);
    if ((rest > 0 || rest < 0) && (bits & 1) == 0)
        bits += away ? 1 : UINT64_MAX;
    return (float)ls_bits_double(bits);
}

/* The same where a and b have no more bits than bf16: their product is exact in float, unless it is
 * too small or too large for one. */
static inline float fused_bf16(float a, float b, float c)
{
    float product = a * b, size = fabsf(product);
    bool exact = (size >= FLT_MIN && size <= FLT_MAX) || a == 0 || b == 0;
    return exact ? product + c : fused(a, b, c);
}

static inline float fold(const REGISTER lane[LS_LANES])
{
    return ls_fold_lanes(lane);
}

#endif

/* FMA of numbers of bf16 and a sum; of those, or of any numbers if `f32`. */
#if WIDTH > 1
#define FMA_BF16(a, b, c)    FMA(a, b, c)
#define FMA_OF(f32, a, b, c) ((void)(f32), FMA(a, b, c))
#else
#define FMA_BF16(a, b, c)    fused_bf16(a, b, c)
#define FMA_OF(f32, a, b, c) ((f32) ? fused(a, b, c) : fused_bf16(a, b, c))
#endif

/* The first `n` floats, at most a register of them, and zeros. */
#define LOAD_UP_TO(from, n) ((n) >= WIDTH ? LOAD(from) : (n) > 0 ? LOAD_SOME(from, n) : ZERO())

/* A register of numbers in bf16, widened. */
#if WIDTH > 1
#define LOAD_BF16(from) ls_load_bf16(from)
#else
#define LOAD_BF16(from) ls_widen_bf16(*(from))
#endif

/* Into the second-level cache: in the first, rows a power of two apart push each other out. */
#define FETCH(from) __builtin_prefetch(from, 0, 2)

enum { LANE_REGISTERS = LS_LANES / WIDTH }; /* that hold the lanes of a sum */

/* In front of loops over registers, which must become registers; clang does so by itself. */
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define INLINE FUSED static inline __attribute__((always_inline))

#endif
