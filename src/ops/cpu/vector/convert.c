/* Loops that convert elements, in integers: see ops/cpu/vector/convert.h.
 *
 * Rounding to nearest, ties to even: to what is dropped, half of its range less one is added, and
 * one more where the last bit that stays is set; the carry does the rest, also into the exponent.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/convert.h"

#include "ops/cpu/vector/lanes.h"

enum {
    F32_INFINITE = 0x7f800000,
    F16_INFINITE = 0x7c00,
    F16_NORMAL = 113,    /* the exponent in fp32 of the least normal number of binary16 */
    F16_BIAS = 112 << 23 /* between the exponents */
};

static void f32_to_bf16(const uint32_t *restrict x, uint16_t *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
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
