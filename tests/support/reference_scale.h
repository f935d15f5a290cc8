/* Factors and biases along axes in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_SCALE_H
#define LS_TESTS_REFERENCE_SCALE_H

/* x [outer][dim][inner], factor and bias [dim]; each may be NULL. */
struct reference_scale {
    int outer, dim, inner;
};

void reference_scale_forward(const struct reference_scale *scale, const double *x,
                             const double *factor, const double *bias, double *y);
/* The gradients of sum(y * dy); dx where a factor is given. */
void reference_scale_backward(const struct reference_scale *scale, const double *x,
                              const double *factor, const double *dy, double *dx, double *dfactor,
                              double *dbias);

#endif
