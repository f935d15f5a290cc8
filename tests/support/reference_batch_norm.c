/* Batch normalisation in double precision by plain loops.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_batch_norm.h"

#include <math.h>
#include <stddef.h>

/* The values of a channel in a group, as indices of x: DO(i). */
#define EACH_VALUE(norm, group, channel, DO)                                                       \
    for (int n_ = (group) > 0 ? (norm)->group_end[(group)-1] : 0; n_ < (norm)->group_end[group];   \
         n_++)                                                                                     \
        for (int p_ = 0; p_ < (norm)->points; p_++)                                                \
    DO((n_ * (norm)->c + (channel)) * (norm)->points + p_)

void reference_batch_norm_moments(const struct reference_batch_norm *norm, const double *x,
                                  int group, int channel, double *mean, double *variance)
{
    double sum = 0, squares = 0, count = 0;
    if (norm->saved_mean != NULL) {
        *mean = norm->saved_mean[channel];
        *variance = norm->saved_variance[channel];
        return;
    }
#define DO(i) sum += x[i], count++
    EACH_VALUE(norm, group, channel, DO);
#undef DO
    *mean = sum / count;
#define DO(i) squares += (x[i] - *mean) * (x[i] - *mean)
    EACH_VALUE(norm, group, channel, DO);
#undef DO
    *variance = squares / count;
}

static double scale_of(const struct reference_batch_norm *norm, int channel)
{
    return norm->scale != NULL ? norm->scale[channel] : 1;
}

static double before_relu(const struct reference_batch_norm *norm, int channel, double normal)
{
    return scale_of(norm, channel) * normal + (norm->bias != NULL ? norm->bias[channel] : 0);
}

void reference_batch_norm_forward(const struct reference_batch_norm *norm, const double *x,
                                  double *y)
{
    for (int group = 0; group < norm->groups; group++)
        for (int c = 0; c < norm->c; c++) {
            double mean, variance;
            reference_batch_norm_moments(norm, x, group, c, &mean, &variance);
            double std = sqrt(variance + norm->eps);
#define DO(i)                                                                                      \
    {                                                                                              \
        double z = before_relu(norm, c, (x[i] - mean) / std);                                      \
        y[i] = !norm->relu || z > 0 ? z : norm->slope * z;                                         \
    }
            EACH_VALUE(norm, group, c, DO)
#undef DO
        }
}

static void backward_channel(const struct reference_batch_norm *norm, const double *x,
                             const double *dy, int group, int c, double *dx, double *dscale,
                             double *dbias)
{
    double mean, variance, sum = 0, sum_x = 0, count = 0;
    reference_batch_norm_moments(norm, x, group, c, &mean, &variance);
    double std = sqrt(variance + norm->eps);
#define DZ(i)                                                                                      \
    (!norm->relu || before_relu(norm, c, (x[i] - mean) / std) > 0 ? dy[i] : norm->slope * dy[i])
#define DO(i) sum += DZ(i), sum_x += DZ(i) * (x[i] - mean) / std, count++
    EACH_VALUE(norm, group, c, DO);
#undef DO
    *dscale += sum_x;
    *dbias += sum;
    double all = norm->saved_mean == NULL ? 1 / count : 0;
#define DO(i)                                                                                      \
    dx[i] = scale_of(norm, c) / std * (DZ(i) - all * sum - all * sum_x * (x[i] - mean) / std)
    EACH_VALUE(norm, group, c, DO);
#undef DO
#undef DZ
}

void reference_batch_norm_backward(const struct reference_batch_norm *norm, const double *x,
                                   const double *dy, double *dx, double *dscale, double *dbias)
{
    for (int c = 0; c < norm->c; c++) {
        dscale[c] = dbias[c] = 0;
        for (int group = 0; group < norm->groups; group++)
            backward_channel(norm, x, dy, group, c, dx, &dscale[c], &dbias[c]);
    }
}
