/* What layers of sequences consist of besides attention and cells, for host code; as kernels.h
 * says. The bits are those that docs/numerics.md declares for every device (sections 17, 20 and
 * 23). SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_SEQUENCES_H
#define LS_OPS_CUDA_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/filler_number.h"
#include "ir/activation.h"
#include "ir/batch_numbers.h"
#include "ir/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* ---- Products of matrices -------------------------------------------------------------------- */

struct ls_cuda_matmul {
    struct ls_matmul of;
    bool transpose_a, transpose_b;
    float scale;
    bool bf16, out_bf16; /* types of a and b, and of y */
};
int ls_cuda_multiply_matrices(cudaStream_t stream, const struct ls_cuda_matmul *of, const void *a,
                              const void *b, void *y);

/* ---- Gated linear units ---------------------------------------------------------------------- */

struct ls_cuda_glu {
    struct ls_activation_attr gate;
    bool linear, keeps_x; /* ls_activation_keeps_x */
    bool halves;          /* value and gate are in one array, in runs of 2 `run` numbers */
    bool gate_first;
    bool bf16;      /* all values are */
    int64_t n, run; /* n: elements of y */
};
int ls_cuda_gate(cudaStream_t stream, const struct ls_cuda_glu *of, const void *value,
                 const void *gate, void *y);
/* dvalue or dgate may be NULL; of halves all is the same array. */
int ls_cuda_gate_backward(cudaStream_t stream, const struct ls_cuda_glu *of, const void *dy,
                          const void *value, const void *gate, void *dvalue, void *dgate);

/* ---- Places along an axis -------------------------------------------------------------------- */

/* x [outer, places, inner], y [outer, picks, inner]; `each` outer positions share a list of
 * numbers. A number that names no place gives NaNs. */
struct ls_cuda_gather {
    int64_t outer, places, picks, inner, each;
    int bytes; /* of an element */
};
int ls_cuda_take_places(cudaStream_t stream, const struct ls_cuda_gather *of, const void *x,
                        const float *index, void *y);
size_t ls_cuda_take_places_scratch(const struct ls_cuda_gather *of);
int ls_cuda_take_places_backward(cudaStream_t stream, const struct ls_cuda_gather *of,
                                 const float *dy, const float *index, void *scratch, float *dx);

struct ls_cuda_pad {
    bool reflect, edge; /* ls_pad_mode; neither: constant */
    int rank, bytes;
    int64_t x[LS_RANK_MAX], y[LS_RANK_MAX], before[LS_RANK_MAX];
    uint32_t value; /* bits of an element */
};
int ls_cuda_pad_places(cudaStream_t stream, const struct ls_cuda_pad *of, const void *x, void *y);
int ls_cuda_pad_places_backward(cudaStream_t stream, const struct ls_cuda_pad *of, const float *dy,
                                float *dx);

/* segment: NULL, or [rows, places]. */
int ls_cuda_positions(cudaStream_t stream, int64_t rows, int64_t places, int offset,
                      const struct ls_batch_numbers *numbers, const float *segment, float *y);

/* ---- Rows of a table ------------------------------------------------------------------------- */

/* n indices of rows of a table [rows, columns]. */
struct ls_cuda_embed {
    int64_t n, rows, columns;
};
int ls_cuda_take_rows(cudaStream_t stream, const struct ls_cuda_embed *of, const float *w,
                      const float *index, const float *bias, float *y);
size_t ls_cuda_embed_scratch(const struct ls_cuda_embed *of);
/* dw or db may be NULL. */
int ls_cuda_embed_weights(cudaStream_t stream, const struct ls_cuda_embed *of, const float *dy,
                          const float *index, void *scratch, float *dw, float *db);
/* The rows of dw that occur, and their numbers; `most`: how many there is room for. */
int ls_cuda_embed_rows(cudaStream_t stream, const struct ls_cuda_embed *of, int64_t most,
                       const float *dy, const float *index, void *scratch, float *rows,
                       int32_t *number, float *db);

/* Bags of `length` indices. */
struct ls_cuda_bags {
    int64_t bags, length, rows, columns;
    bool mean, has_padding;
    int padding;
    const float *index, *lengths, *weights; /* the last two may be NULL */
};
int ls_cuda_embed_bag(cudaStream_t stream, const struct ls_cuda_bags *of, const float *w, float *y);
int ls_cuda_embed_bag_rows(cudaStream_t stream, const struct ls_cuda_bags *of, const float *dy,
                           float *to);
int ls_cuda_embed_bag_factors(cudaStream_t stream, const struct ls_cuda_bags *of, const float *dy,
                              const float *w, float *to);

/* ---- Fillers --------------------------------------------------------------------------------- */

/* n numbers, `each` of them for a sample: those of its ordinal, or, without samples, of 0. */
struct ls_cuda_fill {
    struct ls_filler filler;
    uint64_t key, mask_key;
    bool samples;
    int64_t n, each;
};
int ls_cuda_fill_numbers(cudaStream_t stream, const struct ls_cuda_fill *of,
                         const struct ls_batch_numbers *numbers, float *y);

#ifdef __cplusplus
}
#endif

#endif
