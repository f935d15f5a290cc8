/* See bf16_direct.h. The even terms of a block make one chain, the odd ones another, which go on at
 * once: two registers for each register of sums.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_direct.h"

#include "ops/cpu/vector/bf16_transpose.h"
#include "ops/cpu/vector/registers.h"

enum {
    BLOCK = 32,
    LANES = 16,
    SUMS = LS_ISA_IS(AVX2) ? 6 : 12, /* registers of sums that there is room for */
    VECTORS = 3,
    TERMS = 4 * BLOCK /* that go together */
};

#include "ops/cpu/vector/bf16_block.h"

/* ---- Over positions -------------------------------------------------------------------------- */

/* One term of `rows` lines. All counts are constants here and below. */
INLINE void add_positions(const float *w, size_t depth, const float *x, int rows, int vectors,
                          REGISTER sum[SUMS][VECTORS])
{
    REGISTER y[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        y[v] = LOAD(x + v * WIDTH);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const REGISTER factor = SPREAD(w[(size_t)i * depth]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = FMA_BF16(factor, y[v], sum[i][v]);
    }
}

/* Terms [begin, end) of some lines; `begin` is that of a block. */
INLINE void positions_piece(const struct ls_bf16_over_positions *all, size_t begin, size_t end,
                            size_t line, int rows, int vectors)
{
    const float *w = all->w + line * all->depth, *x = all->x;
    float *sums = all->sums + line * all->pitch;
    REGISTER even[SUMS][VECTORS], odd[SUMS][VECTORS];
    for (size_t k = begin; k < end; k += BLOCK) {
        const size_t left = end - k, here = left < BLOCK ? left : BLOCK;
        const int32_t *offset = all->offset + k;
        clear(rows, vectors, even, odd);
        size_t p = 0;
        for (; p + 2 <= here; p += 2) {
            add_positions(w + k + p, all->depth, x + offset[p], rows, vectors, even);
            add_positions(w + k + p + 1, all->depth, x + offset[p + 1], rows, vectors, odd);
        }
        if (p < here)
            add_positions(w + k + p, all->depth, x + offset[p], rows, vectors, even);
        put_block(sums, all->pitch, k == 0, k + here == all->depth, rows, vectors, even, odd);
    }
}

/* So many terms at a time that what they meet stays in the first cache for all lines. */
INLINE void positions_lines(const struct ls_bf16_over_positions *all, int vectors)
{
    const size_t most = (size_t)(SUMS / vectors);
    for (size_t begin = 0; begin < all->depth; begin += TERMS) {
        const size_t end = all->depth - begin > TERMS ? begin + TERMS : all->depth;
        size_t line = 0;
        for (; all->lines - line >= most; line += most)
            positions_piece(all, begin, end, line, SUMS / vectors, vectors);
        for (; all->lines - line >= 2; line += 2)
            positions_piece(all, begin, end, line, 2, vectors);
        if (line < all->lines)
            positions_piece(all, begin, end, line, 1, vectors);
    }
}

FUSED static void over_positions(const struct ls_bf16_over_positions *all)
{
    if (all->positions <= WIDTH)
        positions_lines(all, 1);
    else if (all->positions <= 2 * WIDTH)
        positions_lines(all, 2);
    else
        positions_lines(all, 3);
}

/* ---- Over lines ------------------------------------------------------------------------------ */

/* The position that `y` is of, and `further` of x. */
INLINE void add_lines(const float *const x[SUMS], size_t further, const float *y, int rows,
                      int vectors, REGISTER sum[SUMS][VECTORS])
{
    REGISTER factor[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        factor[v] = LOAD(y + v * WIDTH);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const REGISTER number = SPREAD(x[i][further]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = FMA_BF16(number, factor[v], sum[i][v]);
    }
}

INLINE void lines_piece(const struct ls_bf16_over_lines *all, size_t line, size_t column, int rows,
                        int vectors)
{
    const float *x[SUMS], *y = all->y + column;
    float *sums = all->sums + line * all->pitch + column;
    REGISTER even[SUMS][VECTORS], odd[SUMS][VECTORS];
    UNROLL
    for (int i = 0; i < rows; i++)
        x[i] = all->x + all->offset[line + (size_t)i];
    for (size_t p = 0; p < all->positions; p += BLOCK) {
        clear(rows, vectors, even, odd);
        for (size_t q = p; q < p + BLOCK; q += 2, y += 2 * all->pitch) {
            add_lines(x, q, y, rows, vectors, even);
            add_lines(x, q + 1, y + all->pitch, rows, vectors, odd);
        }
        put_block(sums, all->pitch, all->first && p == 0, false, rows, vectors, even, odd);
    }
}

INLINE void lines_columns(const struct ls_bf16_over_lines *all, size_t column, int vectors)
{
    size_t line = 0;
    const size_t most = (size_t)(SUMS / vectors);
    for (; all->lines - line >= most; line += most)
        lines_piece(all, line, column, SUMS / vectors, vectors);
    for (; all->lines - line >= 2; line += 2)
        lines_piece(all, line, column, 2, vectors);
    if (line < all->lines)
        lines_piece(all, line, column, 1, vectors);
}

FUSED static void over_lines(const struct ls_bf16_over_lines *all)
{
    size_t column = 0;
    for (; column + 2 * WIDTH <= all->columns; column += 2 * WIDTH)
        lines_columns(all, column, 2);
    for (; column < all->columns; column += WIDTH)
        lines_columns(all, column, 1);
}

/* ---- From bf16 ------------------------------------------------------------------------------- */

#if LS_ISA_IS(AVX512)

static inline __m512 widened(__m256i numbers)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

/* Up to a register's elements of a row: what is read, and what is written. */
struct piece {
    int64_t from; /* element 0, whether it is there or not */
    __mmask16 there, most;
    int32_t to;
};

enum { PIECES = 256 };

static inline __mmask16 first_of(int64_t count)
{
    return (__mmask16)(count >= WIDTH ? 0xffff : count <= 0 ? 0 : (1U << count) - 1);
}

static inline void widen_pieces(const struct piece *piece, size_t pieces, const uint16_t *data,
                                int64_t plane, size_t rows, float *to, size_t pitch)
{
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
        for (size_t i = 0; i < pieces; i++) {
            const __m256i numbers = _mm256_maskz_loadu_epi16(piece[i].there, data + piece[i].from);
            _mm512_mask_storeu_ps(to + piece[i].to, piece[i].most, widened(numbers));
        }
}

static void widen(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                  size_t rows, float *to, size_t pitch)
{
    struct piece piece[PIECES];
    size_t pieces = 0;
    for (; runs > 0; runs--, run++) {
        const int64_t length = run->head + run->count + run->tail;
        for (int64_t at = 0; at < length; at += WIDTH) {
            const int64_t begin = run->head - at;
            piece[pieces++] = (struct piece){
                .from = run->from - begin,
                .there = (__mmask16)(first_of(begin + run->count) & ~first_of(begin)),
                .most = first_of(length - at),
                .to = (int32_t)(run->to + at)};
            if (pieces == PIECES) {
                widen_pieces(piece, pieces, data, plane, rows, to, pitch);
                pieces = 0;
            }
        }
    }
    widen_pieces(piece, pieces, data, plane, rows, to, pitch);
}

#else

static inline void widen_run(const struct ls_bf16_run *run, const uint16_t *data, float *to)
{
    const uint16_t *from = data + run->from;
    float *next = to + run->to;
    for (int32_t i = 0; i < run->head; i++)
        *next++ = 0;
    for (int32_t i = 0; i < run->count; i++)
        next[i] = ls_widen_bf16(from[i]);
    next += run->count;
    for (int32_t i = 0; i < run->tail; i++)
        *next++ = 0;
}

static void widen(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                  size_t rows, float *to, size_t pitch)
{
    for (size_t row = 0; row < rows; row++, data += plane, to += pitch)
        for (size_t r = 0; r < runs; r++)
            widen_run(&run[r], data, to);
}

#endif

/* Numbers of fp32, or of bf16 that are widened: `f32` is a constant. */
INLINE void transpose_numbers(const void *x, bool f32, int64_t plane, size_t channels, size_t count,
                              float *to, size_t pitch)
{
    const size_t all = (channels + LANES - 1) / LANES * LANES;
    for (size_t c = 0; c < all; c += WIDTH)
        for (size_t p = 0; p < count; p += WIDTH) {
            REGISTER square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++) {
                const int64_t at = (int64_t)(c + i) * plane + (int64_t)p;
                if (c + i >= channels)
                    square[i] = ZERO();
                else if (f32)
                    square[i] = LOAD((const float *)x + at);
                else
                    square[i] = LOAD_BF16((const uint16_t *)x + at);
            }
            transpose_floats(square);
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                STORE(to + (p + i) * pitch + c, square[i]);
        }
}

FUSED static void transpose_bf16(const uint16_t *x, int64_t plane, size_t channels, size_t count,
                                 float *to, size_t pitch)
{
    transpose_numbers(x, false, plane, channels, count, to, pitch);
}

FUSED static void transpose_f32(const float *x, int64_t plane, size_t channels, size_t count,
                                float *to, size_t pitch)
{
    transpose_numbers(x, true, plane, channels, count, to, pitch);
}

const struct ls_vector_bf16_direct LS_ISA_NAME(ls_vector_bf16_direct) = {
    .positions = (size_t)VECTORS * WIDTH,
    .over_positions = over_positions,
    .over_lines = over_lines,
    .widen = widen,
    .transpose_bf16 = transpose_bf16,
    .transpose_f32 = transpose_f32,
};
