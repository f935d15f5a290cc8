/* The gradient of an inner product from its factors: dw = dy^T x over the rows of an update, db the
 * sum of the rows of dy.
 *
 * An element's bits depend on the factors alone, not on the piece of the gradient that it is
 * computed with; the same on every instruction set.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_FACTORS_H
#define LS_OPS_CPU_FACTORS_H

#include <stddef.h>

#include "ir/factors.h"

/* The factors themselves: `rows` rows of each, one behind the other. */
struct ls_factor_rows {
    const float *side[LS_FACTOR_SIDES];
    size_t rows;
};

enum { LS_GRADIENT_NEXT = 3 }; /* weights and two histories */

/* A piece of a gradient: `rows` times `columns` elements, rows `row` elements apart, the first at
 * `begin`. A bias has one row. Of the arrays in `next` (the whole parameter's, or NULL) the caller
 * goes through the same piece afterwards: it is fetched from memory meanwhile. */
struct ls_gradient_piece {
    size_t begin, rows, columns, row;
    const float *next[LS_GRADIENT_NEXT];
};

/* Computes the piece of the gradient of the weights, or of the bias, without gaps. */
void ls_factors_weight_gradient(const struct ls_factoring *factoring,
                                const struct ls_factor_rows *factors,
                                const struct ls_gradient_piece *piece, float *gradient);
void ls_factors_bias_gradient(const struct ls_factoring *factoring,
                              const struct ls_factor_rows *factors,
                              const struct ls_gradient_piece *piece, float *gradient);

#endif
