/* Batch normalisation in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_BATCH_NORM_H
#define LS_TESTS_REFERENCE_BATCH_NORM_H

/* x, y [n][c][points]; y = f(scale (x - mean) / sqrt(variance + eps) + bias) */
struct reference_batch_norm {
    int n, c, points;
    const int *group_end; /* groups of samples: where each ends; the last ends at n */
    int groups;
    double eps;
    int relu; /* f(z) = z > 0 ? z : slope z */
    double slope;
    const double *scale, *bias; /* [c]; NULL: 1 and 0 */
    /* [c]; NULL: those of the groups. Saved ones are constants for the gradient. */
    const double *saved_mean, *saved_variance;
};

/* The mean and variance (divided by the number of values) of a channel in a group. */
void reference_batch_norm_moments(const struct reference_batch_norm *norm, const double *x,
                                  int group, int channel, double *mean, double *variance);
void reference_batch_norm_forward(const struct reference_batch_norm *norm, const double *x,
                                  double *y);
/* The gradient of sum(y * dy). */
void reference_batch_norm_backward(const struct reference_batch_norm *norm, const double *x,
                                   const double *dy, double *dx, double *dscale, double *dbias);

#endif
