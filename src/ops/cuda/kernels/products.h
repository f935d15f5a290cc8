/* Products of matrices in the declared order (docs/numerics.md, sections 16 and 17; the sum of
 * device/product_sum.h), for products with weights and windows.
 *
 * A product has lines, columns and terms, for each group: out[line, column] is the sum over terms
 * of a(line, term) b(column, term). SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_PRODUCTS_H
#define LS_OPS_CUDA_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* y = x w^T + b, x [m, k], w [n, k], or [k, n] if `transpose`. Arrays are on the card. */
struct ls_cuda_inner {
    int64_t m, n, k;
    bool transpose;
    const float *bias; /* [n], or NULL; forward alone */
    bool relu;         /* forward alone */
    float slope;
    bool bf16, out_bf16; /* types of both operands, and of y or dx; gradients of weights are fp32 */
};
int ls_cuda_inner_product(cudaStream_t stream, const struct ls_cuda_inner *of, const void *x,
                          const void *w, void *y);
int ls_cuda_inner_product_data(cudaStream_t stream, const struct ls_cuda_inner *of, const void *dy,
                               const void *w, void *dx);
int ls_cuda_inner_product_weights(cudaStream_t stream, const struct ls_cuda_inner *of,
                                  const void *x, const void *dy, void *dw);

/* Windows over three axes that move over x and make y; unused axes have sizes and windows of 1.
 * A deconvolution is a convolution with x and y exchanged. */
struct ls_cuda_convolution {
    bool last; /* values and weights have their axis 1 last (ls_layout_channels_last), else plain */
    int64_t samples, groups;
    int64_t x_channels, y_channels; /* of a group */
    int64_t x[3], y[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t w_x, w_y;  /* steps of w from one channel of x, and of y, of its group to the next */
    int64_t w_group;   /* from one group to the next */
    const float *bias; /* of the result, by channel; NULL: none */
    bool relu;
    float slope;
    bool bf16, out_bf16; /* as above */
};
/* The sum to y, to x, and to w, of the other two. */
int ls_cuda_convolve_to_y(cudaStream_t stream, const struct ls_cuda_convolution *of, const void *x,
                          const void *w, void *y);
int ls_cuda_convolve_to_x(cudaStream_t stream, const struct ls_cuda_convolution *of, const void *y,
                          const void *w, void *x);
int ls_cuda_convolve_to_w(cudaStream_t stream, const struct ls_cuda_convolution *of, const void *x,
                          const void *y, void *w);

/* The gradient of a bias: dy, [samples, channels, points], summed for each channel. */
int ls_cuda_sum_channels(cudaStream_t stream, const void *dy, bool bf16, int64_t samples,
                         int64_t channels, int64_t points, float *db);

#ifdef __cplusplus
}
#endif

#endif
