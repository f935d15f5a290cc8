/* Tiles of products of bf16 numbers, with fused multiplications and additions of fp32.
 *
 * Panels hold fp32 numbers. Within a block the 16 even terms lie before the 16 odd ones, since each
 * makes a chain of its own:
 *
 *     a: [block][even, odd][line][16 terms]      an element is spread over a register
 *     b: [block][even, odd][16 terms][line]      lines are lanes
 *
 * A tile takes as many registers as there are, once for the even chains of a block, which are put
 * by, and once for the odd ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_product.h"

#include "ops/cpu/vector/registers.h"

#if LS_ISA_IS(AVX512)
enum { ROWS = 8, VECTORS = 3 };
#elif LS_ISA_IS(AVX2)
enum { ROWS = 4, VECTORS = 3 };
#else
enum { ROWS = 4, VECTORS = 16 };
#endif

enum { COLUMNS = VECTORS * WIDTH, HALF = LS_BF16_BLOCK / 2, DEPTH = 160 };

static inline float widen(uint16_t bits)
{
    return ls_bits_float((uint32_t)bits << 16);
}

/* ---- Panels ---------------------------------------------------------------------------------- */

static void pack_a(const struct ls_bf16_lines *from, void *panel)
{
    const size_t line = from->by_term ? 1 : from->pitch, term = from->by_term ? from->pitch : 1;
    float *to = panel;
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK)
        for (size_t half = 0; half < 2; half++, to += ROWS * HALF)
            for (size_t i = 0; i < ROWS; i++)
                for (size_t p = 0; p < HALF; p++) {
                    size_t at = k + 2 * p + half;
                    bool there = i < from->lines && at < from->terms;
                    to[i * HALF + p] = there ? widen(from->data[i * line + at * term]) : 0;
                }
}

static void pack_b(const struct ls_bf16_lines *from, void *panel)
{
    const size_t line = from->by_term ? 1 : from->pitch, term = from->by_term ? from->pitch : 1;
    float *to = panel;
    for (size_t k = 0; k < from->terms; k += LS_BF16_BLOCK)
        for (size_t half = 0; half < 2; half++)
            for (size_t p = 0; p < HALF; p++, to += COLUMNS) {
                size_t at = k + 2 * p + half;
                for (size_t j = 0; j < COLUMNS; j++) {
                    bool there = j < from->lines && at < from->terms;
                    to[j] = there ? widen(from->data[j * line + at * term]) : 0;
                }
            }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* One chain of each element: the even or the odd terms of a block. `rows` and `vectors` are
 * constants. */
INLINE void chain(const float *a, const float *b, int rows, int vectors,
                  REGISTER sum[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = ZERO();
    for (int p = 0; p < HALF; p++, b += COLUMNS) {
        REGISTER y[VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++)
            y[v] = LOAD(b + v * WIDTH);
        UNROLL
        for (int i = 0; i < rows; i++) {
            REGISTER x = SPREAD(a[i * HALF + p]);
            UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] = FMA(x, y[v], sum[i][v]);
        }
    }
}

/* `rows` and `vectors` are constants. */
INLINE void piece(const struct ls_bf16_tile *tile, size_t row, int rows, int vectors)
{
    const float *a = (const float *)tile->a + row * HALF, *b = tile->b;
    float *c = tile->c + row * tile->pitch;
    REGISTER even[ROWS][VECTORS], odd[ROWS][VECTORS];
    for (size_t k = 0; k < tile->blocks; k++) {
        const bool first = tile->first && k == 0, last = tile->last && k + 1 == tile->blocks;
        chain(a, b, rows, vectors, even);
        chain(a + ROWS * HALF, b + COLUMNS * HALF, rows, vectors, odd);
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
        for (int v = 0; v < vectors; v++) {
            float *at = c + (size_t)i * tile->pitch + v * WIDTH;
            REGISTER sum = ADD(even[i][v], odd[i][v]);
            if (!first)
                sum = ADD(LOAD(at), sum);
            if (last)
                sum = ADD(sum, ZERO());
            STORE(at, sum);
        }
        a += 2 * ROWS * HALF;
        b += 2 * COLUMNS * HALF;
    }
}

#if WIDTH > 1

/* All rows of a tile, so many at a time as there are registers for. */
INLINE void rows_of(const struct ls_bf16_tile *tile, int vectors)
{
    size_t row = 0;
    for (; tile->rows - row >= ROWS; row += ROWS)
        piece(tile, row, ROWS, vectors);
    for (; tile->rows - row >= 4; row += 4)
        piece(tile, row, 4, vectors);
    for (; tile->rows - row >= 2; row += 2)
        piece(tile, row, 2, vectors);
    if (row < tile->rows)
        piece(tile, row, 1, vectors);
}

FUSED static void multiply_1(const struct ls_bf16_tile *tile)
{
    rows_of(tile, 1);
}

FUSED static void multiply_2(const struct ls_bf16_tile *tile)
{
    rows_of(tile, 2);
}

FUSED static void multiply_3(const struct ls_bf16_tile *tile)
{
    rows_of(tile, 3);
}

static void multiply(const struct ls_bf16_tile *tile)
{
    if (tile->columns <= WIDTH)
        multiply_1(tile);
    else if (tile->columns <= 2 * WIDTH)
        multiply_2(tile);
    else
        multiply_3(tile);
}

#else

static void multiply(const struct ls_bf16_tile *tile)
{
    for (size_t row = 0; row < tile->rows; row++)
        piece(tile, row, 1, VECTORS);
}

#endif

const struct ls_vector_bf16_product LS_ISA_NAME(ls_vector_bf16_product) = {
    .rows = ROWS,
    .columns = COLUMNS,
    .block_bytes = LS_BF16_BLOCK * sizeof(float),
    .depth = DEPTH,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
