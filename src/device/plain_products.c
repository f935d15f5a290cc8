/* Products of matrices, term by term. See device/products.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/product_sum.h"
#include "device/products.h"

static size_t no_scratch(int64_t rows, int64_t columns, int64_t depth)
{
    (void)rows, (void)columns, (void)depth;
    return 0;
}

static void multiply(const struct ls_matrix_product *product, void *scratch)
{
    (void)scratch;
    const int64_t line = product->by_term ? 1 : product->depth;
    const int64_t term = product->by_term ? product->columns : 1;
    for (int64_t i = 0; i < product->rows; i++)
        for (int64_t j = 0; j < product->columns; j++) {
            struct ls_product_sum sum = {0};
            for (int64_t k = 0; k < product->depth; k++)
                ls_product_sum_add(&sum, product->a[i * product->depth + k],
                                   product->b[j * line + k * term]);
            product->out[i * product->columns + j] = ls_product_sum_end(&sum);
        }
}

const struct ls_device_products ls_plain_products = {.scratch = no_scratch, .multiply = multiply};
