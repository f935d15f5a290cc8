/* Sums of products of bf16 or fp32 numbers as docs/numerics.md defines them, and numbers to try
 * them with. The calling thread flushes denormal numbers. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_BF16_MODEL_H
#define LS_TESTS_KERNELS_BF16_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
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

/* A sum that terms are added to, one after the other. */
struct bf16_sum {
    float t[2], c;
    int64_t terms;
};

static inline void bf16_end_block(struct bf16_sum *sum)
{
    volatile float both = sum->t[0] + sum->t[1], c = sum->c + both;
    sum->c = c;
    sum->t[0] = sum->t[1] = 0;
}

/* In blocks of 32 terms. */
static inline void bf16_add(struct bf16_sum *sum, float a, float b)
{
    if (sum->terms % 32 == 0 && sum->terms > 0)
        bf16_end_block(sum);
    float *t = &sum->t[sum->terms++ % 2];
    *t = fmaf(a, b, *t);
}

static inline float bf16_end(struct bf16_sum *sum)
{
    if (sum->terms > 0)
        bf16_end_block(sum);
    volatile float without_sign = sum->c + 0.0F;
    return without_sign;
}

/* In one chain: convolutions of single channels. */
static inline void bf16_chain(struct bf16_sum *sum, float a, float b)
{
    sum->c = fmaf(a, b, sum->c);
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
