/* What is done element by element, and sums along axes, for host code; as kernels.h says. The bits
 * are those of portable nets (docs/numerics.md, section 18). Arrays without a type are of fp32, or,
 * where `bf16` says so, of bf16.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_ELEMENTS_H
#define LS_OPS_CUDA_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/activation.h"
#include "ir/batch_numbers.h"
#include "ir/methods.h"
#include "ir/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* n elements: y = f(x); dx = dy f', of `given`, which is x or y. */
int ls_cuda_activation(cudaStream_t stream, const struct ls_activation_attr *attr, bool bf16,
                       const void *x, void *y, int64_t n);
int ls_cuda_activation_backward(cudaStream_t stream, const struct ls_activation_attr *attr,
                                bool bf16, const void *dy, const void *given, void *dx, int64_t n);

/* A shape around an axis, as it lies in memory: those in front, it, those behind. */
struct ls_cuda_axes {
    int64_t outer, dim, inner;
};

/* y = from where sign > 0, else from times the slope of its channel, or of all (dim 1). */
int ls_cuda_prelu(cudaStream_t stream, const struct ls_cuda_axes *of, bool bf16, const void *from,
                  const void *sign, const float *slope, void *y);

/* x [outer, dim, inner], summed up by `dim`; `last`: it lies as [outer, inner, dim]. */
struct ls_cuda_sums {
    int64_t outer, dim, inner;
    bool last, bf16;
};
/* The gradient of slopes by channel; `shared`: of one slope. */
int ls_cuda_prelu_slope(cudaStream_t stream, const struct ls_cuda_sums *of, bool shared,
                        const void *dy, const void *x, float *slope);

/* Elements of a value that lie sample by sample in `outer` runs. In memory they may lie with the
 * channels last: [., channels, points] as [., points, channels]. */
struct ls_cuda_dropout {
    float ratio;
    uint64_t key;
    int64_t n, samples, run;
    bool last, bf16;
    int64_t channels, points;
};
/* y = x / (1 - ratio) where the element is kept, and `gate`, if it is there, is above 0. */
int ls_cuda_drop(cudaStream_t stream, const struct ls_cuda_dropout *of,
                 const struct ls_batch_numbers *numbers, const void *x, const void *gate, void *y);

enum { LS_CUDA_INPUTS = 64 };
struct ls_cuda_eltwise {
    enum ls_eltwise method;
    bool weighted, relu, bf16;
    float slope;
    int inputs, which;
    const void *gate; /* NULL: none */
    const void *x[LS_CUDA_INPUTS];
    float coefficient[LS_CUDA_INPUTS];
};
int ls_cuda_combine(cudaStream_t stream, const struct ls_cuda_eltwise *of, void *y, int64_t n);
/* The gradient of input `which`; x are the inputs where their values count (else 0 inputs). */
int ls_cuda_combine_backward(cudaStream_t stream, const struct ls_cuda_eltwise *of, const void *dy,
                             void *dx, int64_t n);

/* y = x factor + bias along the middle axes; either may be NULL. */
int ls_cuda_scale(cudaStream_t stream, const struct ls_cuda_axes *of, bool bf16, const void *x,
                  const float *factor, const float *bias, void *y);
/* dfactor and dbias, either may be NULL; x NULL: dfactor is not asked for. */
int ls_cuda_scale_sums(cudaStream_t stream, const struct ls_cuda_sums *of, const void *dy,
                       const void *x, float *dfactor, float *dbias);

/* A part of a whole tensor of so many axes: copies of elements of 4 bytes or 2. */
struct ls_cuda_part {
    int rank;
    int64_t whole[LS_RANK_MAX], part[LS_RANK_MAX], offset[LS_RANK_MAX];
    int bytes; /* of an element */
};
int ls_cuda_take_part(cudaStream_t stream, const struct ls_cuda_part *of, const void *whole,
                      void *part);
int ls_cuda_put_part(cudaStream_t stream, const struct ls_cuda_part *of, const void *part,
                     void *whole);
/* Sums of `tiles` copies that lie one behind the other in each of `outer` runs. */
int ls_cuda_tile_backward(cudaStream_t stream, bool bf16, int64_t outer, int64_t tiles, int64_t run,
                          const void *dy, void *dx);

/* y[i]: the reduction of run i of `run` elements. */
struct ls_cuda_reduction {
    enum ls_reduction method;
    float coeff, loss_weight;
    int64_t count, run;
    int normalizer; /* -1: 1 */
    bool uncounted; /* of a loss: record[1] stays as it is */
};
int ls_cuda_reduce(cudaStream_t stream, const struct ls_cuda_reduction *of, const float *x,
                   float *y);
/* record[0] += the reduction of all, record[1] += their number. */
int ls_cuda_reduce_loss(cudaStream_t stream, const struct ls_cuda_reduction *of, const float *x,
                        double *record);
/* dy NULL: the gradient of a loss. */
int ls_cuda_reduce_backward(cudaStream_t stream, const struct ls_cuda_reduction *of,
                            const struct ls_batch_numbers *numbers, const float *dy, const float *x,
                            float *dx);

#ifdef __cplusplus
}
#endif

#endif
