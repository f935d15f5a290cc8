/* See bf16_depthwise.h.
 *
 * Several sums are kept at a time, so that an addition need not wait for the one before it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_depthwise.h"

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

static void spread(const uint16_t *x, size_t plane, size_t channels, size_t count, float *places)
{
    for (size_t c = channels; c < CHANNELS; c++)
        for (size_t i = 0; i < count; i++)
            places[i * CHANNELS + c] = 0;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < count; i++)
            places[i * CHANNELS + c] = ls_widen_bf16(x[c * plane + i]);
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
            sum[i] = FMA(LOAD(from[i] + offset), weight, sum[i]);
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
                half[0][k] = FMA(LOAD(from + further[k]), factor, half[0][k]);
        } else {
            UNROLL
            for (int k = 0; k < taps; k++)
                half[1][k] = FMA(LOAD(from + further[k]), factor, half[1][k]);
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
    .chains = chains,
    .blocks = blocks,
    .end_blocks = end_blocks,
};
