/* Recurrent cells over the steps of sequences, for host code; as kernels.h says. The bits are those
 * of docs/numerics.md, section 21.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_RECURRENT_H
#define LS_OPS_CUDA_RECURRENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* As in struct ls_recurrent_attr; neither: RNN. */
struct ls_cuda_cells {
    bool lstm, gru, bf16;
    int64_t parts, steps, rows, hidden;
};

/* Inputs and outputs of RECURRENT by name; those that are absent are NULL. */
struct ls_cuda_recurrent {
    struct ls_cuda_cells cells;
    const void *z;
    const float *cont, *still, *w, *b, *h0, *c0;
    void *h;
    float *gates, *before, *c, *h_last, *c_last;
    bool z_bf16, h_bf16; /* types */
    void *scratch;
};
size_t ls_cuda_recurrent_scratch(const struct ls_cuda_cells *cells);
int ls_cuda_run_cells(cudaStream_t stream, const struct ls_cuda_recurrent *of);

/* The same of RECURRENT_BACKWARD. */
struct ls_cuda_recurrent_back {
    struct ls_cuda_cells cells;
    const void *dh, *h;
    const float *dh_last, *dc_last, *gates, *before, *c, *c0, *cont, *w;
    void *dz;
    float *du, *dstill, *dh0, *dc0;
    bool dh_bf16, h_bf16, dz_bf16; /* types */
    void *scratch;
};
size_t ls_cuda_recurrent_back_scratch(const struct ls_cuda_cells *cells);
int ls_cuda_run_cells_backward(cudaStream_t stream, const struct ls_cuda_recurrent_back *of);

#ifdef __cplusplus
}
#endif

#endif
