/* What is done around a convolution that a library computes, for host code: types are converted,
 * its sums get bias and ReLU, and the gradient of the bias is summed.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CONVOLUTION_ENDS_H
#define LS_OPS_CUDA_CONVOLUTION_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* n numbers of bf16 as fp32. */
int ls_cuda_widen(cudaStream_t stream, const void *bf16, int64_t n, float *wide);

/* A value [samples, channels, points], or, if `last`, [samples, points, channels]. */
struct ls_cuda_channel_planes {
    int64_t samples, channels, points;
    bool last;
    bool bf16; /* its numbers, else fp32 */
};

/* to = f(sums + bias), where f is a ReLU if `relu`; `of` describes `to`, and `sums` lie alike. They
 * may be one array of fp32. */
struct ls_cuda_ends {
    struct ls_cuda_channel_planes of;
    const float *bias; /* by channel; NULL: none */
    bool relu;
    float slope;
};
int ls_cuda_end_convolution(cudaStream_t stream, const struct ls_cuda_ends *ends, const float *sums,
                            void *to);

/* The gradient of a bias: dy summed for each channel, in an order that follows from the shape and
 * the layout alone. `partial` has room for so many numbers. */
size_t ls_cuda_bias_partials(const struct ls_cuda_channel_planes *of);
int ls_cuda_bias_gradient(cudaStream_t stream, const struct ls_cuda_channel_planes *of,
                          const void *dy, float *partial, float *db);

#ifdef __cplusplus
}
#endif

#endif
