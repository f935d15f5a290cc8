/* The products of attention, block by block: those of ops/cpu/bf16/product.h, of panels that are
 * packed once and multiplied many times.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ATTENTION_PRODUCTS_H
#define LS_OPS_CPU_ATTENTION_PRODUCTS_H

#include "ops/cpu/bf16/product.h"

/* What multiplies, and how many lines its panels have. */
struct ls_block_tiles {
    const struct ls_vector_bf16_product *vector;
    bool f32; /* of fp32 numbers, else of bf16 */
};

struct ls_block_tiles ls_block_tiles(bool bf16);

/* Bytes of panels of so many lines, as operand a (whose panels have as many lines as a tile has
 * rows) or b (columns). */
size_t ls_block_bytes_a(const struct ls_block_tiles *tiles, size_t lines, size_t terms);
size_t ls_block_bytes_b(const struct ls_block_tiles *tiles, size_t lines, size_t terms);
/* Numbers from a row of a result to the next that hold so many columns. */
size_t ls_block_pitch(const struct ls_block_tiles *tiles, size_t columns);
/* Rows of a result that are written where so many are asked for. */
size_t ls_block_rows(const struct ls_block_tiles *tiles, size_t rows);

/* An operand: `lines` lines of `terms` numbers, fp32 or bf16 as the tiles have them. Line after
 * line, or (by_term) term after term, `pitch` numbers apart. */
struct ls_block_operand {
    const void *data;
    size_t pitch, lines, terms;
    bool by_term;
};

void ls_block_pack_a(const struct ls_block_tiles *tiles, const struct ls_block_operand *operand,
                     void *panels);
void ls_block_pack_b(const struct ls_block_tiles *tiles, const struct ls_block_operand *operand,
                     void *panels);

/* Lines and terms in half a block, a multiple of the rows of a tile. */
enum { LS_BLOCK_HALF = 32 };

/* What is left out of a product: terms that are zero, or results that are not used. */
enum ls_block_less {
    LS_BLOCK_ALL,          /* nothing */
    LS_BLOCK_LESS_COLUMNS, /* those behind the first half, of rows of the first half */
    LS_BLOCK_LESS_TERMS,   /* the same of terms */
    LS_BLOCK_LATE_TERMS    /* terms of the first half, of rows behind it */
};

/* c [rows, columns] (+)= a b^T; `first`: instead of adding to what is there. */
struct ls_block_product {
    const void *a, *b; /* panels */
    size_t rows, columns, terms;
    enum ls_block_less less;
    float *c;
    size_t pitch;
    bool first;
};

void ls_block_multiply(const struct ls_block_tiles *tiles, const struct ls_block_product *product);

#endif
