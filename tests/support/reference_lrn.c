/* Local response normalisation in double precision by plain loops.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_lrn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int element(const struct reference_lrn *lrn, int n, int c, int h, int w)
{
    return ((n * lrn->c + c) * lrn->h + h) * lrn->w + w;
}

static double factor(const struct reference_lrn *lrn)
{
    return lrn->alpha / (lrn->within ? (double)lrn->size * lrn->size : (double)lrn->size);
}

/* The sum of v over the places around one. The relation is symmetric: who sums whom is summed by
 * them. */
static double around(const struct reference_lrn *lrn, const double *v, int n, int c, int h, int w)
{
    int half = lrn->size / 2;
    double sum = 0;
    if (!lrn->within) {
        for (int i = c - half; i <= c + half; i++)
            if (i >= 0 && i < lrn->c)
                sum += v[element(lrn, n, i, h, w)];
        return sum;
    }
    for (int i = h - half; i <= h + half; i++)
        for (int j = w - half; j <= w + half; j++)
            if (i >= 0 && i < lrn->h && j >= 0 && j < lrn->w)
                sum += v[element(lrn, n, c, i, j)];
    return sum;
}

static void sums(const struct reference_lrn *lrn, const double *v, double *result)
{
    for (int n = 0; n < lrn->n; n++)
        for (int c = 0; c < lrn->c; c++)
            for (int h = 0; h < lrn->h; h++)
                for (int w = 0; w < lrn->w; w++)
                    result[element(lrn, n, c, h, w)] = around(lrn, v, n, c, h, w);
}

void reference_lrn_forward(const struct reference_lrn *lrn, const double *x, double *y, double *s)
{
    int elements = lrn->n * lrn->c * lrn->h * lrn->w;
    for (int i = 0; i < elements; i++)
        y[i] = x[i] * x[i];
    sums(lrn, y, s);
    for (int i = 0; i < elements; i++) {
        s[i] = (lrn->within ? 1 : lrn->k) + factor(lrn) * s[i];
        y[i] = x[i] * pow(s[i], -lrn->beta);
    }
}

/* y_i = x_i s_i^-beta, and x_j is in s_i with the slope 2 factor x_j where j is around i. */
void reference_lrn_backward(const struct reference_lrn *lrn, const double *x, const double *dy,
                            double *dx)
{
    int elements = lrn->n * lrn->c * lrn->h * lrn->w;
    size_t bytes = (size_t)(elements + 1) * sizeof(double);
    double *y = malloc(bytes), *s = malloc(bytes), *share = malloc(bytes);
    if (y == NULL || s == NULL || share == NULL)
        abort();
    reference_lrn_forward(lrn, x, y, s);
    for (int i = 0; i < elements; i++)
        y[i] = -lrn->beta * dy[i] * x[i] * pow(s[i], -lrn->beta - 1);
    sums(lrn, y, share);
    for (int i = 0; i < elements; i++)
        dx[i] = dy[i] * pow(s[i], -lrn->beta) + 2 * factor(lrn) * x[i] * share[i];
    free(y);
    free(s);
    free(share);
}
