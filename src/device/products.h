/* Products of matrices of fp32 numbers in the host's memory, with the same bits on every device:
 * each element is the sum that docs/numerics.md defines in section 17.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_PRODUCTS_H
#define LS_DEVICE_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* out[i, j] = sum over k of a[i, k] b[j, k], or with `by_term` of a[i, k] b[k, j]. Rows lie one
 * behind the other without gaps. */
struct ls_matrix_product {
    int64_t rows, columns, depth; /* at least 1 */
    const float *a, *b;
    bool by_term;
    float *out;
};

struct ls_device_products {
    /* Bytes of scratch, aligned to 64, that any product of up to so many rows needs. */
    size_t (*scratch)(int64_t rows, int64_t columns, int64_t depth);
    /* In the calling thread, which flushes denormal numbers. */
    void (*multiply)(const struct ls_matrix_product *product, void *scratch);
};

/* Term by term, in plain C. */
extern const struct ls_device_products ls_plain_products;

#endif
