/* Normalisation of each sample by itself in double precision by plain loops: what kernels are
 * compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_NORMALIZE_H
#define LS_TESTS_REFERENCE_NORMALIZE_H

/* x, y [outer][groups][channels][points]; scale, bias [groups][channels], or, for `elements`,
 * [groups][channels][points]; both may be NULL. */
struct reference_normalize {
    int outer, groups, channels, points;
    int variance, behind, elements;
    double eps;
};

void reference_normalize_forward(const struct reference_normalize *n, const double *x,
                                 const double *scale, const double *bias, double *y);
/* The gradients of sum(y * dy); dscale and dbias may be NULL. */
void reference_normalize_backward(const struct reference_normalize *n, const double *x,
                                  const double *scale, const double *dy, double *dx, double *dscale,
                                  double *dbias);

#endif
