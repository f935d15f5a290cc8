/* Normalisation by the batch and by sample, for host code; as kernels.h says. The bits are those of
 * portable nets (docs/numerics.md, section 18). Arrays without a type are of fp32, or, where `bf16`
 * says so, of bf16.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_NORMS_H
#define LS_OPS_CUDA_NORMS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* Rows [first, first + rows) of x [., channels, points]: those of a group's part. `last`: they lie
 * as [., points, channels]. */
struct ls_cuda_part_rows {
    bool last, bf16;
    int64_t channels, points, first, rows;
};
/* Mean and M2 of each channel, and the count, into a row of partial results (ir/sync.h). */
int ls_cuda_moments(cudaStream_t stream, const struct ls_cuda_part_rows *of, const void *x,
                    double *row);

/* What channels are normalised by: merged statistics and, backward, sums, or saved averages. */
struct ls_cuda_batch_norm {
    struct ls_cuda_part_rows rows;
    const float *merged, *sums;             /* of the group; NULL: saved averages, no sums */
    const float *mean, *variance, *divisor; /* saved; any may be NULL */
    const float *scale, *bias;              /* either may be NULL */
    float eps;
    bool relu;
    float slope;
};
int ls_cuda_batch_norm_forward(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                               const void *x, void *y);
/* y: where a ReLU's gradient takes its sign from; NULL: it is computed again. */
int ls_cuda_batch_norm_backward(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                                const void *dy, const void *x, const void *y, void *dx);
/* Sums of dz and dz x^ by channel: into a row of partial results (NULL: none), and added to
 * total[channel] and total[channels + channel], which the first part begins. */
int ls_cuda_batch_norm_sums(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                            const void *dy, const void *x, const void *y, bool begins, double *row,
                            double *total);
/* y[i] = total[i] as a float */
int ls_cuda_round(cudaStream_t stream, const double *total, int64_t n, float *y);

enum { LS_CUDA_STATS = 4 }; /* numbers that are kept of a group of values of a sample */

/* Groups of values of samples: x [outer, dim, inner], dim in `groups`. */
struct ls_cuda_normalize {
    int64_t outer, dim, inner, groups;
    bool bf16, variance, behind, elements, around_zero;
    float eps;
};
int ls_cuda_normalize_forward(cudaStream_t stream, const struct ls_cuda_normalize *of,
                              const void *x, const float *scale, const float *bias, void *y,
                              float *stats);
int ls_cuda_normalize_data(cudaStream_t stream, const struct ls_cuda_normalize *of, const void *dy,
                           const void *x, const float *stats, const float *scale, void *dx);
int ls_cuda_normalize_sums(cudaStream_t stream, const struct ls_cuda_normalize *of, const void *dy,
                           const void *x, const float *stats, float *dscale, float *dbias);

#ifdef __cplusplus
}
#endif

#endif
