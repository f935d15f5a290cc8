/* What kernels of attention find in scratch memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_ATTENTION_PREPARE_H
#define LS_OPS_CUDA_ATTENTION_PREPARE_H

#include "device/attention_range.h"
#include "ops/cuda/kernels/attention.h"

struct ls_cuda_prepared {
    struct ls_attention_range *blocks; /* of keys, by block of queries */
    float *angles;                     /* [batch or 1, keys, dims] */
    float *turned[2];                  /* q [batch, queries, heads, depth], k */
    float *slope;                      /* backward: as large as either of the turned ones */
    float *dot;                        /* [batch, heads, queries] */
};

/* Finds the blocks of keys; where there are rotary positions it turns q and k, and `of` reads the
 * turned ones from then on. */
int ls_cuda_prepare_attention(cudaStream_t stream, struct ls_cuda_attention *of,
                              struct ls_cuda_prepared *prepared);
/* Where the gradient of q or k is put before it is turned back, and what turns it back to where it
 * belongs. */
struct ls_cuda_rows ls_cuda_slope_rows(const struct ls_cuda_attention *of, int which,
                                       const struct ls_cuda_prepared *prepared);
int ls_cuda_turn_back(cudaStream_t stream, const struct ls_cuda_attention *of, int which,
                      const struct ls_cuda_prepared *prepared, const struct ls_cuda_rows *to);

#endif
