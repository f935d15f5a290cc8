/* The loss of scores that are a product, for host code; as kernels.h says. The bits are those of
 * device/linear_loss.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_LINEAR_LOSS_H
#define LS_OPS_CUDA_LINEAR_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/batch_numbers.h"
#include "ir/methods.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

struct ls_cuda_linear {
    int64_t rows, inputs, classes;
    int64_t most;         /* rows of a block */
    bool bf16;            /* operands of products are rounded to bf16 */
    bool x_bf16, dx_bf16; /* types */
    bool hits, gradients, has_ignore;
    int ignore_label, normalizer;
    enum ls_normalization normalization;
    float loss_weight, smoothing;
    double weights;            /* of all classes together, with smoothing */
    const float *class_weight; /* NULL: all 1 */
    const void *x;
    const float *label, *w, *bias, *bytes; /* the last two may be NULL */
    void *dx;                              /* each of the gradients may be NULL */
    float *dw, *db;
    double *record, *figures; /* [sum, count]; ls_linear_loss_attr.figures, or NULL */
    const struct ls_batch_numbers *numbers;
    void *scratch;
};
size_t ls_cuda_linear_scratch(const struct ls_cuda_linear *of);
int ls_cuda_linear_loss(cudaStream_t stream, const struct ls_cuda_linear *of);

#ifdef __cplusplus
}
#endif

#endif
