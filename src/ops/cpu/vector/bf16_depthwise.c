/* See bf16_depthwise.h.
 *
 * Several sums are kept at a time, so that an addition need not wait for the one before it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_depthwise.h"

#include "ops/cpu/vector/bf16_transpose.h"
#include "ops/cpu/vector/registers.h"

enum {
    CHANNELS = LS_BF16_CHANNELS,
    PARTS = CHANNELS / WIDTH, /* registers of a place */
    TOGETHER = WIDTH > 1 ? 8 / PARTS : 1,
    TAPS = WIDTH > 1 ? 5 : 1, /* whose sums over positions go together */
    BLOCK = 32,
    EVEN = 0,
    ODD = CHANNELS,
    SUM = 2 * CHANNELS,
    STATE = 3 * CHANNELS /* floats of a tap */
};

/* ---- Between channels and places ------------------------------------------------------------- */

/* Up to WIDTH numbers, widened. */
static inline REGISTER load_numbers(const uint16_t *from, size_t count)
{
#if LS_ISA_IS(AVX512)
    const __m256i numbers = _mm256_maskz_loadu_epi16(MASK(count), from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
#else
    uint16_t some[WIDTH] = {0};
    if (count < WIDTH) {
        for (size_t i = 0; i < count; i++)
            some[i] = from[i];
        from = some;
    }
    return LOAD_BF16(from);
#endif
}

/* Numbers of fp32, or of bf16 that are widened: `f32` is a constant. */
INLINE void spread_numbers(const void *x, bool f32, size_t plane, size_t channels, size_t count,
                           float *places)
{
    for (size_t c = 0; c < CHANNELS; c += WIDTH)
        for (size_t p = 0; p < count; p += WIDTH) {
            const size_t here = count - p < WIDTH ? count - p : WIDTH;
            REGISTER square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++) {
                const size_t at = (c + i) * plane + p;
                if (c + i >= channels)
                    square[i] = ZERO();
                else if (f32)
                    square[i] = LOAD_UP_TO((const float *)x + at, here);
                else
                    square[i] = load_numbers((const uint16_t *)x + at, here);
            }
            transpose_floats(square);
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                if (i < here)
                    STORE(places + (p + i) * CHANNELS + c, square[i]);
        }
}

#if LS_ISA_IS(AVX512)

/* Pairs of places are transposed, and split behind that. */
static void spread(const uint16_t *x, size_t plane, size_t channels, size_t count, float *places)
{
    enum { PAIRED = 2 * WIDTH };
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000U);
    for (size_t p = 0; p < count; p += PAIRED, x += PAIRED, places += PAIRED * CHANNELS) {
        const size_t here = count - p < PAIRED ? count - p : PAIRED;
        const __mmask32 there = UINT32_MAX >> (PAIRED - here);
        __m512i pairs[WIDTH];
        UNROLL
        for (size_t i = 0; i < WIDTH; i++)
            pairs[i] = i < channels ? _mm512_maskz_loadu_epi16(there, x + i * plane)
                                    : _mm512_setzero_si512();
        transpose(pairs);
        UNROLL
        for (size_t i = 0; i < WIDTH; i++) {
            float *place = places + 2 * i * CHANNELS;
            if (2 * i < here)
                STORE(place, _mm512_castsi512_ps(_mm512_slli_epi32(pairs[i], 16)));
            if (2 * i + 1 < here)
                STORE(place + CHANNELS, _mm512_castsi512_ps(_mm512_and_si512(pairs[i], upper)));
        }
    }
}

#else

FUSED static void spread(const uint16_t *x, size_t plane, size_t channels, size_t count,
                         float *places)
{
    spread_numbers(x, false, plane, channels, count, places);
}

#endif

FUSED static void spread_floats(const float *x, size_t plane, size_t channels, size_t count,
                                float *places)
{
    spread_numbers(x, true, plane, channels, count, places);
}

static void gather(const float *sums, size_t channels, size_t count, float *lines, size_t pitch)
{
    for (size_t c = 0; c < channels; c += WIDTH)
        for (size_t p = 0; p < count; p += WIDTH) {
            REGISTER square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                square[i] = p + i < count ? LOAD(sums + (p + i) * CHANNELS + c) : ZERO();
            transpose_floats(square);
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                if (c + i < channels)
                    STORE(lines + (c + i) * pitch + p, square[i]);
        }
}

/* ---- Chains over taps ------------------------------------------------------------------------ */

/* `count` positions (a constant), one register's channels of each. */
INLINE void chain_some(const struct ls_bf16_meetings *meetings, const int32_t *at, const float *x,
                       const float *w, int count, float *sums)
{
    REGISTER sum[TOGETHER];
    const float *from[TOGETHER];
    UNROLL
    for (int i = 0; i < count; i++) {
        sum[i] = ZERO();
        from[i] = x + (ptrdiff_t)at[i] * CHANNELS;
    }
    for (size_t k = 0; k < meetings->taps; k++) {
        const REGISTER weight = LOAD(w + k * CHANNELS);
        const ptrdiff_t offset = (ptrdiff_t)meetings->offset[k] * CHANNELS;
        UNROLL
        for (int i = 0; i < count; i++)
            sum[i] = FMA_OF(meetings->f32, LOAD(from[i] + offset), weight, sum[i]);
    }
    UNROLL
    for (int i = 0; i < count; i++)
        STORE(sums + (ptrdiff_t)i * CHANNELS, ADD(sum[i], ZERO()));
}

FUSED static void chains(const struct ls_bf16_meetings *meetings, const float *x, const float *w,
                         float *sums)
{
    for (size_t part = 0; part < CHANNELS; part += WIDTH) {
        size_t p = 0;
        for (; p + TOGETHER <= meetings->positions; p += TOGETHER)
            chain_some(meetings, meetings->at + p, x + part, w + part, TOGETHER,
                       sums + p * CHANNELS + part);
        for (; p < meetings->positions; p++)
            chain_some(meetings, meetings->at + p, x + part, w + part, 1,
                       sums + p * CHANNELS + part);
    }
}

/* ---- Blocks over positions ------------------------------------------------------------------- */

/* Sums of `taps` (a constant) taps from `offset` on. */
INLINE void block_some(const struct ls_bf16_meetings *meetings, const int32_t *offset,
                       const float *x, const float *dy, size_t begin, int taps, float *sums)
{
    REGISTER half[2][TAPS];
    ptrdiff_t further[TAPS];
    UNROLL
    for (int k = 0; k < taps; k++) {
        further[k] = (ptrdiff_t)offset[k] * CHANNELS;
        half[0][k] = LOAD(sums + (ptrdiff_t)k * STATE + EVEN);
        half[1][k] = LOAD(sums + (ptrdiff_t)k * STATE + ODD);
    }
    for (size_t p = 0; p < meetings->positions; p++) {
        const size_t term = begin + p;
        if (term % BLOCK == 0 && term > 0) {
            UNROLL
            for (int k = 0; k < taps; k++) {
                float *sum = sums + (ptrdiff_t)k * STATE + SUM;
                STORE(sum, ADD(LOAD(sum), ADD(half[0][k], half[1][k])));
                half[0][k] = half[1][k] = ZERO();
            }
        }
        const float *from = x + (ptrdiff_t)meetings->at[p] * CHANNELS;
        const REGISTER factor = LOAD(dy + p * CHANNELS);
        if (term % 2 == 0) {
            UNROLL
            for (int k = 0; k < taps; k++)
                half[0][k] = FMA_OF(meetings->f32, LOAD(from + further[k]), factor, half[0][k]);
        } else {
            UNROLL
            for (int k = 0; k < taps; k++)
                half[1][k] = FMA_OF(meetings->f32, LOAD(from + further[k]), factor, half[1][k]);
        }
    }
    UNROLL
    for (int k = 0; k < taps; k++) {
        STORE(sums + (ptrdiff_t)k * STATE + EVEN, half[0][k]);
        STORE(sums + (ptrdiff_t)k * STATE + ODD, half[1][k]);
    }
}

/* The sums of dy: products with 1 are exact. */
INLINE void block_dy(size_t positions, const float *dy, size_t begin, float *sums)
{
    REGISTER half[2] = {LOAD(sums + EVEN), LOAD(sums + ODD)};
    for (size_t p = 0; p < positions; p++) {
        const size_t term = begin + p;
        if (term % BLOCK == 0 && term > 0) {
            STORE(sums + SUM, ADD(LOAD(sums + SUM), ADD(half[0], half[1])));
            half[0] = half[1] = ZERO();
        }
        if (term % 2 == 0)
            half[0] = ADD(half[0], LOAD(dy + p * CHANNELS));
        else
            half[1] = ADD(half[1], LOAD(dy + p * CHANNELS));
    }
    STORE(sums + EVEN, half[0]);
    STORE(sums + ODD, half[1]);
}

FUSED static void blocks(const struct ls_bf16_meetings *meetings, const float *x, const float *dy,
                         size_t begin, float *sums)
{
    for (size_t part = 0; part < CHANNELS; part += WIDTH) {
        size_t k = 0;
        for (; k + TAPS <= meetings->taps; k += TAPS)
            block_some(meetings, meetings->offset + k, x + part, dy + part, begin, TAPS,
                       sums + k * STATE + part);
        for (; TAPS > 2 && k + 2 <= meetings->taps; k += 2)
            block_some(meetings, meetings->offset + k, x + part, dy + part, begin, TAPS > 2 ? 2 : 1,
                       sums + k * STATE + part);
        for (; k < meetings->taps; k++)
            block_some(meetings, meetings->offset + k, x + part, dy + part, begin, 1,
                       sums + k * STATE + part);
        block_dy(meetings->positions, dy + part, begin, sums + k * STATE + part);
    }
}

FUSED static void end_blocks(size_t taps, size_t terms, float *sums)
{
    for (size_t k = 0; k <= taps; k++, sums += STATE)
        for (size_t part = 0; part < CHANNELS; part += WIDTH) {
            float *sum = sums + SUM + part;
            REGISTER last = ADD(LOAD(sums + EVEN + part), LOAD(sums + ODD + part));
            STORE(sum, ADD(terms > 0 ? ADD(LOAD(sum), last) : LOAD(sum), ZERO()));
        }
}

const struct ls_vector_bf16_depthwise LS_ISA_NAME(ls_vector_bf16_depthwise) = {
    .spread = spread,
    .gather = gather,
    .spread_floats = spread_floats,
    .chains = chains,
    .blocks = blocks,
    .end_blocks = end_blocks,
};
