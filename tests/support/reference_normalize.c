/* A reference of normalisation. See support/reference_normalize.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_normalize.h"

#include <math.h>
#include <stddef.h>

/* Where the factor of element i of group g lies. */
static int factor_of(const struct reference_normalize *n, int g, int i)
{
    return n->elements ? g * n->channels * n->points + i : g * n->channels + i / n->points;
}

static double mean_of(const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i];
    return sum / count;
}

static double variance_of(const double *x, int count)
{
    double mean = mean_of(x, count), sum = 0;
    for (int i = 0; i < count; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / count;
}

static double deviation_of(const struct reference_normalize *n, double variance)
{
    if (!n->variance)
        return 1;
    return n->behind ? sqrt(variance) + n->eps : sqrt(variance + n->eps);
}

void reference_normalize_forward(const struct reference_normalize *n, const double *x,
                                 const double *scale, const double *bias, double *y)
{
    int count = n->channels * n->points;
    for (int j = 0; j < n->outer * n->groups; j++, x += count, y += count) {
        double mean = mean_of(x, count), deviation = deviation_of(n, variance_of(x, count));
        for (int i = 0; i < count; i++) {
            int f = factor_of(n, j % n->groups, i);
            y[i] = (x[i] - mean) / deviation * (scale != NULL ? scale[f] : 1) +
                   (bias != NULL ? bias[f] : 0);
        }
    }
}

/* dy_i / dx_j = scale_i (delta_ij - 1/n - c_i c_j / (n deviation d)) / deviation, c the distance
 * from the mean, d = deviation, or the root of the variance where eps stands behind it. */
static void differentiate(const struct reference_normalize *n, int g, const double *x,
                          const double *scale, const double *dy, double *dx)
{
    int count = n->channels * n->points;
    double mean = mean_of(x, count), variance = variance_of(x, count);
    double deviation = deviation_of(n, variance), plain = 0, along = 0;
    double d = n->behind ? sqrt(variance) : deviation;
    for (int i = 0; i < count; i++) {
        double dz = dy[i] * (scale != NULL ? scale[factor_of(n, g, i)] : 1);
        plain += dz;
        along += dz * (x[i] - mean);
    }
    for (int i = 0; i < count; i++) {
        double dz = dy[i] * (scale != NULL ? scale[factor_of(n, g, i)] : 1);
        double curve = n->variance && d > 0 ? (x[i] - mean) * along / (deviation * d) : 0;
        dx[i] = (dz - plain / count - curve / count) / deviation;
    }
}

void reference_normalize_backward(const struct reference_normalize *n, const double *x,
                                  const double *scale, const double *dy, double *dx, double *dscale,
                                  double *dbias)
{
    int count = n->channels * n->points;
    int factors = n->groups * n->channels * (n->elements ? n->points : 1);
    for (int f = 0; dscale != NULL && f < factors; f++)
        dscale[f] = dbias[f] = 0;
    for (int j = 0; j < n->outer * n->groups; j++, x += count, dy += count, dx += count) {
        double mean = mean_of(x, count), deviation = deviation_of(n, variance_of(x, count));
        differentiate(n, j % n->groups, x, scale, dy, dx);
        for (int i = 0; dscale != NULL && i < count; i++) {
            int f = factor_of(n, j % n->groups, i);
            dscale[f] += dy[i] * (x[i] - mean) / deviation;
            dbias[f] += dy[i];
        }
    }
}
