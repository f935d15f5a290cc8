/* What follows a library's product, for host code; as kernels.h says.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_FINISH_H
#define LS_OPS_CUDA_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

struct ls_cuda_ending {
    int64_t columns;
    const float *bias; /* by column; NULL: none */
    bool relu;
    float slope;
};
/* y = f(sum + bias), n numbers, row by row; bf16: y is rounded to it. In fp32 y may be `sum`. */
int ls_cuda_end_sums(cudaStream_t stream, const struct ls_cuda_ending *of, const float *sum,
                     bool bf16, void *y, int64_t n);

/* sums[c]: the sum of column c of numbers of fp32 or bf16, in the order of docs/numerics.md,
 * section 16, as ls_cuda_sum_channels has it for single points; with more threads a column. */
int ls_cuda_sum_columns(cudaStream_t stream, const void *numbers, bool bf16, int64_t rows,
                        int64_t columns, float *sums);

#ifdef __cplusplus
}
#endif

#endif
