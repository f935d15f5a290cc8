/* Inner products in double precision by plain loops: y = x w^T + b.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_inner_product.h"

#include <stddef.h>

/* Where the weight from input i to output j is. */
static int weight(const struct reference_inner_product *product, int j, int i)
{
    return product->transpose ? i * product->n + j : j * product->k + i;
}

void reference_inner_product_forward(const struct reference_inner_product *product, const double *x,
                                     const double *w, const double *b, int relu, double slope,
                                     double *y)
{
    for (int row = 0; row < product->m; row++)
        for (int j = 0; j < product->n; j++) {
            double sum = b != NULL ? b[j] : 0;
            for (int i = 0; i < product->k; i++)
                sum += x[row * product->k + i] * w[weight(product, j, i)];
            y[row * product->n + j] = relu && sum <= 0 ? slope * sum : sum;
        }
}

void reference_inner_product_data(const struct reference_inner_product *product, const double *dy,
                                  const double *w, double *dx)
{
    for (int row = 0; row < product->m; row++)
        for (int i = 0; i < product->k; i++) {
            double sum = 0;
            for (int j = 0; j < product->n; j++)
                sum += dy[row * product->n + j] * w[weight(product, j, i)];
            dx[row * product->k + i] = sum;
        }
}

void reference_inner_product_weights(const struct reference_inner_product *product, const double *x,
                                     const double *dy, double *dw, double *db)
{
    for (int j = 0; j < product->n; j++) {
        if (db != NULL)
            db[j] = 0;
        for (int row = 0; db != NULL && row < product->m; row++)
            db[j] += dy[row * product->n + j];
        for (int i = 0; i < product->k; i++) {
            double sum = 0;
            for (int row = 0; row < product->m; row++)
                sum += dy[row * product->n + j] * x[row * product->k + i];
            dw[weight(product, j, i)] = sum;
        }
    }
}
