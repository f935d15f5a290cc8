/* Numbers to try products of bf16 and of fp32 with; the sums that are expected of them are those of
 * device/product_sum.h. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_BF16_MODEL_H
#define LS_TESTS_KERNELS_BF16_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "device/product_sum.h"
#include "ir/convert.h"

static inline float bf16_widened(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static inline uint16_t bf16_rounded(float x)
{
    uint16_t bits;
    ls_dtype_convert(LS_F32, &x, LS_BF16, &bits, 1);
    return bits;
}

/* Mostly near 1; zeros of both signs, tiny and large numbers, too. */
static inline uint16_t bf16_number(uint64_t salt, uint64_t i)
{
    uint32_t bits = ls_random_u32(33, salt, i), kind = bits >> 24;
    if (kind < 16)
        return (uint16_t)(bits & 0x8000);
    if (kind < 20)
        return (uint16_t)((bits & 0x807f) | (55 + kind) << 7);
    return (uint16_t)((bits & 0x807f) | (124 + (bits >> 16) % 5) << 7);
}

/* The same with all digits of fp32. */
static inline float f32_number(uint64_t salt, uint64_t i)
{
    const float number = bf16_widened(bf16_number(salt, i));
    uint32_t digits = ls_random_u32(34, salt, i) & 0xffff, bits;
    memcpy(&bits, &number, sizeof bits);
    bits |= number != 0 ? digits : 0;
    float all;
    memcpy(&all, &bits, sizeof all);
    return all;
}

/* Not a number is one thing, whatever its bits. */
static inline bool bf16_same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

#endif
