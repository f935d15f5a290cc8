/* What kernels compute, for host code: each function gives work to a stream and returns at once,
 * with a cudaError_t as an int. Arrays are in the card's memory, unless something else is said. The
 * bits are those of device/plain.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_KERNELS_H
#define LS_OPS_CUDA_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/update.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* ls_device.update. Arrays of the slice are the card's, `rule` and `slice` the host's until this
 * returns; seen[0], seen[1] are raised to the largest gradient and weight. */
int ls_cuda_update(cudaStream_t stream, const struct ls_update_rule *rule,
                   const struct ls_update_slice *slice, uint32_t *seen);

/* numbers[i] becomes +0 where bit first + i of the mask is set. */
int ls_cuda_clear_masked(cudaStream_t stream, const uint32_t *mask, size_t first, float *numbers,
                         size_t n);

/* *bits is raised to the largest magnitude. */
int ls_cuda_largest(cudaStream_t stream, const float *x, size_t n, uint32_t *bits);
/* chunk[c]: the sum of x^2, or of |x|, over the c-th LS_EXACT_CHUNK elements. */
int ls_cuda_norms(cudaStream_t stream, const float *x, size_t n, bool squared, double *chunk);

/* A parameter's exact sums. */
struct ls_cuda_sum {
    int64_t *total;     /* by element */
    const int32_t *row; /* by element; NULL: all in row 0, or, if `rows` says so, each its own */
    size_t elements, rows;
    const int32_t *exponent, *total_exponent; /* by row */
    uint32_t *largest;                        /* by row */
    int32_t *first_not_finite;
    const int32_t *measure; /* not 0: `total` stays as it is */
};
/* Adds elements [0, sum->elements) of a gradient of the micro-batch whose number is there. */
int ls_cuda_accumulate(cudaStream_t stream, const struct ls_cuda_sum *sum,
                       const int64_t *micro_batch, const float *gradient);
/* Row r of `rows` to row number[r] of the matrix, until the first number below 0. */
int ls_cuda_accumulate_rows(cudaStream_t stream, const struct ls_cuda_sum *sum,
                            const int64_t *micro_batch, const float *rows, const int32_t *number,
                            size_t count, size_t columns);
/* The sums of elements [begin, begin + count) as floats. */
int ls_cuda_read_sums(cudaStream_t stream, const struct ls_cuda_sum *sum, size_t begin,
                      size_t count, float *out);

/* chunk[c]: the sum of the squares of the c-th LS_EXACT_CHUNK of these numbers, those aside whose
 * bits are set in the parameter's mask (NULL: none). */
int ls_cuda_square_sums(cudaStream_t stream, const struct ls_cuda_sum *sum, size_t begin,
                        size_t count, const uint32_t *mask, double *chunk);

/* ls_device.update_from_sums: `sum` is the parameter's. */
struct ls_sum_update;
int ls_cuda_update_from_sums(cudaStream_t stream, const struct ls_sum_update *update,
                             const struct ls_cuda_sum *sum);

/* Rows of partial results (ir/sync.h) of a channel that are merged, for channels [begin, end). */
enum { LS_CUDA_ROWS = 64 };
struct ls_cuda_merging {
    bool moments; /* LS_SYNC_MOMENTS, else LS_SYNC_SUMS */
    int64_t channels;
    float eps;
    int count;
    int64_t begin, end;
    const double *const *many; /* `count` addresses, in the card's memory, too; NULL: in `few` */
    const double *few[LS_CUDA_ROWS];
};
int ls_cuda_merge(cudaStream_t stream, const struct ls_cuda_merging *of, float *merged);

/* Factors of a gradient: rows of both sides, one behind the other. */
struct ls_cuda_factors {
    const float *input, *output;
    size_t inputs, outputs, rows;
    bool transpose; /* the gradient is [inputs, outputs] */
    bool portable;
};
/* The piece of the gradient of the weights, or of the bias, that device/factors.h describes. */
int ls_cuda_factor_gradient(cudaStream_t stream, const struct ls_cuda_factors *factors, bool bias,
                            size_t begin, size_t rows, size_t columns, size_t row, float *gradient);

/* ls_device.make_samples. `making` is the host's until this returns, its arrays are the card's. */
struct ls_sample_making;
struct ls_sample_draw;
int ls_cuda_make_samples(cudaStream_t stream, const struct ls_sample_making *making,
                         const struct ls_sample_draw *draws, int64_t samples, void *out);

/* Exchanges two arrays that do not overlap; `bytes` is not 0. */
int ls_cuda_swap(cudaStream_t stream, void *a, void *b, size_t bytes);
int ls_cuda_fill_words(cudaStream_t stream, uint32_t *words, uint32_t value, size_t n);
/* number[i] = row[i] - 1, or 0 where that is below 0: rows as ls_device_accumulator.cut has them.
 */
int ls_cuda_number_rows(cudaStream_t stream, const float *row, int32_t *number, size_t n);

#ifdef __cplusplus
}
#endif

#endif
