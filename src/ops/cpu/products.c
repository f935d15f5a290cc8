/* Products of matrices of fp32 numbers in tiles. See ops/cpu/products.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/products.h"

#include <string.h>

#include "ops/cpu/bf16/product.h"

static size_t products_scratch(int64_t rows, int64_t columns, int64_t depth)
{
    return ls_bf16_product_scratch_up_to(true, rows, columns, depth);
}

static void products_write(const struct ls_bf16_product *product, int64_t i, int64_t rows,
                           int64_t j, int64_t columns, float *tile, size_t pitch)
{
    const struct ls_matrix_product *matrices = product->user;
    for (int64_t r = i; r < i + rows; r++, tile += pitch)
        memcpy(matrices->out + r * matrices->columns + j, tile, (size_t)columns * sizeof *tile);
}

static void products_multiply(const struct ls_matrix_product *matrices, void *scratch)
{
    const int64_t pitch = matrices->by_term ? matrices->columns : matrices->depth;
    const struct ls_bf16_product product = {
        .a = {.lines = matrices->rows, .data = matrices->a, .pitch = (size_t)matrices->depth},
        .b = {.lines = matrices->columns,
              .by_term = matrices->by_term,
              .data = matrices->b,
              .pitch = (size_t)pitch},
        .f32 = true,
        .depth = matrices->depth,
        .write = products_write,
        .user = matrices};
    ls_bf16_multiply(&product, scratch);
}

const struct ls_device_products ls_cpu_products = {.scratch = products_scratch,
                                                   .multiply = products_multiply};
