/* Inner products in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_INNER_PRODUCT_H
#define LS_TESTS_REFERENCE_INNER_PRODUCT_H

/* x [m][k], w [n][k] (`transpose`: [k][n]), b [n], y [m][n] */
struct reference_inner_product {
    int m, k, n, transpose;
};

/* y = x w^T + b (b may be NULL), y > 0 ? y : slope * y where `relu` is not 0 */
void reference_inner_product_forward(const struct reference_inner_product *product, const double *x,
                                     const double *w, const double *b, int relu, double slope,
                                     double *y);
/* The gradients of sum(y * dy), y without ReLU. db may be NULL. */
void reference_inner_product_data(const struct reference_inner_product *product, const double *dy,
                                  const double *w, double *dx);
void reference_inner_product_weights(const struct reference_inner_product *product, const double *x,
                                     const double *dy, double *dw, double *db);

#endif
