/* Panels of fp32 numbers for products of bf16 numbers: how ops/cpu/vector/bf16_product.c has them,
 * made from lines or terms of bf16, or of fp32 (f32_panels.h).
 *
 * Within a block the 16 even terms lie before the 16 odd ones:
 *
 *     a: [block][even, odd][line][16 terms]      an element is spread over a register
 *     b: [block][even, odd][16 terms][line]      lines are lanes
 *
 * A pair of bf16 numbers, an even term and the odd one behind it, is a word of 32 bits: the even
 * one's fp32 number is that word shifted by 16 bits, the odd one's its upper half.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_PANELS_H
#define LS_OPS_CPU_VECTOR_BF16_PANELS_H

#include <stdbool.h>
#include <string.h>

#include "ops/cpu/vector/bf16_product.h"
#include "ops/cpu/vector/bf16_transpose.h"
#include "ops/cpu/vector/f32_panels.h"
#include "ops/cpu/vector/registers.h"

/* `rows` rows of `count` numbers each, at most `width`, become whole ones with zeros behind. */
static inline void copy_some(const uint16_t *from, size_t pitch, size_t rows, size_t count,
                             uint16_t *to, size_t all_rows, size_t width)
{
    memset(to, 0, all_rows * width * sizeof *to);
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < count; i++)
            to[row * width + i] = from[row * pitch + i];
}

/* One term of as many lines as a register has lanes. */
static inline void widen(const uint16_t *from, float *to)
{
    STORE(to, LOAD_BF16(from));
}

#if LS_ISA_IS(AVX512)

/* 16 pairs, to the even ones and the odd ones. */
static inline void split_pairs(__m512i pairs, float *even, float *odd)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000U);
    STORE(even, _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)));
    STORE(odd, _mm512_castsi512_ps(_mm512_and_si512(pairs, upper)));
}

static inline void split_line(const uint16_t *from, float *even, float *odd)
{
    split_pairs(_mm512_loadu_si512(from), even, odd);
}

/* A block of WIDTH lines. */
static inline void transpose_lines(const uint16_t *from, size_t pitch, float *to)
{
    __m512i x[WIDTH];
    UNROLL
    for (int i = 0; i < WIDTH; i++)
        x[i] = _mm512_loadu_si512(from + (size_t)i * pitch);
    transpose(x);
    UNROLL
    for (int p = 0; p < HALF; p++)
        split_pairs(x[p], to + p * COLUMNS, to + (HALF + p) * COLUMNS);
}

#elif LS_ISA_IS(AVX2)

static inline __m256i load_pairs(const uint16_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline void split_pairs(__m256i pairs, float *even, float *odd)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000U);
    STORE(even, _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)));
    STORE(odd, _mm256_castsi256_ps(_mm256_and_si256(pairs, upper)));
}

static inline void split_line(const uint16_t *from, float *even, float *odd)
{
    split_pairs(load_pairs(from), even, odd);
    split_pairs(load_pairs(from + HALF), even + WIDTH, odd + WIDTH);
}

static inline void transpose_lines(const uint16_t *from, size_t pitch, float *to)
{
    for (int q = 0; q < HALF; q += WIDTH) {
        __m256i x[WIDTH];
        UNROLL
        for (int i = 0; i < WIDTH; i++)
            x[i] = load_pairs(from + (size_t)i * pitch + 2 * q);
        transpose(x);
        UNROLL
        for (int p = 0; p < WIDTH; p++)
            split_pairs(x[p], to + (q + p) * COLUMNS, to + (HALF + q + p) * COLUMNS);
    }
}

#else

static inline void split_line(const uint16_t *from, float *even, float *odd)
{
    for (int p = 0; p < HALF; p++) {
        widen(from + 2 * p, even + p);
        widen(from + 2 * p + 1, odd + p);
    }
}

static inline void transpose_lines(const uint16_t *from, size_t pitch, float *to)
{
    (void)pitch;
    for (int p = 0; p < HALF; p++) {
        widen(from + 2 * p, to + p * COLUMNS);
        widen(from + 2 * p + 1, to + (HALF + p) * COLUMNS);
    }
}

#endif

/* A block of ROWS lines whose terms are a pitch apart. */
static inline void transpose_terms(const uint16_t *from, size_t pitch, float *to)
{
#if WIDTH > 1
    for (size_t p = 0; p < LS_BF16_BLOCK; p += 8)
        for (size_t half = 0; half < 2; half++)
            for (size_t line = 0; line < ROWS; line += 4) {
                __m128 x[4];
                for (size_t i = 0; i < 4; i++) {
                    const uint16_t *term = from + (p + 2 * i + half) * pitch + line;
                    __m128i four = _mm_loadl_epi64((const __m128i *)(const void *)term);
                    x[i] = _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), four));
                }
                _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
                for (size_t i = 0; i < 4; i++)
                    _mm_storeu_ps(to + (half * ROWS + line + i) * HALF + p / 2, x[i]);
            }
#else
    for (size_t p = 0; p < LS_BF16_BLOCK; p++)
        for (size_t i = 0; i < ROWS; i++)
            widen(from + p * pitch + i, to + (p % 2 * ROWS + i) * HALF + p / 2);
#endif
}

/* ---- Panels, with zeros where lines or terms are missing ------------------------------------- */

static void pack_a_terms(const struct ls_bf16_lines *from, float *to)
{
    uint16_t some[LS_BF16_BLOCK * ROWS];
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += ROWS * LS_BF16_BLOCK) {
        const size_t terms = at_most(from->terms - k, LS_BF16_BLOCK);
        const uint16_t *data = from->data + k * from->pitch;
        bool whole = terms == LS_BF16_BLOCK && from->lines == ROWS;
        if (!whole)
            copy_some(data, from->pitch, terms, from->lines, some, LS_BF16_BLOCK, ROWS);
        transpose_terms(whole ? data : some, whole ? from->pitch : ROWS, to);
    }
}

static void pack_a_lines(const struct ls_bf16_lines *from, float *to)
{
    uint16_t some[LS_BF16_BLOCK];
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += ROWS * LS_BF16_BLOCK) {
        const size_t terms = at_most(from->terms - k, LS_BF16_BLOCK);
        for (size_t i = 0; i < ROWS; i++) {
            const uint16_t *data = from->data + i * from->pitch + k;
            bool whole = terms == LS_BF16_BLOCK && i < from->lines;
            if (!whole)
                copy_some(data, 0, i < from->lines, terms, some, 1, LS_BF16_BLOCK);
            split_line(whole ? data : some, to + i * HALF, to + (ROWS + i) * HALF);
        }
    }
}

static void pack_a(const struct ls_bf16_lines *from, void *panel)
{
    if (from->floats != NULL)
        pack_a_floats(from, panel);
    else if (from->by_term)
        pack_a_terms(from, panel);
    else
        pack_a_lines(from, panel);
}

/* One term, of which `lines` are there. */
static inline void pack_term(const uint16_t *from, size_t lines, size_t registers, float *to)
{
    uint16_t some[WIDTH];
    for (size_t v = 0; v < registers; v++, from += WIDTH, to += WIDTH) {
        const size_t left = lines > v * WIDTH ? lines - v * WIDTH : 0;
        if (left < WIDTH)
            copy_some(from, 0, left > 0, left, some, 1, WIDTH);
        widen(left < WIDTH ? some : from, to);
    }
}

/* Pairs of terms behind the last are not used, and not written. */
static void pack_b_terms(const struct ls_bf16_lines *from, float *to)
{
    const size_t registers = registers_of(from);
    const bool whole = from->lines == COLUMNS;
    for (size_t k = 0; k < from->terms; k += 2, to += COLUMNS) {
        const uint16_t *even = from->data + k * from->pitch, *odd = even + from->pitch;
        if (whole && k + 1 < from->terms) {
            UNROLL
            for (size_t v = 0; v < VECTORS; v++) {
                widen(even + v * WIDTH, to + v * WIDTH);
                widen(odd + v * WIDTH, to + HALF * COLUMNS + v * WIDTH);
            }
        } else {
            pack_term(even, from->lines, registers, to);
            pack_term(odd, k + 1 < from->terms ? from->lines : 0, registers, to + HALF * COLUMNS);
        }
        if (k % LS_BF16_BLOCK == LS_BF16_BLOCK - 2)
            to += HALF * COLUMNS;
    }
}

static void pack_b_lines(const struct ls_bf16_lines *from, float *to)
{
    uint16_t some[WIDTH * LS_BF16_BLOCK];
    const size_t registers = registers_of(from);
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += COLUMNS * LS_BF16_BLOCK)
        for (size_t v = 0; v < registers; v++) {
            const size_t terms = at_most(from->terms - k, LS_BF16_BLOCK), j = v * WIDTH;
            const size_t lines = from->lines > j ? at_most(from->lines - j, WIDTH) : 0;
            const uint16_t *data = from->data + j * from->pitch + k;
            bool whole = terms == LS_BF16_BLOCK && lines == WIDTH;
            if (!whole)
                copy_some(data, from->pitch, lines, terms, some, WIDTH, LS_BF16_BLOCK);
            transpose_lines(whole ? data : some, whole ? from->pitch : LS_BF16_BLOCK, to + j);
        }
}

static void pack_b(const struct ls_bf16_lines *from, void *panel)
{
    if (from->floats != NULL)
        pack_b_floats(from, panel);
    else if (from->by_term)
        pack_b_terms(from, panel);
    else
        pack_b_lines(from, panel);
}

#endif
