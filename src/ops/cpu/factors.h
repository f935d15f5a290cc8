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

#include "base/error.h"
#include "device/factors.h"

/* Computes the piece of the gradient of the weights, or of the bias, without gaps. */
int ls_factors_weight_gradient(const struct ls_factoring *factoring,
                               const struct ls_factor_rows *factors,
                               const struct ls_gradient_piece *piece, float *gradient,
                               struct ls_error *error);
int ls_factors_bias_gradient(const struct ls_factoring *factoring,
                             const struct ls_factor_rows *factors,
                             const struct ls_gradient_piece *piece, float *gradient,
                             struct ls_error *error);

#endif
