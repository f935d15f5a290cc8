/* See bf16_pairs.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/avx512_bf16/bf16_pairs.h"

#include "ops/cpu/vector/bf16_transpose.h"
#include "ops/cpu/vector/registers.h"

enum {
    BLOCK = 32,
    WORDS = BLOCK / 2,
    SUMS = 12, /* registers of sums that there is room for, with two chains each */
    VECTORS = 3,
    BLOCKS = 8 /* that go together */
};

#include "ops/cpu/vector/bf16_block.h"

/* sum + upper a upper b, then + lower a lower b, each rounded; denormal numbers are zero. */
INLINE __m512 add_pair(__m512i a, __m512i b, __m512 sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

static inline __m512i words(const uint32_t *from)
{
    return _mm512_loadu_si512(from);
}

/* ---- Over positions -------------------------------------------------------------------------- */

/* One step of `rows` lines. All counts are constants here and below. */
INLINE void add_step(const uint32_t *w, size_t line, const uint32_t *x, int rows, int vectors,
                     __m512 sum[SUMS][VECTORS])
{
    __m512i y[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        y[v] = words(x + v * WIDTH);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i factor = _mm512_set1_epi32((int)w[(size_t)i * line]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add_pair(factor, y[v], sum[i][v]);
    }
}

/* Where the steps of a piece stand. */
struct place {
    const uint32_t *w;
    const int32_t *offset;
};

/* Blocks [begin, end) of some lines, from `place` on. */
INLINE struct place positions_piece(const struct ls_bf16_pair_positions *all, size_t begin,
                                    size_t end, struct place place, float *sums, int rows,
                                    int vectors)
{
    const size_t line = all->line, step = all->step;
    const uint32_t *x = all->x;
    __m512 even[SUMS][VECTORS], odd[SUMS][VECTORS];
    for (size_t b = begin; b < end; b++) {
        const size_t evens = all->block[b].even, odds = all->block[b].odd;
        const size_t both = evens < odds ? evens : odds;
        clear(rows, vectors, even, odd);
        for (size_t s = 0; s < both; s++, place.w += 2 * step, place.offset += 2) {
            add_step(place.w, line, x + place.offset[0], rows, vectors, even);
            add_step(place.w + step, line, x + place.offset[1], rows, vectors, odd);
        }
        for (size_t s = both; s < evens; s++, place.w += step, place.offset++)
            add_step(place.w, line, x + *place.offset, rows, vectors, even);
        for (size_t s = both; s < odds; s++, place.w += step, place.offset++)
            add_step(place.w, line, x + *place.offset, rows, vectors, odd);
        put_block(sums, all->pitch, b == 0, b + 1 == all->blocks, rows, vectors, even, odd);
    }
    return place;
}

/* So many blocks at a time that what they meet stays in the first cache for all lines. */
INLINE void positions_lines(const struct ls_bf16_pair_positions *all, int vectors)
{
    const size_t most = (size_t)(SUMS / vectors);
    struct place place = {.w = all->w, .offset = all->offset}, next = place;
    for (size_t begin = 0; begin < all->blocks; begin += BLOCKS, place = next) {
        const size_t end = all->blocks - begin > BLOCKS ? begin + BLOCKS : all->blocks;
        float *sums = all->sums;
        struct place here = place;
        for (size_t line = 0; line < all->lines;) {
            const size_t left = all->lines - line, rows = left >= most ? most : left >= 2 ? 2 : 1;
            if (rows == most)
                next = positions_piece(all, begin, end, here, sums, SUMS / vectors, vectors);
            else if (rows == 2)
                next = positions_piece(all, begin, end, here, sums, 2, vectors);
            else
                next = positions_piece(all, begin, end, here, sums, 1, vectors);
            line += rows;
            here.w += rows * all->line;
            sums += rows * all->pitch;
        }
        next.w = place.w + (size_t)(next.offset - place.offset) * all->step;
    }
}

static void over_positions(const struct ls_bf16_pair_positions *all)
{
    if (all->positions <= WIDTH)
        positions_lines(all, 1);
    else if (all->positions <= 2 * WIDTH)
        positions_lines(all, 2);
    else
        positions_lines(all, 3);
}

/* ---- Over lines ------------------------------------------------------------------------------ */

/* The step that `y` is of. `group` lines at a time are a stride apart. */
INLINE void add_lines(const uint32_t *const x[SUMS], size_t stride, const uint32_t *y, int rows,
                      int vectors, int group, __m512 sum[SUMS][VECTORS])
{
    __m512i factor[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        factor[v] = words(y + v * WIDTH);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i number = _mm512_set1_epi32((int)x[i / group][(size_t)(i % group) * stride]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add_pair(number, factor[v], sum[i][v]);
    }
}

INLINE void lines_piece(const struct ls_bf16_pair_lines *all, size_t line, size_t column, int rows,
                        int vectors, int group)
{
    const uint32_t *x[SUMS], *y = all->y + column;
    const size_t pitch = all->pitch, count = all->positions / 2, stride = all->stride;
    float *sums = all->sums + line * pitch + column;
    __m512 even[SUMS][VECTORS], odd[SUMS][VECTORS];
    UNROLL
    for (int i = 0; i < rows; i += group)
        x[i / group] = all->x + all->offset[line + (size_t)i];
    for (size_t i = 0; i < count; i += WORDS) {
        clear(rows, vectors, even, odd);
        for (size_t j = 0; j < WORDS; j += 2, y += 2 * pitch) {
            add_lines(x, stride, y, rows, vectors, group, even);
            UNROLL
            for (int r = 0; r < rows; r += group)
                x[r / group]++;
            add_lines(x, stride, y + pitch, rows, vectors, group, odd);
            UNROLL
            for (int r = 0; r < rows; r += group)
                x[r / group]++;
        }
        put_block(sums, pitch, all->first && i == 0, false, rows, vectors, even, odd);
    }
}

/* `group` lines of a register's columns, or half as many of two. */
INLINE void lines_columns(const struct ls_bf16_pair_lines *all, size_t column, int vectors,
                          int group)
{
    size_t line = 0;
    const size_t most = (size_t)(SUMS / vectors);
    for (; all->lines - line >= most; line += most)
        lines_piece(all, line, column, SUMS / vectors, vectors, group);
    for (; all->lines - line >= 2; line += 2)
        lines_piece(all, line, column, 2, vectors, group < 2 ? group : 2);
    if (line < all->lines)
        lines_piece(all, line, column, 1, vectors, 1);
}

/* Twelve lines are three times four, and six are three times two. */
static void over_lines(const struct ls_bf16_pair_lines *all)
{
    size_t column = 0;
    for (; column + 2 * WIDTH <= all->columns; column += 2 * WIDTH)
        if (all->stride != 0)
            lines_columns(all, column, 2, 2);
        else
            lines_columns(all, column, 2, 1);
    for (; column < all->columns; column += WIDTH)
        if (all->stride != 0)
            lines_columns(all, column, 1, 4);
        else
            lines_columns(all, column, 1, 1);
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

static inline __m512i upper_halves(__m256i numbers)
{
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16);
}

static inline __m512i with_lower(__m512i upper, __m256i lower)
{
    return _mm512_or_si512(upper, _mm512_cvtepu16_epi32(lower));
}

static inline __mmask32 first_of(int64_t count)
{
    return count >= BLOCK ? UINT32_MAX : count <= 0 ? 0 : (UINT32_C(1) << count) - 1;
}

/* Up to a register's numbers of a row: what is read, and what is written. */
struct piece {
    int64_t from; /* number 0, whether it is there or not */
    __mmask32 there, most;
    int32_t to;
};

enum { PIECES = 256 };

static inline void fill_row(const struct piece *piece, size_t pieces, const uint16_t *upper,
                            const uint16_t *lower, __mmask32 two, uint32_t *to)
{
    const __m512i low =
        _mm512_set_epi16(15, 47, 14, 46, 13, 45, 12, 44, 11, 43, 10, 42, 9, 41, 8, 40, 7, 39, 6, 38,
                         5, 37, 4, 36, 3, 35, 2, 34, 1, 33, 0, 32);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (size_t i = 0; i < pieces; i++, piece++) {
        const __m512i a = _mm512_maskz_loadu_epi16(piece->there, upper + piece->from);
        const __m512i b = _mm512_maskz_loadu_epi16(piece->there & two, lower + piece->from);
        const __mmask16 behind = (__mmask16)(piece->most >> WIDTH);
        _mm512_mask_storeu_epi32(to + piece->to, (__mmask16)piece->most,
                                 _mm512_permutex2var_epi16(a, low, b));
        if (behind != 0)
            _mm512_mask_storeu_epi32(to + piece->to + WIDTH, behind,
                                     _mm512_permutex2var_epi16(a, high, b));
    }
}

static void fill_pieces(const struct piece *piece, size_t pieces, const uint16_t *data,
                        int64_t plane, const struct ls_bf16_pair_planes *pair, size_t rows,
                        uint32_t *to, size_t pitch)
{
    for (size_t row = 0; row < rows; row++, pair++, to += pitch) {
        const bool two = pair->lower >= 0;
        fill_row(piece, pieces, data + pair->upper * plane,
                 data + (two ? pair->lower : pair->upper) * plane, two ? UINT32_MAX : 0, to);
    }
}

static struct piece piece_of(const struct ls_bf16_run *run, int64_t at)
{
    const int64_t length = run->head + run->count + run->tail, begin = run->head - at;
    return (struct piece){.from = run->from - begin,
                          .there = first_of(begin + run->count) & ~first_of(begin),
                          .most = first_of(length - at),
                          .to = (int32_t)(run->to + at)};
}

static void fill(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                 const struct ls_bf16_pair_planes *pair, size_t rows, uint32_t *to, size_t pitch)
{
    struct piece piece[PIECES];
    size_t pieces = 0;
    for (; runs > 0; runs--, run++) {
        const int64_t length = run->head + run->count + run->tail;
        for (int64_t at = 0; at < length; at += BLOCK) {
            piece[pieces++] = piece_of(run, at);
            if (pieces == PIECES) {
                fill_pieces(piece, pieces, data, plane, pair, rows, to, pitch);
                pieces = 0;
            }
        }
    }
    fill_pieces(piece, pieces, data, plane, pair, rows, to, pitch);
}

/* 0 and 2, 1 and 3 of each four numbers. */
static inline __m512i in_pairs(__m512i numbers)
{
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
    return _mm512_shuffle_epi8(numbers, order);
}

static void fill_positions(const struct ls_bf16_run *run, size_t runs, const uint16_t *data,
                           int64_t plane, size_t rows, uint32_t *to, size_t pitch)
{
    for (; runs > 0; runs--, run++) {
        const int64_t length = run->head + run->count + run->tail;
        for (int64_t at = 0; at < length; at += BLOCK) {
            const struct piece piece = piece_of(run, at);
            const uint16_t *from = data + piece.from;
            uint32_t *words = to + piece.to / 2;
            for (size_t row = 0; row < rows; row++, from += plane, words += pitch)
                _mm512_mask_storeu_epi16(words, piece.most,
                                         in_pairs(_mm512_maskz_loadu_epi16(piece.there, from)));
        }
    }
}

static void transpose_pairs(const uint16_t *y, int64_t plane, size_t channels, size_t count,
                            uint32_t *to, size_t pitch)
{
    const size_t all = (channels + WIDTH - 1) / WIDTH * WIDTH;
    const __mmask32 upper = 0xaaaaaaaa;
    for (size_t c = 0; c < all; c += WIDTH)
        for (size_t p = 0; p < count; p += BLOCK) {
            __m512i square[WIDTH];
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                square[i] = c + i < channels ? _mm512_loadu_si512(y + (int64_t)(c + i) * plane + p)
                                             : _mm512_setzero_si512();
            transpose(square);
            uint32_t *row = to + p / 2 * pitch + c;
            UNROLL
            for (size_t i = 0; i < WIDTH; i += 2) { /* 0 and 1, 2 and 3 */
                const __m512i a = square[i], b = square[i + 1];
                const __m512i even = _mm512_mask_blend_epi16(upper, b, _mm512_slli_epi32(a, 16));
                const __m512i odd = _mm512_mask_blend_epi16(upper, _mm512_srli_epi32(b, 16), a);
                _mm512_storeu_si512(row + i * pitch, even);
                _mm512_storeu_si512(row + (i + 1) * pitch, odd);
            }
        }
}

static void pair_terms(const uint16_t *from, size_t terms, uint32_t *to)
{
    for (size_t k = 0; k < terms; k += BLOCK) {
        const __mmask32 there = first_of((int64_t)(terms - k));
        const __m512i numbers = _mm512_maskz_loadu_epi16(there, from + k);
        _mm512_mask_storeu_epi16(to + k / 2, there, in_pairs(numbers));
    }
}

static bool all_finite(const uint32_t *word, size_t count)
{
    const __m512i infinite = _mm512_set1_epi16(0x7f80);
    __mmask32 others = 0;
    for (size_t i = 0; i < count; i += WIDTH) {
        const __mmask16 there = (__mmask16)first_of((int64_t)(count - i));
        const __m512i exponents =
            _mm512_and_si512(_mm512_maskz_loadu_epi32(there, word + i), infinite);
        others |= _mm512_cmpeq_epi16_mask(exponents, infinite);
    }
    return others == 0;
}

static void join(const uint16_t *upper, const uint16_t *lower, size_t count, uint32_t *to)
{
    for (size_t i = 0; i < count; i += WIDTH) {
        const __mmask16 there = (__mmask16)first_of((int64_t)(count - i));
        __m512i x = upper_halves(_mm256_maskz_loadu_epi16(there, upper + i));
        if (lower != NULL)
            x = with_lower(x, _mm256_maskz_loadu_epi16(there, lower + i));
        _mm512_mask_storeu_epi32(to + i, there, x);
    }
}

const struct ls_bf16_pairs ls_bf16_pairs_avx512_bf16 = {
    .positions = (size_t)VECTORS * WIDTH,
    .over_positions = over_positions,
    .over_lines = over_lines,
    .fill = fill,
    .fill_positions = fill_positions,
    .transpose = transpose_pairs,
    .pair_terms = pair_terms,
    .finite = all_finite,
    .join = join,
};
