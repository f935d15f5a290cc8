/* Tiles of products of bf16 numbers, with fused multiplications and additions of fp32.
 *
 * The even terms of a block make one chain, the odd ones another: two registers for each register
 * of a tile. With 32 registers both chains go on at once. With 16 there would be too few left for
 * a tile that is large enough, so that the even chains come first and are put by.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_product.h"

#include "ops/cpu/vector/bf16_panels.h"

#include "ops/cpu/vector/bf16_block.h" /* of the registers of bf16_panels.h */

enum { DEPTH = 192, TOGETHER = LS_ISA_IS(AVX512) };

/* One term of each element, of fp32 numbers or of bf16. `rows` and `vectors` are constants. */
INLINE void add_term(const float *a, const float *b, bool f32, int rows, int vectors,
                     REGISTER sum[ROWS][VECTORS])
{
    REGISTER y[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        y[v] = LOAD(b + v * WIDTH);
    UNROLL
    for (int i = 0; i < rows; i++) {
        REGISTER x = SPREAD(a[i * HALF]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = FMA_OF(f32, x, y[v], sum[i][v]);
    }
}

/* The chains of a block, of which there are `pairs` of an even and an odd term. */
INLINE void add_block(const float *a, const float *b, size_t pairs, bool f32, int rows, int vectors,
                      REGISTER even[ROWS][VECTORS], REGISTER odd[ROWS][VECTORS])
{
    const float *odd_a = a + ROWS * HALF, *odd_b = b + COLUMNS * HALF;
    clear(rows, vectors, even, odd);
    if (TOGETHER) {
        for (size_t p = 0; p < pairs; p++) {
            add_term(a + p, b + p * COLUMNS, f32, rows, vectors, even);
            add_term(odd_a + p, odd_b + p * COLUMNS, f32, rows, vectors, odd);
        }
    } else {
        for (size_t p = 0; p < pairs; p++)
            add_term(a + p, b + p * COLUMNS, f32, rows, vectors, even);
        for (size_t p = 0; p < pairs; p++)
            add_term(odd_a + p, odd_b + p * COLUMNS, f32, rows, vectors, odd);
    }
}

/* `rows` and `vectors` are constants. */
INLINE void piece(const struct ls_bf16_tile *tile, size_t row, int rows, int vectors)
{
    const float *a = (const float *)tile->a + row * HALF, *b = tile->b;
    float *c = tile->c + row * tile->pitch;
    REGISTER even[ROWS][VECTORS], odd[ROWS][VECTORS];
    for (size_t k = 0; k < tile->terms; k += LS_BF16_BLOCK) {
        const size_t left = tile->terms - k, pairs = left < LS_BF16_BLOCK ? (left + 1) / 2 : HALF;
        const bool first = tile->first && k == 0, last = tile->last && left <= LS_BF16_BLOCK;
        add_block(a, b, pairs, tile->f32, rows, vectors, even, odd);
        put_block(c, tile->pitch, first, last, rows, vectors, even, odd);
        a += ROWS * LS_BF16_BLOCK;
        b += COLUMNS * LS_BF16_BLOCK;
    }
}

#if WIDTH > 1

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

FUSED static void multiply_1(const struct ls_bf16_tile *tile)
{
    rows_of(tile, ROWS, 1);
}

FUSED static void multiply_2(const struct ls_bf16_tile *tile)
{
    rows_of(tile, 4, 2);
}

FUSED static void multiply_3(const struct ls_bf16_tile *tile)
{
    rows_of(tile, 4, 3);
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
