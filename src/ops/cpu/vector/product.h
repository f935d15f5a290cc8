/* Products of matrices for inner products, and the products of factors.
 *
 * Each element of a result is a sum in one fixed order, whichever other rows and columns are
 * computed with it: a kernel may be given all rows or some of them, and the bits are the same.
 * All additions are fused: one rounding for each product and sum, with every instruction set
 * (those without such an instruction compute it from doubles, slowly).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_PRODUCT_H
#define LS_OPS_CPU_VECTOR_PRODUCT_H

#include <stddef.h>

#include "ops/cpu/isa.h"

/* A matrix whose element (i, r) lies at data[i * row + r * step]. */
struct ls_matrix {
    const float *data;
    size_t row, step;
};

enum { LS_PRODUCT_NEXT = 3 };

/* out[i * out_row + j] for i < rows, j < columns: a sum over r < depth. */
struct ls_product {
    size_t rows, columns, depth;
    struct ls_matrix p; /* rows x depth */
    const float *q;
    size_t q_row;
    float *out; /* apart from p and q */
    size_t out_row;
    /* What the caller goes through next, laid out as the result but with rows of their own, or
     * NULL: `combine` fetches it from memory meanwhile. */
    const float *next[LS_PRODUCT_NEXT];
    size_t next_row;
};

enum {
    LS_COMBINE_DEPTH = 128, /* terms that are added one after the other; then these sums are */
    LS_DOT_DEPTH = 1024     /* terms that 16 lanes share, before they are folded */
};

struct ls_vector_product {
    /* Sum of p[i, r] q[r * q_row + j]: rows of q, combined. */
    void (*combine)(const struct ls_product *product);
    /* Sum of p[i, r] q[j * q_row + r]: rows of p times rows of q, where p.step is 1. */
    void (*dot)(const struct ls_product *product);
    /* sums[j] = the sum of q[r * q_row + j] over r < depth, as `combine` with p all ones. */
    void (*add_rows)(const float *q, size_t q_row, size_t depth, float *sums, size_t columns);
};
LS_VECTOR_TABLES(ls_vector_product)

#endif
