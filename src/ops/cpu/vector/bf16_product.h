/* The innermost part of a product of bf16 or fp32 numbers (ops/cpu/bf16/product.h): a few rows and
 * columns of the result, from panels in which the operands lie as this part wants them.
 *
 * A panel has as many lines of an operand as a tile has rows or columns, and some blocks of 32
 * terms. What it looks like inside is known here alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_PRODUCT_H
#define LS_OPS_CPU_VECTOR_BF16_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

enum { LS_BF16_BLOCK = 32 }; /* terms */

/* What ls_bf16_operand.read is asked for at once, at most. */
enum { LS_BF16_READ_LINES = 96, LS_BF16_READ_TERMS = 192 };

/* `lines` lines with `terms` terms in memory, as ls_bf16_operand.read writes them. */
struct ls_bf16_lines {
    const uint16_t *data;
    const float *floats; /* not NULL: these are fp32, instead of `data` */
    size_t pitch;
    bool by_term;
    size_t lines, terms;
};

struct ls_bf16_tile {
    const void *a, *b; /* panels */
    bool f32;          /* of fp32 numbers, else of bf16 */
    size_t terms;      /* at least 1; all but the last block of a product are whole */
    float *c;          /* [rows][pitch]; there is room for a whole tile */
    size_t pitch;
    size_t rows, columns; /* that count, at least 1; the others may be written */
    bool first, last;     /* blocks of these elements: c is not yet there; c will be finished */
};

struct ls_vector_bf16_product {
    size_t rows, columns; /* of a tile, at most LS_BF16_READ_LINES */
    size_t block_bytes;   /* that a line takes in a panel for each block */
    size_t depth;         /* terms that panels should have at most */
    /* Fills a piece of a panel, at most LS_BF16_READ_TERMS terms; what is used of lines or terms
     * that are missing becomes zeros. The next piece lies behind that of so many terms. */
    void (*pack_a)(const struct ls_bf16_lines *from, void *panel);
    void (*pack_b)(const struct ls_bf16_lines *from, void *panel);
    /* (optional) A piece is lines of LS_BF16_READ_TERMS numbers, and `read` can write them there.
     * Makes zeros of the terms that are missing then. */
    void (*pad_a)(size_t lines, size_t terms, void *panel);
    void (*multiply)(const struct ls_bf16_tile *tile);
    /* Around a product, in the thread that computes it (optional). */
    void (*begin)(void);
    void (*end)(void);
};
LS_VECTOR_TABLES(ls_vector_bf16_product)

#endif
