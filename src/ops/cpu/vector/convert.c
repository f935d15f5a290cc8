/* Loops that convert elements, in integers: see ops/cpu/vector/convert.h.
 *
 * Rounding to nearest, ties to even: to what is dropped, half of its range less one is added, and
 * one more where the last bit that stays is set; the carry does the rest, also into the exponent.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/convert.h"

#include <stdbool.h>

#include "ops/cpu/vector/lanes.h"

enum {
    F32_INFINITE = 0x7f800000,
    F16_INFINITE = 0x7c00,
    F16_NORMAL = 113,    /* the exponent in fp32 of the least normal number of binary16 */
    F16_BIAS = 112 << 23 /* between the exponents */
};

#if LS_ISA_IS(AVX512)
/* The sums whose upper halves are the rounded numbers. */
static inline __m512i rounded_words(__m512i x)
{
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(0x7fff)), odd);
}

static inline bool has_nan(__m512i x, __m512i more)
{
    return _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(more), _CMP_UNORD_Q) != 0;
}
#endif

static void f32_to_bf16(const uint32_t *restrict x, uint16_t *restrict y, size_t n)
{
    size_t i = 0;
#if LS_ISA_IS(AVX512)
    static const uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                       23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                       45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    const __m512i halves = _mm512_loadu_si512(upper);
    for (; i + 32 <= n; i += 32) {
        const __m512i low = _mm512_loadu_si512(x + i), high = _mm512_loadu_si512(x + i + 16);
        if (has_nan(low, high)) {
            for (size_t k = i; k < i + 32; k++)
                y[k] = ls_round_bf16(ls_bits_float(x[k]));
            continue;
        }
        _mm512_storeu_si512(
            y + i, _mm512_permutex2var_epi16(rounded_words(low), halves, rounded_words(high)));
    }
#endif
    for (; i < n; i++)
        y[i] = ls_round_bf16(ls_bits_float(x[i]));
}

static void f32_to_f16(const uint32_t *restrict x, uint16_t *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t size = x[i] & 0x7fffffff, exponent = size >> 23;
        uint32_t normal = (size - F16_BIAS + 0xfff + (size >> 13 & 1)) >> 13;
        normal = normal < F16_INFINITE ? normal : F16_INFINITE;
        /* Below: the fraction with its implicit bit, in units of 2^-24. */
        uint32_t whole = (size & 0x7fffff) | 0x800000, shift = F16_NORMAL + 13 - exponent;
        shift = exponent < F16_NORMAL && shift < 31 ? shift : 31;
        uint32_t denormal =
            (whole + (UINT32_C(1) << (shift - 1)) - 1 + (whole >> shift & 1)) >> shift;
        uint32_t number = exponent < F16_NORMAL ? denormal : normal;
        uint32_t quiet = F16_INFINITE | 0x200 | (size >> 13 & 0x3ff);
        y[i] = (uint16_t)((x[i] >> 16 & 0x8000) | (size > F32_INFINITE ? quiet : number));
    }
}

static void bf16_to_f32(const uint16_t *restrict x, uint32_t *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        y[i] = bits | ((bits & 0x7fffffff) > F32_INFINITE ? 0x400000 : 0);
    }
}

static void f16_to_f32(const uint16_t *restrict x, uint32_t *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t size = x[i] & 0x7fff;
        uint32_t normal = (size << 13) + F16_BIAS;
        uint32_t denormal = ls_float_bits((float)(int32_t)size) - (24 << 23); /* times 2^-24 */
        denormal = size == 0 ? 0 : denormal;
        uint32_t special = F32_INFINITE | size << 13 | (size > F16_INFINITE ? 0x400000 : 0);
        uint32_t number = size < 0x400 ? denormal : normal;
        y[i] = (uint32_t)(x[i] & 0x8000) << 16 | (size >= F16_INFINITE ? special : number);
    }
}

const struct ls_vector_convert LS_ISA_NAME(ls_vector_convert) = {
    .f32_to_bf16 = f32_to_bf16,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f16_to_f32 = f16_to_f32,
};
