/* See bf16_combine.h. A word has an earlier term in its upper half and the next one in its lower
 * half: VDPBF16PS adds both to a sum, in this order, each with one rounding (bf16_product.c), which
 * is what two fused operations do with them.
 *
 * Words of q are made while it is read, since few rows of a result use them; those of p lie in a
 * small block, from which they are spread.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/avx512_bf16/bf16_combine.h"

#include "ops/cpu/vector/registers.h"

enum {
    ROWS = 12, /* of a result at a time */
    VECTORS = 2,
    COLUMNS = VECTORS * WIDTH,
    PAIRS = LS_COMBINE_DEPTH / 2,
    GROUPS = 8 /* of rows, for which words of q are made once */
};

/* Some rows and columns of a result, and their terms: at most LS_COMBINE_DEPTH. */
struct piece {
    const uint32_t *p; /* words: [pair][ROWS] */
    const float *q, *ahead;
    size_t q_row, depth;
    uint32_t *words; /* of q: [pair][COLUMNS] */
    float *out;
    size_t out_row;
    __mmask16 some[VECTORS]; /* columns */
    bool first;
    const float *next[LS_PRODUCT_NEXT];
    size_t next_row;
};

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline __m512i word_of(__m512i earlier, __m512i later)
{
    return _mm512_or_si512(earlier, _mm512_srli_epi32(later, 16));
}

/* Bits that a bf16 number has none of. */
static inline bool is_rounded(__m512i bits)
{
    return _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0xffff)) == 0;
}

/* ---- Words of p ------------------------------------------------------------------------------ */

static inline __m512i load_term(const struct ls_matrix *p, size_t rows, size_t r)
{
    const float *term = p->data + r * p->step;
    if (p->row == 1)
        return _mm512_castps_si512(LOAD_SOME(term, rows));
    uint32_t bits[WIDTH] = {0};
    for (size_t i = 0; i < rows; i++)
        bits[i] = ls_float_bits(term[i * p->row]);
    return _mm512_loadu_si512(bits);
}

/* Terms [begin, begin + depth) of `rows` rows. Behind an odd number of them comes +0. */
static bool make_words(const struct ls_matrix *p, size_t rows, size_t begin, size_t depth,
                       uint32_t *words)
{
    __m512i seen = _mm512_setzero_si512();
    for (size_t r = 0; r < depth; r += 2, words += ROWS) {
        const __m512i earlier = load_term(p, rows, begin + r);
        const __m512i later =
            r + 1 < depth ? load_term(p, rows, begin + r + 1) : _mm512_setzero_si512();
        seen = _mm512_or_si512(seen, _mm512_or_si512(earlier, later));
        _mm512_mask_storeu_epi32(words, MASK(ROWS), word_of(earlier, later));
    }
    return is_rounded(seen);
}

/* ---- Words of q ------------------------------------------------------------------------------ */

/* Two terms. Behind the last of an odd number comes -0: together with +0 of p it is a term that
 * changes no sum, not even -0. */
INLINE __m512i read_pair(const struct piece *piece, const float *q, bool both, __m512i seen,
                         __m512i y[VECTORS])
{
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const float *from = q + v * WIDTH;
        const __m512i earlier = _mm512_castps_si512(_mm512_maskz_loadu_ps(piece->some[v], from));
        const __m512i later =
            both ? _mm512_castps_si512(_mm512_maskz_loadu_ps(piece->some[v], from + piece->q_row))
                 : _mm512_set1_epi32(INT32_MIN);
        seen = _mm512_or_si512(seen, earlier);
        seen = both ? _mm512_or_si512(seen, later) : seen;
        y[v] = word_of(earlier, later);
    }
    return seen;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* `rows` is a constant here and below. */
INLINE void add_pair(const uint32_t *p, const __m512i y[VECTORS], int rows,
                     __m512 sum[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512i x = _mm512_set1_epi32((int)p[i]);
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)x, (__m512bh)y[v]);
    }
}

INLINE void fetch_next(const struct piece *piece, int rows)
{
    for (int k = 0; k < LS_PRODUCT_NEXT; k++)
        for (int i = 0; piece->next[k] != NULL && i < rows; i++)
            for (int v = 0; v < VECTORS; v++)
                FETCH(piece->next[k] + (size_t)i * piece->next_row + v * WIDTH);
}

INLINE void write_rows(const struct piece *piece, int rows, __m512 sum[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < VECTORS; v++) {
        float *out = piece->out + (size_t)i * piece->out_row + v * WIDTH;
        const __m512 before = _mm512_maskz_loadu_ps(piece->some[v], out);
        _mm512_mask_storeu_ps(out, piece->some[v],
                              piece->first ? sum[i][v] : _mm512_add_ps(before, sum[i][v]));
    }
}

INLINE void clear(int rows, __m512 sum[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[i][v] = _mm512_setzero_ps();
}

/* Makes words of q, and keeps them for the rows behind these. */
INLINE bool combine_first(const struct piece *piece, int rows)
{
    __m512 sum[ROWS][VECTORS];
    __m512i seen = _mm512_setzero_si512(), y[VECTORS];
    const uint32_t *p = piece->p;
    const float *q = piece->q, *ahead = piece->ahead;
    uint32_t *words = piece->words;
    clear(rows, sum);
    fetch_next(piece, rows);
    for (size_t r = 0; r < piece->depth; r += 2, p += ROWS, words += COLUMNS) {
        const bool both = r + 1 < piece->depth;
        seen = both ? read_pair(piece, q, true, seen, y) : read_pair(piece, q, false, seen, y);
        UNROLL
        for (int v = 0; v < VECTORS; v++) {
            _mm512_storeu_si512(words + v * WIDTH, y[v]);
            FETCH(ahead + v * WIDTH);
            FETCH(ahead + (both ? piece->q_row : 0) + v * WIDTH);
        }
        add_pair(p, y, rows, sum);
        q += both ? 2 * piece->q_row : 0;
        ahead += both ? 2 * piece->q_row : 0;
    }
    write_rows(piece, rows, sum);
    return is_rounded(seen);
}

INLINE void combine_others(const struct piece *piece, int rows)
{
    __m512 sum[ROWS][VECTORS];
    const uint32_t *p = piece->p, *words = piece->words;
    clear(rows, sum);
    fetch_next(piece, rows);
    for (size_t r = 0; r < piece->depth; r += 2, p += ROWS, words += COLUMNS) {
        __m512i y[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            y[v] = _mm512_loadu_si512(words + v * WIDTH);
        add_pair(p, y, rows, sum);
    }
    write_rows(piece, rows, sum);
}

static inline void advance(struct piece *piece, size_t rows)
{
    piece->out += rows * piece->out_row;
    for (int k = 0; k < LS_PRODUCT_NEXT; k++)
        if (piece->next[k] != NULL)
            piece->next[k] += rows * piece->next_row;
}

/* Less than ROWS rows, of which words of q may be there. */
static bool combine_rest(struct piece piece, size_t rows, bool there)
{
    bool rounded = true;
    while (rows > 0) {
        const size_t some = rows >= 4 ? 4 : 1;
        if (!there)
            rounded = some == 4 ? combine_first(&piece, 4) : combine_first(&piece, 1);
        else if (some == 4)
            combine_others(&piece, 4);
        else
            combine_others(&piece, 1);
        there = true;
        piece.p += some;
        advance(&piece, some);
        rows -= some;
    }
    return rounded;
}

/* Up to GROUPS groups of rows, and COLUMNS columns. */
static bool combine_block(struct piece piece, size_t rows)
{
    size_t i = 0;
    for (; rows - i >= ROWS; i += ROWS) {
        if (i > 0)
            combine_others(&piece, ROWS);
        else if (!combine_first(&piece, ROWS))
            return false;
        piece.p += PAIRS * ROWS;
        advance(&piece, ROWS);
    }
    return combine_rest(piece, rows - i, i > 0);
}

static bool combine_columns(struct piece piece, size_t rows, size_t columns)
{
    for (size_t j = 0; j < columns; j += COLUMNS) {
        for (int v = 0; v < VECTORS; v++) {
            const size_t begin = j + (size_t)v * WIDTH;
            piece.some[v] = MASK(columns > begin ? smaller(columns - begin, WIDTH) : 0);
        }
        piece.ahead = piece.q + (columns - j > COLUMNS ? COLUMNS : 0);
        if (!combine_block(piece, rows))
            return false;
        piece.q += COLUMNS;
        piece.out += COLUMNS;
        for (int k = 0; k < LS_PRODUCT_NEXT; k++)
            if (piece.next[k] != NULL)
                piece.next[k] += COLUMNS;
    }
    return true;
}

/* Rows [i, i + rows) of the result, which are at most GROUPS groups. */
static bool combine_groups(const struct ls_product *product, size_t i, size_t rows)
{
    _Alignas(64) uint32_t p_words[GROUPS * PAIRS * ROWS], q_words[PAIRS * COLUMNS];
    struct piece piece = {.p = p_words,
                          .q_row = product->q_row,
                          .words = q_words,
                          .out = product->out + i * product->out_row,
                          .out_row = product->out_row,
                          .next_row = product->next_row};
    for (int k = 0; k < LS_PRODUCT_NEXT; k++)
        if (product->next[k] != NULL)
            piece.next[k] = product->next[k] + i * product->next_row;
    for (size_t r = 0; r < product->depth || r == 0; r += LS_COMBINE_DEPTH) {
        piece.first = r == 0;
        piece.depth = smaller(product->depth - r, LS_COMBINE_DEPTH);
        piece.q = product->q + r * product->q_row;
        for (size_t g = 0; g < rows; g += ROWS) {
            struct ls_matrix p = product->p;
            p.data += (i + g) * p.row;
            if (!make_words(&p, smaller(rows - g, ROWS), r, piece.depth, p_words + g * PAIRS))
                return false;
        }
        if (!combine_columns(piece, rows, product->columns))
            return false;
        for (int k = 0; k < LS_PRODUCT_NEXT; k++)
            piece.next[k] = NULL;
    }
    return true;
}

bool ls_bf16_combine_avx512_bf16(const struct ls_product *product)
{
    bool rounded = true;
    for (size_t i = 0; rounded && i < product->rows; i += GROUPS * ROWS)
        rounded = combine_groups(product, i, smaller(product->rows - i, GROUPS * ROWS));
    return rounded;
}
