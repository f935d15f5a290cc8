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

#if WIDTH > 1

#if LS_ISA_IS(AVX512)

#define WORDS             __m512i
#define AS_FLOATS(words)  _mm512_castsi512_ps(words)
#define AS_WORDS(floats)  _mm512_castps_si512(floats)
#define LOAD_FLOATS(from) AS_WORDS(LOAD(from))
#define NO_WORDS()        _mm512_setzero_si512()

/* Up to WIDTH numbers, widened. */
static inline __m512i load_numbers(const uint16_t *from, size_t count)
{
    const __m256i numbers = _mm256_maskz_loadu_epi16(MASK(count), from);
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16);
}

#else

#define WORDS             __m256i
#define AS_FLOATS(words)  _mm256_castsi256_ps(words)
#define AS_WORDS(floats)  _mm256_castps_si256(floats)
#define LOAD_FLOATS(from) AS_WORDS(LOAD(from))
#define NO_WORDS()        _mm256_setzero_si256()

static inline __m256i load_numbers(const uint16_t *from, size_t count)
{
    uint16_t some[WIDTH] = {0};
    if (count < WIDTH) {
        for (size_t i = 0; i < count; i++)
            some[i] = from[i];
        from = some;
    }
    const __m128i numbers = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(numbers), 16);
}

#endif

static void spread(const uint16_t *x, size_t plane, size_t channels, size_t count, float *places)
{
    for (size_t c = 0; c < CHANNELS; c += WIDTH)
        for (size_t p = 0; p < count; p += WIDTH) {
            const size_t here = count - p < WIDTH ? count - p : WIDTH;
            WORDS square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                square[i] =
                    c + i < channels ? load_numbers(x + (c + i) * plane + p, here) : NO_WORDS();
            transpose(square);
            for (size_t i = 0; i < here; i++)
                STORE(places + (p + i) * CHANNELS + c, AS_FLOATS(square[i]));
        }
}

static void spread_floats(const float *x, size_t plane, size_t channels, size_t count,
                          float *places)
{
    for (size_t c = 0; c < CHANNELS; c += WIDTH)
        for (size_t p = 0; p < count; p += WIDTH) {
            const size_t here = count - p < WIDTH ? count - p : WIDTH;
            WORDS square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                square[i] = c + i < channels ? AS_WORDS(LOAD_UP_TO(x + (c + i) * plane + p, here))
                                             : NO_WORDS();
            transpose(square);
            for (size_t i = 0; i < here; i++)
                STORE(places + (p + i) * CHANNELS + c, AS_FLOATS(square[i]));
        }
}

static void gather(const float *sums, size_t channels, size_t count, float *lines, size_t pitch)
{
    for (size_t c = 0; c < channels; c += WIDTH)
        for (size_t p = 0; p < count; p += WIDTH) {
            WORDS square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                square[i] = p + i < count ? LOAD_FLOATS(sums + (p + i) * CHANNELS + c) : NO_WORDS();
            transpose(square);
            for (size_t i = 0; i < WIDTH && c + i < channels; i++)
                STORE(lines + (c + i) * pitch + p, AS_FLOATS(square[i]));
        }
}

#else

static void spread(const uint16_t *x, size_t plane, size_t channels, size_t count, float *places)
{
    for (size_t c = 0; c < CHANNELS; c++)
        for (size_t i = 0; i < count; i++)
            places[i * CHANNELS + c] = c < channels ? ls_widen_bf16(x[c * plane + i]) : 0;
}

static void spread_floats(const float *x, size_t plane, size_t channels, size_t count,
                          float *places)
{
    for (size_t c = 0; c < CHANNELS; c++)
        for (size_t i = 0; i < count; i++)
            places[i * CHANNELS + c] = c < channels ? x[c * plane + i] : 0;
}

static void gather(const float *sums, size_t channels, size_t count, float *lines, size_t pitch)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < count; i++)
            lines[c * pitch + i] = sums[i * CHANNELS + c];
}

#endif

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
