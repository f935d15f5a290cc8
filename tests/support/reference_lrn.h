/* Local response normalisation in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_LRN_H
#define LS_TESTS_REFERENCE_LRN_H

/* x, y, s [n][c][h][w] */
struct reference_lrn {
    int n, c, h, w;
    int within, size;
    double alpha, beta, k; /* within: k is not used, 1 takes its place */
};

/* s: what y was divided by, before the power of beta. */
void reference_lrn_forward(const struct reference_lrn *lrn, const double *x, double *y, double *s);
/* The gradient of sum(y * dy). */
void reference_lrn_backward(const struct reference_lrn *lrn, const double *x, const double *dy,
                            double *dx);

#endif
