/* Transposes a square of pairs of bf16 numbers, or of floats: as many registers as one has words of
 * 32 bits. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_TRANSPOSE_H
#define LS_OPS_CPU_VECTOR_BF16_TRANSPOSE_H

#include "ops/cpu/vector/registers.h"

#if LS_ISA_IS(AVX512)

/* Word j of x[i] and word i of x[j] change places. */
static inline void transpose(__m512i x[WIDTH])
{
    __m512i y[WIDTH];
    UNROLL
    for (int i = 0; i < WIDTH; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    UNROLL
    for (int i = 0; i < WIDTH; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) { /* quarters of registers are words of four lines by now */
        y[i] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
        y[i + 4] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
        y[i + 8] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
        y[i + 12] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0x88);
        x[i + 4] = _mm512_shuffle_i32x4(y[i + 4], y[i + 12], 0x88);
        x[i + 8] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0xdd);
        x[i + 12] = _mm512_shuffle_i32x4(y[i + 4], y[i + 12], 0xdd);
    }
}

#elif LS_ISA_IS(AVX2)

static inline void transpose(__m256i x[WIDTH])
{
    __m256i y[WIDTH];
    UNROLL
    for (int i = 0; i < WIDTH; i += 2) {
        y[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    }
    UNROLL
    for (int i = 0; i < WIDTH; i += 4) {
        x[i] = _mm256_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm256_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm256_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm256_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        y[i] = _mm256_permute2x128_si256(x[i], x[i + 4], 0x20);
        y[i + 4] = _mm256_permute2x128_si256(x[i], x[i + 4], 0x31);
    }
    UNROLL
    for (int i = 0; i < WIDTH; i++)
        x[i] = y[i];
}

#endif

/* The same of floats; a single one stays where it is. */
static inline void transpose_floats(REGISTER x[WIDTH])
{
#if LS_ISA_IS(AVX512)
    transpose((__m512i *)(void *)x);
#elif LS_ISA_IS(AVX2)
    transpose((__m256i *)(void *)x);
#else
    (void)x;
#endif
}

#endif
