/* Products of matrices of bf16, or of fp32, with the same bits on every x86-64: with AMX (bf16
 * alone), AVX-512, AVX2, or without any of them (docs/numerics.md, sections 16 and 17).
 *
 *     out[i, j] = sum over the terms k of a[i, k] b[j, k]
 *
 * Both operands are matrices of lines and terms. They need not exist in memory: an operand reads
 * its elements through a function (the windows of a convolution, for example). Finished elements go
 * to a function that makes of them what the caller wants to keep (adds a bias, rounds, stores).
 *
 * An element is c behind the last of its blocks, each of which has 32 terms, in their order:
 *
 *     t0 = t1 = +0
 *     for p in 0..15:  t0 = fma(a[2p], b[2p], t0),  t1 = fma(a[2p + 1], b[2p + 1], t1)
 *     c = c + (t0 + t1)
 *
 * in fp32, rounded to nearest, ties to even, where denormal numbers are zero in operands and
 * results (the calling thread flushes them, as all that compute do). c is +0 at first, terms
 * behind the last are (+0) (+0), and in the end +0 is added, so that no element is -0. This
 * determines the bits; how a product is cut into pieces does not. Which of the operands is a and
 * which b changes nothing but speed: panels of b go to the first cache, and a register's lanes are
 * lines of b.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_PRODUCT_H
#define LS_OPS_CPU_BF16_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/vector/bf16_product.h"

struct ls_bf16_operand {
    int64_t lines; /* rows (a) or columns (b) of the result; at least 1 */
    /* How elements lie: terms of a line one after the other, or (by_term) lines of a term. That of
     * b should be by_term, that of a should not: the other way takes time to transpose. */
    bool by_term;
    /* Writes terms [begin, end) of lines [first, first + count):
     *     by_term:  to[(k - begin) * pitch + (line - first)]
     *     else:     to[(line - first) * pitch + (k - begin)]
     * `begin` is a multiple of 32, `to` is aligned to 64 bytes, and `pitch` is a multiple of 32 and
     * at least what a row needs; behind that, up to the next row, anything may be written. At most
     * LS_BF16_READ_LINES lines and LS_BF16_READ_TERMS terms are asked for at once. Elements are
     * uint16_t, or float, as the product says. */
    void (*read)(const struct ls_bf16_operand *operand, int64_t first, int64_t count, int64_t begin,
                 int64_t end, void *to, size_t pitch);
    /* (optional) Beside `read`: where these elements lie in memory in this order already, and how
     * far it is from a row to the next. NULL where they do not. */
    const void *(*look)(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                        int64_t begin, int64_t end, size_t *pitch);
    /* Instead of `read`, where all lies in memory in this order: the first element, and elements
     * from a row to the next. */
    const void *data;
    size_t pitch;
    const void *user; /* of `read` */
};

struct ls_bf16_product {
    struct ls_bf16_operand a, b;
    bool f32;      /* elements of both are fp32, which AMX does not multiply */
    int64_t depth; /* terms; 0: all elements are +0 */
    /* Takes rows [i, i + rows) of columns [j, j + columns), which are finished:
     * tile[(row - i) * pitch + (column - j)]. The memory is the function's to overwrite. Each
     * element comes once; in which tiles and order differs between processors. */
    void (*write)(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                  int64_t columns, float *tile, size_t pitch);
    const void *user; /* of `write` */
};

/* Bytes of scratch, aligned to 64, that a product of these numbers of lines and terms needs with
 * the instruction set in use. A smaller one may need more, since it is cut into other parts. */
size_t ls_bf16_product_scratch(bool f32, int64_t a_lines, int64_t b_lines, int64_t depth);
/* As much as any product of up to so many lines needs, with these terms. */
size_t ls_bf16_product_scratch_up_to(bool f32, int64_t a_lines, int64_t b_lines, int64_t depth);
/* Computes the product in the calling thread. */
void ls_bf16_multiply(const struct ls_bf16_product *product, void *scratch);

/* How tiles are computed: by AMX, or by the instruction set in use. Tests compute with others. */
const struct ls_vector_bf16_product *ls_bf16_tiles(bool f32);
const char *ls_bf16_tiles_name(void); /* of bf16 numbers: "amx", or that of the set */
size_t ls_bf16_scratch_with(const struct ls_vector_bf16_product *tiles, int64_t a_lines,
                            int64_t b_lines, int64_t depth);
void ls_bf16_multiply_with(const struct ls_vector_bf16_product *tiles,
                           const struct ls_bf16_product *product, void *scratch);

#endif
