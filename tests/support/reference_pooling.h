/* Pooling in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_POOLING_H
#define LS_TESTS_REFERENCE_POOLING_H

/* Three spatial axes; those that are not there have size 1, kernel 1, stride 1, pad 0. Tensors are
 * in Caffe's order: x [planes][in], y [planes][out]. */
struct reference_pooling {
    int planes;
    int in[3], kernel[3], stride[3], pad[3];
    int out[3]; /* set by reference_pooling_shape */
};

/* Fills `out` as Caffe does: rounded up, and with padding without a last window that would begin
 * behind the input. */
void reference_pooling_shape(struct reference_pooling *pooling);
/* y, and where in its plane the maximum was; the first of several. */
void reference_pooling_maximum(const struct reference_pooling *pooling, const double *x, double *y,
                               int *index);
void reference_pooling_maximum_backward(const struct reference_pooling *pooling, const double *dy,
                                        const int *index, double *dx);
void reference_pooling_average(const struct reference_pooling *pooling, const double *x, double *y);
void reference_pooling_average_backward(const struct reference_pooling *pooling, const double *dy,
                                        double *dx);

#endif
