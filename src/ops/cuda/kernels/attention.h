/* Attention, for host code; as kernels.h says. The bits are those of docs/numerics.md, section 25.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_ATTENTION_H
#define LS_OPS_CUDA_ATTENTION_H

#include <stddef.h>

#include "ir/attention.h"
#include "ir/batch_numbers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* Rows of q, k, v, y or their gradients: element d of row i of head h in row n of the batch is
 * data[n batch + i pitch + h head + d]. */
struct ls_cuda_rows {
    void *data; /* NULL: they are not wanted */
    bool bf16;
    int64_t batch, pitch, head;
};

enum { LS_CUDA_Q, LS_CUDA_K, LS_CUDA_V, LS_CUDA_OPERANDS };

struct ls_cuda_attention {
    struct ls_attention_attr attr; /* keys: the most that there can be */
    int64_t batch, rows;           /* all rows, and those of a sample */
    struct ls_cuda_rows in[LS_CUDA_OPERANDS];
    const float *lengths, *key_mask, *mask, *segments, *positions; /* each may be NULL */
    int64_t mask_samples, mask_heads;                              /* 1, or all */
    const double *powers; /* theta^(-2 i / dims), by pair */
    const struct ls_batch_numbers *numbers;
    bool back; /* it is the backward pass */
    void *scratch;
};

size_t ls_cuda_attention_scratch(const struct ls_cuda_attention *of);

/* Writes rows of k or v to a cache, from ls_batch_numbers.position on. */
int ls_cuda_append_rows(cudaStream_t stream, const struct ls_cuda_attention *of,
                        const struct ls_cuda_rows *from, int64_t depth,
                        const struct ls_cuda_rows *cache);
/* log_sum, [batch, heads, queries], may be NULL. */
int ls_cuda_attend(cudaStream_t stream, const struct ls_cuda_attention *of,
                   const struct ls_cuda_rows *y, float *log_sum);

struct ls_cuda_attention_back {
    struct ls_cuda_attention of;
    struct ls_cuda_rows y, dy;
    const float *log_sum;
    struct ls_cuda_rows out[LS_CUDA_OPERANDS]; /* of q, k and v */
};
int ls_cuda_attend_backward(cudaStream_t stream, const struct ls_cuda_attention_back *of);

#ifdef __cplusplus
}
#endif

#endif
