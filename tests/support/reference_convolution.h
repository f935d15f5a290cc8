/* Convolution in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_CONVOLUTION_H
#define LS_TESTS_REFERENCE_CONVOLUTION_H

#include <stddef.h>

/* Three spatial axes; those that are not there have size 1, kernel 1, stride 1, dilation 1, pad 0.
 * Tensors are in Caffe's order: x [n][c][in], w [o][c / group][kernel], b [o], y [n][o][out]. */
struct reference_convolution {
    int n, c, o, group;
    int in[3], kernel[3], stride[3], pad[3], dilation[3];
    int out[3]; /* set by reference_convolution_shape */
};

/* Fills `out` and says whether every axis of it has at least one element. */
int reference_convolution_shape(struct reference_convolution *convolution);
/* y = x * w + b (b may be NULL), y > 0 ? y : slope * y where `relu` is not 0 */
void reference_convolution_forward(const struct reference_convolution *convolution, const double *x,
                                   const double *w, const double *b, int relu, double slope,
                                   double *y);
/* The gradients of sum(y * dy), y without ReLU. db may be NULL. */
void reference_convolution_data(const struct reference_convolution *convolution, const double *dy,
                                const double *w, double *dx);
void reference_convolution_weights(const struct reference_convolution *convolution, const double *x,
                                   const double *dy, double *dw, double *db);

#endif
