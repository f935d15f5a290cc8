/* Tiles of products of bf16 numbers by VDPBF16PS, two terms of a chain at once.
 *
 * For each word of 32 bits, the upper half of which holds one number and the lower half another,
 *
 *     c = fma(a.upper, b.upper, c),  then  c = fma(a.lower, b.lower, c),
 *
 * both rounded to nearest even, with denormal numbers as zero, whatever the thread's mode. So a
 * word holds two terms of one chain, the earlier one in its upper half: of four terms in a row, 0
 * and 2 become the first word, and 1 and 3 the second. Within a block words of the even chain and
 * of the odd one alternate. Panels:
 *
 *     a: [block][8 lines][16 words]
 *     b: [block][16 words][32 lines]
 *
 * A word of a is spread over a register, whose lanes are lines of b. Lines of a that are missing
 * are not computed, and those of b only up to a whole register.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/avx512_bf16/bf16_product.h"

#include "ops/cpu/vector/bf16_transpose.h"

enum {
    ROWS = 8,
    VECTORS = 2,
    COLUMNS = VECTORS * WIDTH,
    WORDS = LS_BF16_BLOCK / 2, /* of a line in a block */
    DEPTH =
        2 * LS_BF16_READ_TERMS /* with which a panel of b leaves room in a first cache of 32 KiB */
};

#include "ops/cpu/vector/bf16_block.h"

static inline size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- Panels, with zeros where lines or terms are missing ------------------------------------- */

static inline __mmask32 mask_of(size_t numbers)
{
    return numbers >= 32 ? UINT32_MAX : (UINT32_C(1) << numbers) - 1;
}

/* A block of a line as words. */
static inline __m512i words_of(__m512i line)
{
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
    return _mm512_shuffle_epi8(line, order);
}

/* The block of terms from k on, of one line. */
static inline __m512i load_line(const struct ls_bf16_lines *from, size_t line, size_t k)
{
    if (line >= from->lines)
        return _mm512_setzero_si512();
    return words_of(
        _mm512_maskz_loadu_epi16(mask_of(from->terms - k), from->data + line * from->pitch + k));
}

static void pack_a_lines(const struct ls_bf16_lines *from, uint32_t *to)
{
    const size_t lines = at_most(from->lines, ROWS);
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += ROWS * WORDS)
        for (size_t i = 0; i < lines; i++)
            _mm512_storeu_si512(to + i * WORDS, load_line(from, i, k));
}

/* Eight numbers of term k. */
static inline __m128i load_eight(const struct ls_bf16_lines *from, __mmask8 lines, size_t k)
{
    if (k >= from->terms)
        return _mm_setzero_si128();
    return _mm_maskz_loadu_epi16(lines, from->data + k * from->pitch);
}

/* Two words of each of eight lines, which are terms k to k + 3. */
static inline __m512i load_four_terms(const struct ls_bf16_lines *from, __mmask8 lines, size_t k)
{
    static const uint16_t order[32] = {16, 0, 24, 8,  17, 1, 25, 9,  18, 2, 26, 10, 19, 3, 27, 11,
                                       20, 4, 28, 12, 21, 5, 29, 13, 22, 6, 30, 14, 23, 7, 31, 15};
    __m512i x = _mm512_castsi128_si512(load_eight(from, lines, k));
    x = _mm512_inserti32x4(x, load_eight(from, lines, k + 1), 1);
    x = _mm512_inserti32x4(x, load_eight(from, lines, k + 2), 2);
    x = _mm512_inserti32x4(x, load_eight(from, lines, k + 3), 3);
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), x);
}

/* Double word j of x[i] and double word i of x[j] change places. */
static inline void transpose_doubles(__m512i x[8])
{
    __m512i y[8];
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        y[i] = _mm512_unpacklo_epi64(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) { /* quarters of registers are double words of two lines by now */
        x[i] = _mm512_shuffle_i32x4(y[i], y[i + 2], 0x88);
        x[i + 2] = _mm512_shuffle_i32x4(y[i], y[i + 2], 0xdd);
        x[i + 4] = _mm512_shuffle_i32x4(y[i + 4], y[i + 6], 0x88);
        x[i + 6] = _mm512_shuffle_i32x4(y[i + 4], y[i + 6], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        y[i] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
        y[i + 4] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 8; i++)
        x[i] = y[i];
}

static void pack_a_terms(const struct ls_bf16_lines *from, uint32_t *to)
{
    const __mmask8 lines = (__mmask8)mask_of(at_most(from->lines, ROWS));
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += ROWS * WORDS) {
        __m512i x[ROWS];
        for (size_t i = 0; i < ROWS; i++)
            x[i] = load_four_terms(from, lines, k + 4 * i);
        transpose_doubles(x);
        UNROLL
        for (size_t i = 0; i < ROWS; i++)
            _mm512_storeu_si512(to + i * WORDS, x[i]);
    }
}

static void pack_a(const struct ls_bf16_lines *from, void *panel)
{
    if (from->by_term)
        pack_a_terms(from, panel);
    else
        pack_a_lines(from, panel);
}

static inline __m512i load_term(const struct ls_bf16_lines *from, __mmask32 lines, size_t k)
{
    if (k >= from->terms)
        return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16(lines, from->data + k * from->pitch);
}

/* Words of an earlier term and a later one, of 32 lines. */
static inline void store_words(__m512i earlier, __m512i later, uint32_t *to)
{
    static const uint16_t order[64] = {
        0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
        11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53,
        22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
    const __m512i first = _mm512_loadu_si512(order), second = _mm512_loadu_si512(order + 32);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(later, first, earlier));
    _mm512_storeu_si512(to + WIDTH, _mm512_permutex2var_epi16(later, second, earlier));
}

/* Words behind those of the last term are not used, and not written. */
static void pack_b_terms(const struct ls_bf16_lines *from, uint32_t *to)
{
    const __mmask32 lines = mask_of(from->lines);
    for (size_t k = 0; k < from->terms; k += 4, to += 2 * COLUMNS)
        for (size_t odd = 0; odd < 2; odd++)
            store_words(load_term(from, lines, k + odd), load_term(from, lines, k + odd + 2),
                        to + odd * COLUMNS);
}

static void pack_b_lines(const struct ls_bf16_lines *from, uint32_t *to)
{
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += COLUMNS * WORDS)
        for (size_t first = 0; first < at_most(from->lines, COLUMNS); first += WIDTH) {
            __m512i x[WIDTH];
            for (size_t i = 0; i < WIDTH; i++)
                x[i] = load_line(from, first + i, k);
            transpose(x);
            UNROLL
            for (size_t i = 0; i < WIDTH; i++)
                _mm512_storeu_si512(to + i * COLUMNS + first, x[i]);
        }
}

static void pack_b(const struct ls_bf16_lines *from, void *panel)
{
    if (from->by_term)
        pack_b_terms(from, panel);
    else
        pack_b_lines(from, panel);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* A word of each element; `rows` and `vectors` are constants here and below. */
INLINE void add_word(const uint32_t *a, const uint32_t *b, int rows, int vectors,
                     __m512 sum[ROWS][VECTORS])
{
    __m512i y[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        y[v] = _mm512_loadu_si512(b + v * WIDTH);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i x = _mm512_set1_epi32((int)a[i * WORDS]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)x, (__m512bh)y[v]);
    }
}

INLINE void piece(const struct ls_bf16_tile *tile, size_t row, int rows, int vectors)
{
    const uint32_t *a = (const uint32_t *)tile->a + row * WORDS, *b = tile->b;
    float *c = tile->c + row * tile->pitch;
    __m512 even[ROWS][VECTORS], odd[ROWS][VECTORS];
    for (size_t k = 0; k < tile->terms; k += LS_BF16_BLOCK) {
        const size_t left = tile->terms - k, words = at_most((left + 3) / 4 * 2, WORDS);
        clear(rows, vectors, even, odd);
        for (size_t w = 0; w < words; w += 2) {
            add_word(a + w, b + w * COLUMNS, rows, vectors, even);
            add_word(a + w + 1, b + (w + 1) * COLUMNS, rows, vectors, odd);
        }
        put_block(c, tile->pitch, tile->first && k == 0, tile->last && left <= LS_BF16_BLOCK, rows,
                  vectors, even, odd);
        a += ROWS * WORDS;
        b += COLUMNS * WORDS;
    }
}

/* All rows of a tile, `most` at a time: as many as there are registers for. */
INLINE void rows_of(const struct ls_bf16_tile *tile, int most, int vectors)
{
    size_t row = 0;
    for (; tile->rows - row >= (size_t)most; row += (size_t)most)
        piece(tile, row, most, vectors);
    for (; tile->rows - row >= 4; row += 4)
        piece(tile, row, 4, vectors);
    for (; tile->rows - row >= 2; row += 2)
        piece(tile, row, 2, vectors);
    if (row < tile->rows)
        piece(tile, row, 1, vectors);
}

static void multiply_1(const struct ls_bf16_tile *tile)
{
    rows_of(tile, ROWS, 1);
}

static void multiply_2(const struct ls_bf16_tile *tile)
{
    rows_of(tile, 4, 2);
}

static void multiply(const struct ls_bf16_tile *tile)
{
    if (tile->columns <= WIDTH)
        multiply_1(tile);
    else
        multiply_2(tile);
}

const struct ls_vector_bf16_product ls_bf16_avx512_bf16 = {
    .rows = ROWS,
    .columns = COLUMNS,
    .block_bytes = LS_BF16_BLOCK * sizeof(uint16_t),
    .depth = DEPTH,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
