/* Numbers that are put elsewhere, and what their gradients add up, for host code; as kernels.h
 * says. The bits are those of portable nets and of ops with one definition (docs/numerics.md,
 * sections 18 and 20).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_SHAPING_H
#define LS_OPS_CUDA_SHAPING_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* Axes of y, none of one place, with the steps between their places in x. Axis `across`, whose step
 * is 1, is where places of x follow each other; -1: y has one place. */
struct ls_cuda_permutation {
    int rank, across;
    int64_t dim[LS_RANK_MAX], step[LS_RANK_MAX];
};
int ls_cuda_permute(cudaStream_t stream, const struct ls_cuda_permutation *of, const float *x,
                    float *y);

/* Windows over planes of x; axes that are not used have 1 place. */
struct ls_cuda_columns {
    int64_t planes, x[3], y[3], kernel[3], stride[3], pad[3], dilation[3];
};
int ls_cuda_im2col(cudaStream_t stream, const struct ls_cuda_columns *of, const float *x, float *y);
int ls_cuda_col2im(cudaStream_t stream, const struct ls_cuda_columns *of, const float *dy,
                   float *dx);

/* Planes of rows x columns, each number of which is `down` x `along` numbers of y. */
struct ls_cuda_upsampling {
    int64_t planes, rows, columns, down, along;
    int bytes; /* of an element: 2 or 4 */
};
int ls_cuda_upsample(cudaStream_t stream, const struct ls_cuda_upsampling *of, const void *x,
                     void *y);
int ls_cuda_upsample_backward(cudaStream_t stream, const struct ls_cuda_upsampling *of,
                              const float *dy, float *dx);

/* The places of numbers of small planes in large ones; -1: none. */
struct ls_cuda_unpooling {
    int64_t planes, small, large;
    int bytes; /* of an element: 2 or 4 */
};
/* y is zeros before. */
int ls_cuda_unpool(cudaStream_t stream, const struct ls_cuda_unpooling *of, const void *x,
                   const int32_t *index, void *y);
int ls_cuda_unpool_backward(cudaStream_t stream, const struct ls_cuda_unpooling *of, const void *dy,
                            const int32_t *index, void *dx);

/* Planes that are resized from x to y, of which `begin` and `end` are left out at both ends. */
struct ls_cuda_resizing {
    int64_t planes, x[2], y[2], begin, end;
};
int ls_cuda_resize(cudaStream_t stream, const struct ls_cuda_resizing *of, const float *x,
                   float *y);
/* row: scratch of planes y[0] x[1] floats. */
int ls_cuda_resize_backward(cudaStream_t stream, const struct ls_cuda_resizing *of, const float *dy,
                            float *row, float *dx);

/* ---- Rows ---- */

/* `picks` rows of `run` numbers, by index from `rows` rows of x; an index that is none gives NaN.
 */
struct ls_cuda_picks {
    int64_t rows, picks, run;
};
int ls_cuda_pick(cudaStream_t stream, const struct ls_cuda_picks *of, const float *x,
                 const float *index, float *y);
int ls_cuda_pick_backward(cudaStream_t stream, const struct ls_cuda_picks *of, const float *dy,
                          const float *index, float *dx);

/* Of n numbers; selected NULL: all are. */
int ls_cuda_select(cudaStream_t stream, int64_t n, const float *x, const float *selected, float *y);
int ls_cuda_filter(cudaStream_t stream, int64_t rows, int64_t run, float left_out, const float *x,
                   const float *selected, float *y);

/* ---- The largest of lists ---- */

/* Lists along the middle axis. */
struct ls_cuda_ranking {
    int64_t outer, dim, inner, top_k;
    bool places, values; /* what is written; both: the places of a list first */
};
int ls_cuda_argmax(cudaStream_t stream, const struct ls_cuda_ranking *of, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif
