/* Losses of pairs, margins and gains, for host code; as kernels.h says. The bits are those of
 * device/defined_losses.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_PAIR_LOSSES_H
#define LS_OPS_CUDA_PAIR_LOSSES_H

#include "ops/cuda/kernels/losses.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forward functions add [sum, count] to a record. Scratch: ls_cuda_pair_scratch of so many terms.
 */
size_t ls_cuda_pair_scratch(int64_t terms);

/* Rows of scores, one for each of `samples` labels. */
struct ls_cuda_margins {
    struct ls_cuda_loss loss;
    int64_t classes;
    bool squared;
};
/* A term for each score. */
int ls_cuda_hinge(cudaStream_t stream, const struct ls_cuda_margins *of, const float *x,
                  const float *label, void *scratch, double *record);
int ls_cuda_hinge_backward(cudaStream_t stream, const struct ls_cuda_margins *of,
                           const struct ls_batch_numbers *numbers, const float *x,
                           const float *label, float *dx);

/* Pairs of rows of `each` numbers, one for each sample. */
struct ls_cuda_pairs {
    struct ls_cuda_loss loss;
    int64_t each;
    float margin;
    bool legacy;
};
/* A term for each sample, backward, too. */
int ls_cuda_contrastive(cudaStream_t stream, const struct ls_cuda_pairs *of, const float *a,
                        const float *b, const float *similar, void *scratch, double *record);
int ls_cuda_contrastive_backward(cudaStream_t stream, const struct ls_cuda_pairs *of,
                                 const struct ls_batch_numbers *numbers, const float *a,
                                 const float *b, const float *similar, void *scratch, float *da);

/* With p the probabilities, which are made, and gains by label, row by row. A term for each. */
int ls_cuda_infogain(cudaStream_t stream, const struct ls_cuda_loss *loss,
                     const struct ls_cuda_classes *of, const float *x, const float *label,
                     const float *gains, void *scratch, float *p, double *record);
int ls_cuda_infogain_backward(cudaStream_t stream, const struct ls_cuda_loss *loss,
                              const struct ls_cuda_classes *of,
                              const struct ls_batch_numbers *numbers, const float *p,
                              const float *label, const float *gains, float *dx);
/* What each position adds to a softmax loss whose probabilities are p. */
int ls_cuda_softmax_each(cudaStream_t stream, const struct ls_cuda_loss *loss,
                         const struct ls_cuda_classes *of, const float *p, const float *label,
                         float *y);

/* Of n numbers; inside and outside may be NULL. */
struct ls_cuda_distances {
    float sigma2;
    int64_t n;
    const float *x, *target, *inside, *outside;
};
/* A term for each number. */
int ls_cuda_smooth_l1(cudaStream_t stream, const struct ls_cuda_loss *loss,
                      const struct ls_cuda_distances *of, void *scratch, double *record);
int ls_cuda_smooth_l1_backward(cudaStream_t stream, const struct ls_cuda_loss *loss,
                               const struct ls_cuda_distances *of,
                               const struct ls_batch_numbers *numbers, float *dx);
/* Sums along the middle axis. */
int ls_cuda_smooth_l1_each(cudaStream_t stream, const struct ls_cuda_distances *of,
                           const struct ls_cuda_classes *axes, float *y);

#ifdef __cplusplus
}
#endif

#endif
