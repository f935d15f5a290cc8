/* Tiles of products of bf16 numbers by AMX. TDPBF16PS adds a block of 32 terms to 16 x 16 elements,
 * exactly as ops/cpu/bf16/product.h defines it; the thread's rounding does not concern it.
 *
 * Of the eight tile registers four hold 32 x 32 elements of the result, and two each 32 lines of a
 * and of b, so that each tile that is loaded is used twice. Panels:
 *
 *     a: [piece of 192 terms][32 lines][192 terms]
 *     b: [block][two halves][16 pairs of terms][16 lines][2 terms]
 *
 * Vectors of AVX-512 pack them. Compiled with AVX-512 and AMX switched on (cmake/vector.cmake), and
 * once more for a test, with tiles in plain C (LS_AMX_TILES, LS_AMX_TABLE).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/amx/bf16_product.h"

#include "ops/cpu/vector/bf16_transpose.h"

#if defined(LS_AMX_TILES)
#include LS_AMX_TILES
#else
#define LS_AMX_TABLE ls_bf16_amx
#endif

enum {
    PIECE = LS_BF16_READ_TERMS,
    SIDE = 16,                   /* lines of a tile */
    LINES = 2 * SIDE,            /* of a panel */
    ROW_BYTES = 64,              /* of a tile register */
    HALF = SIDE * LS_BF16_BLOCK, /* numbers in a tile */
    DEPTH = 3 * PIECE            /* with which a panel of b leaves room in the first cache */
};

extern const struct ls_vector_bf16_product LS_AMX_TABLE;

/* ---- Panels ---------------------------------------------------------------------------------- */

static inline __mmask32 mask_of(size_t numbers)
{
    return numbers >= 32 ? UINT32_MAX : (UINT32_C(1) << numbers) - 1;
}

/* The block of terms from k on, of one line; zeros where there is none. */
static inline __m512i load_line(const struct ls_bf16_lines *from, size_t line, size_t k)
{
    if (line >= from->lines)
        return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16(mask_of(from->terms - k), from->data + line * from->pitch + k);
}

static inline __m512i load_term(const struct ls_bf16_lines *from, size_t k)
{
    if (k >= from->terms)
        return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16(mask_of(from->lines), from->data + k * from->pitch);
}

/* Two terms of 32 lines become pairs: of the first 16 lines, and of the others. */
static inline void make_pairs(__m512i even, __m512i odd, __m512i pairs[2])
{
    /* Numbers are put together within quarters of a register, which are to be in order then. */
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    even = _mm512_permutexvar_epi64(order, even);
    odd = _mm512_permutexvar_epi64(order, odd);
    pairs[0] = _mm512_unpacklo_epi16(even, odd);
    pairs[1] = _mm512_unpackhi_epi16(even, odd);
}

static inline void load_square(const uint16_t *from, size_t pitch, __m512i rows[SIDE])
{
    UNROLL
    for (size_t i = 0; i < SIDE; i++)
        rows[i] = _mm512_loadu_si512(from + i * pitch);
}

static inline void store_square(const __m512i rows[SIDE], uint16_t *to, size_t pitch)
{
    UNROLL
    for (size_t i = 0; i < SIDE; i++)
        _mm512_storeu_si512(to + i * pitch, rows[i]);
}

/* Lines become columns. */
static void transpose_lines(const struct ls_bf16_lines *from, uint16_t *to)
{
    __m512i rows[SIDE];
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK)
        for (size_t first = 0; first < LINES; first += SIDE, to += HALF) {
            const bool whole = first + SIDE <= from->lines && k + LS_BF16_BLOCK <= from->terms;
            if (whole) {
                load_square(from->data + first * from->pitch + k, from->pitch, rows);
            } else {
                for (size_t i = 0; i < SIDE; i++)
                    rows[i] = load_line(from, first + i, k);
            }
            transpose(rows);
            store_square(rows, to, LS_BF16_BLOCK);
        }
}

/* A block of terms, whose lines lie together, becomes columns. */
static void pair_terms(const struct ls_bf16_lines *from, size_t k, uint16_t *to)
{
    const bool whole = from->lines == LINES && k + LS_BF16_BLOCK <= from->terms;
    const uint16_t *data = from->data + k * from->pitch;
    for (size_t p = 0; p < LS_BF16_BLOCK; p += 2, to += LS_BF16_BLOCK, data += 2 * from->pitch) {
        __m512i pairs[2];
        if (whole)
            make_pairs(_mm512_loadu_si512(data), _mm512_loadu_si512(data + from->pitch), pairs);
        else
            make_pairs(load_term(from, k + p), load_term(from, k + p + 1), pairs);
        _mm512_storeu_si512(to, pairs[0]);
        _mm512_storeu_si512(to + HALF, pairs[1]);
    }
}

static void pack_b(const struct ls_bf16_lines *from, void *panel)
{
    uint16_t *to = panel;
    if (!from->by_term)
        transpose_lines(from, to);
    else
        for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += 2 * HALF)
            pair_terms(from, k, to);
}

/* Terms become rows, by way of columns. */
static void transpose_terms(const struct ls_bf16_lines *from, uint16_t *to)
{
    uint16_t columns[2 * HALF] __attribute__((aligned(64)));
    __m512i rows[SIDE];
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK, to += LS_BF16_BLOCK) {
        pair_terms(from, k, columns);
        for (size_t half = 0; half < 2; half++) {
            load_square(columns + half * HALF, LS_BF16_BLOCK, rows);
            transpose(rows);
            store_square(rows, to + half * SIDE * PIECE, PIECE);
        }
    }
}

static void pack_a(const struct ls_bf16_lines *from, void *panel)
{
    uint16_t *to = panel;
    if (from->by_term)
        transpose_terms(from, to);
    else
        for (size_t i = 0; i < from->lines; i++, to += PIECE)
            for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK)
                _mm512_storeu_si512(to + k, load_line(from, i, k));
}

static void pad_a(size_t lines, size_t terms, void *panel)
{
    uint16_t *to = panel;
    const size_t there = terms % LS_BF16_BLOCK;
    to += terms - there;
    for (size_t i = 0; there > 0 && i < lines; i++, to += PIECE)
        _mm512_mask_storeu_epi16(to, ~mask_of(there), _mm512_setzero_si512());
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* As LDTILECFG reads it: all eight registers have 16 rows of 64 bytes. */
struct configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static const struct configuration configuration
    __attribute__((aligned(64))) = {.palette = 1,
                                    .row_bytes = {ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES,
                                                  ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES},
                                    .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

static void begin(void)
{
    _tile_loadconfig(&configuration);
}

static void end(void)
{
    _tile_release();
}

/* Rows and columns of the result, 16 for each of their halves, and all blocks of the panels. In
 * registers 0 to 3 are elements, in 4 and 5 halves of a, in 6 and 7 halves of b. How many halves
 * there are is a constant, and so are the numbers of registers. */
INLINE void add_blocks(const struct ls_bf16_tile *tile, int rows, int columns)
{
    const size_t stride = tile->pitch * sizeof(float), below = SIDE * tile->pitch;
    const uint16_t *piece = tile->a, *b = tile->b;
    float *c = tile->c;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (!tile->first) {
        _tile_loadd(0, c, stride);
        if (columns == 2)
            _tile_loadd(1, c + SIDE, stride);
        if (rows == 2)
            _tile_loadd(2, c + below, stride);
        if (rows == 2 && columns == 2)
            _tile_loadd(3, c + below + SIDE, stride);
    }
    for (size_t k = 0; k < tile->terms; k += LS_BF16_BLOCK, b += 2 * HALF) {
        const uint16_t *a = piece + k / PIECE * LINES * PIECE + k % PIECE;
        _tile_loadd(4, a, PIECE * sizeof *a);
        _tile_loadd(6, b, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        if (columns == 2) {
            _tile_loadd(7, b + HALF, ROW_BYTES);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (rows == 2) {
            _tile_loadd(5, a + SIDE * PIECE, PIECE * sizeof *a);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (rows == 2 && columns == 2)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, stride);
    if (columns == 2)
        _tile_stored(1, c + SIDE, stride);
    if (rows == 2)
        _tile_stored(2, c + below, stride);
    if (rows == 2 && columns == 2)
        _tile_stored(3, c + below + SIDE, stride);
}

/* c + (+0): no element stays -0. */
static void finish(const struct ls_bf16_tile *tile)
{
    for (size_t i = 0; i < tile->rows; i++)
        for (size_t j = 0; j < tile->columns; j += WIDTH) {
            float *c = tile->c + i * tile->pitch + j;
            STORE(c, ADD(LOAD(c), ZERO()));
        }
}

static void multiply(const struct ls_bf16_tile *tile)
{
    /* What was packed is in memory: to the compiler, loads of tiles do not read. */
    __asm__ volatile("" ::: "memory");
    if (tile->rows <= SIDE && tile->columns <= SIDE)
        add_blocks(tile, 1, 1);
    else if (tile->rows <= SIDE)
        add_blocks(tile, 1, 2);
    else if (tile->columns <= SIDE)
        add_blocks(tile, 2, 1);
    else
        add_blocks(tile, 2, 2);
    if (tile->last)
        finish(tile);
}

const struct ls_vector_bf16_product LS_AMX_TABLE = {
    .rows = LINES,
    .columns = LINES,
    .block_bytes = LS_BF16_BLOCK * sizeof(uint16_t),
    .depth = DEPTH,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .pad_a = pad_a,
    .multiply = multiply,
    .begin = begin,
    .end = end,
};
