/* The panels of bf16_panels.h, made from lines or terms of fp32.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_F32_PANELS_H
#define LS_OPS_CPU_VECTOR_F32_PANELS_H

#include <string.h>

#include "ops/cpu/vector/bf16_product.h"
#include "ops/cpu/vector/bf16_transpose.h"
#include "ops/cpu/vector/registers.h"

enum { ROWS = 8, VECTORS = WIDTH > 1 ? 3 : 16 };

enum { COLUMNS = VECTORS * WIDTH, HALF = LS_BF16_BLOCK / 2 };

static inline size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Registers of b of which tiles see anything. */
static inline size_t registers_of(const struct ls_bf16_lines *from)
{
    return WIDTH > 1 ? (from->lines + WIDTH - 1) / WIDTH : VECTORS;
}

/* Where term k of a panel begins, whose blocks have `lines` lines; those of b lie side by side. */
static inline size_t term_of_b(size_t k)
{
    return (k / LS_BF16_BLOCK * LS_BF16_BLOCK + k % 2 * HALF + k % LS_BF16_BLOCK / 2) * COLUMNS;
}

/* A line of a block of a: its even terms, and its odd ones. */
#if LS_ISA_IS(AVX512)
static inline void split_floats(const float *from, float *even, float *odd)
{
    const __m512i evens =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    const __m512 low = LOAD(from), high = LOAD(from + WIDTH);
    STORE(even, _mm512_permutex2var_ps(low, evens, high));
    STORE(odd, _mm512_permutex2var_ps(low, odds, high));
}
#else
static inline void split_floats(const float *from, float *even, float *odd)
{
    for (int p = 0; p < HALF; p++) {
        even[p] = from[2 * p];
        odd[p] = from[2 * p + 1];
    }
}
#endif

static void pack_a_float_lines(const struct ls_bf16_lines *from, float *to)
{
    float some[LS_BF16_BLOCK];
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += ROWS * LS_BF16_BLOCK) {
        const size_t terms = at_most(from->terms - k, LS_BF16_BLOCK);
        for (size_t i = 0; i < ROWS; i++) {
            const float *line = from->floats + i * from->pitch + k;
            if (terms < LS_BF16_BLOCK || i >= from->lines) {
                memset(some, 0, sizeof some);
                if (i < from->lines)
                    memcpy(some, line, terms * sizeof *some);
                line = some;
            }
            split_floats(line, to + i * HALF, to + (ROWS + i) * HALF);
        }
    }
}

/* A whole block of ROWS lines, at most a register of them. */
#if WIDTH > 1
static inline void transpose_float_terms(const float *from, size_t pitch, float *to)
{
    for (size_t odd = 0; odd < 2; odd++)
        for (size_t p = 0; p < HALF; p += WIDTH) {
            const float *term = from + (2 * p + odd) * pitch;
            float *place = to + odd * ROWS * HALF + p;
            REGISTER x[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                x[i] = LOAD_UP_TO(term + 2 * i * pitch, ROWS);
            transpose_floats(x);
            UNROLL
            for (size_t i = 0; i < ROWS; i++)
                STORE(place + i * HALF, x[i]);
        }
}
#endif

static void pack_a_float_terms(const struct ls_bf16_lines *from, float *to)
{
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += ROWS * LS_BF16_BLOCK) {
        const size_t terms = at_most(from->terms - k, LS_BF16_BLOCK);
        const float *term = from->floats + k * from->pitch;
#if WIDTH > 1
        if (terms == LS_BF16_BLOCK && from->lines == ROWS) {
            transpose_float_terms(term, from->pitch, to);
            continue;
        }
#endif
        if (terms < LS_BF16_BLOCK || from->lines < ROWS)
            memset(to, 0, sizeof(float[ROWS * LS_BF16_BLOCK]));
        for (size_t p = 0; p < terms; p++, term += from->pitch)
            for (size_t i = 0; i < from->lines; i++)
                to[(p % 2 * ROWS + i) * HALF + p / 2] = term[i];
    }
}

static void pack_a_floats(const struct ls_bf16_lines *from, float *to)
{
    if (from->by_term)
        pack_a_float_terms(from, to);
    else
        pack_a_float_lines(from, to);
}

/* The odd term behind an even one that is the last is zeros; pairs behind it are not used. */
static void pack_b_float_terms(const struct ls_bf16_lines *from, float *to)
{
    const size_t width = registers_of(from) * WIDTH, rest = width - from->lines;
    for (size_t k = 0; k < from->terms; k++) {
        const float *term = from->floats + k * from->pitch;
        float *place = to + term_of_b(k);
        if (from->lines == COLUMNS) {
            UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                STORE(place + v * WIDTH, LOAD(term + v * WIDTH));
        } else {
            memcpy(place, term, from->lines * sizeof *place);
            memset(place + from->lines, 0, rest * sizeof *place);
        }
    }
    if (from->terms % 2 != 0)
        memset(to + term_of_b(from->terms), 0, width * sizeof *to);
}

/* Terms [k, k + WIDTH) of WIDTH lines. */
static inline void transpose_float_lines(const float *from, size_t pitch, size_t k, float *to)
{
    REGISTER x[WIDTH];
    UNROLL
    for (size_t i = 0; i < WIDTH; i++)
        x[i] = LOAD(from + i * pitch);
    transpose_floats(x);
    UNROLL
    for (size_t i = 0; i < WIDTH; i++)
        STORE(to + term_of_b(k + i), x[i]);
}

static void pack_b_float_lines(const struct ls_bf16_lines *from, float *to)
{
    float some[WIDTH * WIDTH];
    const size_t registers = registers_of(from), whole = from->terms / WIDTH * WIDTH;
    const size_t all = (from->terms + LS_BF16_BLOCK - 1) / LS_BF16_BLOCK * LS_BF16_BLOCK;
    for (size_t v = 0; v < registers; v++) {
        const size_t j = v * WIDTH;
        const size_t lines = from->lines > j ? at_most(from->lines - j, WIDTH) : 0;
        const float *line = from->floats + j * from->pitch;
        for (size_t k = 0; k < all; k += WIDTH) {
            if (k < whole && lines == WIDTH) {
                transpose_float_lines(line + k, from->pitch, k, to + j);
                continue;
            }
            const size_t terms = k < from->terms ? at_most(from->terms - k, WIDTH) : 0;
            memset(some, 0, sizeof some);
            for (size_t i = 0; i < lines; i++)
                for (size_t p = 0; p < terms; p++)
                    some[i * WIDTH + p] = line[i * from->pitch + k + p];
            transpose_float_lines(some, WIDTH, k, to + j);
        }
    }
}

static void pack_b_floats(const struct ls_bf16_lines *from, float *to)
{
    if (from->by_term)
        pack_b_float_terms(from, to);
    else
        pack_b_float_lines(from, to);
}

#endif
