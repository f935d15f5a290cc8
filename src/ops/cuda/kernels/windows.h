/* Windows over planes, for host code; as kernels.h says. The bits are those of portable nets.
 * Arrays without a type are of fp32, or, where `bf16` says so, of bf16; `last`: channels lie last.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_WINDOWS_H
#define LS_OPS_CUDA_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/batch_numbers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* Windows that move over the planes of x and make those of y; unused axes have sizes, windows and
 * strides of 1. */
struct ls_cuda_pooling {
    bool maximum; /* else the average */
    bool last, bf16;
    int64_t samples, channels, x[3], y[3], kernel[3], stride[3], dilation[3], pad[3];
};
/* index, which may be NULL: where in the plane the maximum was, -1: nowhere. */
int ls_cuda_pool(cudaStream_t stream, const struct ls_cuda_pooling *of, const void *x, void *y,
                 int32_t *index);
int ls_cuda_pool_backward(cudaStream_t stream, const struct ls_cuda_pooling *of, const void *dy,
                          const int32_t *index, void *dx);

/* Stochastic pooling, plain and fp32: a number is drawn for each of `each` elements of a sample. */
struct ls_cuda_draws {
    uint64_t key;
    int64_t each;
};
int ls_cuda_pool_drawn(cudaStream_t stream, const struct ls_cuda_pooling *of,
                       const struct ls_cuda_draws *draws, const struct ls_batch_numbers *numbers,
                       const float *x, float *y, int32_t *index);
/* What it gives in the mean. */
int ls_cuda_pool_expected(cudaStream_t stream, const struct ls_cuda_pooling *of, const float *x,
                          float *y);

/* Local response normalisation of [samples, channels, rows, columns]; others: rows 1. */
struct ls_cuda_lrn {
    bool within, last, bf16;
    int64_t size, samples, channels, rows, columns;
    float alpha, beta, k;
};
int ls_cuda_lrn_forward(cudaStream_t stream, const struct ls_cuda_lrn *of, const void *x, void *y,
                        float *scale);
/* scale: of the forward pass, across channels; NULL within them. */
int ls_cuda_lrn_backward(cudaStream_t stream, const struct ls_cuda_lrn *of, const void *x,
                         const void *y, const void *dy, const float *scale, void *dx);

#ifdef __cplusplus
}
#endif

#endif
