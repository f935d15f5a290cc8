/* Softmax, losses and counts, for host code; as kernels.h says. The bits are those of portable nets
 * (docs/numerics.md, section 18).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_LOSSES_H
#define LS_OPS_CUDA_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/batch_numbers.h"
#include "ir/methods.h"
#include "ir/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* Classes along the middle axis of what the classes are of: scores and gradients, which may be
 * bf16, and probabilities, which are fp32. `last`: they lie as [outer, inner, dim]. */
struct ls_cuda_classes {
    int64_t outer, dim, inner;
    bool last, bf16;
};

/* A mask of as many axes as x, whose extents may be 1; rank 0: none. */
struct ls_cuda_mask {
    int rank;
    int64_t x[LS_RANK_MAX], mask[LS_RANK_MAX];
    const float *numbers;
};
int ls_cuda_softmax(cudaStream_t stream, const struct ls_cuda_classes *of,
                    const struct ls_cuda_mask *mask, const void *x, float *y);
int ls_cuda_softmax_backward(cudaStream_t stream, const struct ls_cuda_classes *of, const float *y,
                             const float *dy, void *dx);

/* What a loss is, beside its numbers. */
struct ls_cuda_loss {
    enum ls_normalization normalization;
    bool has_ignore, clamped, classed; /* classed: labels name classes */
    int ignore_label, normalizer;
    float loss_weight, smoothing, scale;
    int64_t samples, positions; /* what FULL and BATCH_SIZE count */
    const float *class_weight;  /* in the card's memory; NULL: all 1 */
};

/* Scratch of losses: a term for each position and part, and counts. Bytes. */
size_t ls_cuda_loss_scratch(int64_t positions, int64_t parts);

/* Adds [sum, count] to the record, with p the probabilities. */
int ls_cuda_softmax_loss(cudaStream_t stream, const struct ls_cuda_loss *loss,
                         const struct ls_cuda_classes *of, const float *p, const float *label,
                         void *scratch, double *record);
int ls_cuda_softmax_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss,
                                  const struct ls_cuda_classes *of,
                                  const struct ls_batch_numbers *numbers, const float *p,
                                  const float *label, void *dx);
/* Of probabilities [samples, classes]. */
int ls_cuda_log_loss(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t classes,
                     const float *p, const float *label, void *scratch, double *record);
int ls_cuda_log_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t classes,
                              const struct ls_batch_numbers *numbers, const float *p,
                              const float *label, float *dp);
/* Of n numbers each. */
int ls_cuda_sigmoid_loss(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                         const float *x, const float *target, void *scratch, double *record);
int ls_cuda_sigmoid_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                                  const struct ls_batch_numbers *numbers, const float *x,
                                  const float *target, float *dx);
int ls_cuda_euclidean_loss(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                           const float *a, const float *b, double *record);
int ls_cuda_euclidean_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                                    const struct ls_batch_numbers *numbers, const float *a,
                                    const float *b, float *da);
/* ---- Counts ---- */

struct ls_cuda_accuracy {
    struct ls_cuda_classes of;
    int top_k, ignore_label;
    bool has_ignore;
    int class_offset, confusion_offset; /* from the metric's place in the record; see `has` */
    bool has_class, has_confusion;
};
/* Bytes of scratch, of accuracies and of intersections. */
size_t ls_cuda_accuracy_scratch(const struct ls_cuda_accuracy *of);
/* record: that of the metric, [hits, valid]. */
int ls_cuda_count_hits(cudaStream_t stream, const struct ls_cuda_accuracy *of, const void *scores,
                       const float *label, void *scratch, double *record);
/* record: [hits x classes, taken x classes, true x classes]. */
int ls_cuda_mean_iou(cudaStream_t stream, const struct ls_cuda_accuracy *of, const void *scores,
                     const float *label, void *scratch, double *record);
/* record[0] += labels that count, or their weights, or (numbers) the sum of the numbers there. */
int ls_cuda_count_labels(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t classes,
                         int64_t n, const float *label, const float *numbers, double *record);

#ifdef __cplusplus
}
#endif

#endif
