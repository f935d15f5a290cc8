/* The attributes of losses, in a header by itself for kernels of a GPU.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_LOSS_H
#define LS_IR_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/methods.h"

struct ls_loss_attr {
    int axis; /* classes (softmax) */
    bool has_ignore;
    int ignore_label;
    enum ls_normalization normalization;
    int normalizer;    /* index into context->normalizers: the divisor of the gradient; -1 in
                          a forward op that no backward op follows */
    float loss_weight; /* multiplies the gradient */
    float smoothing;   /* SOFTMAX: in [0, 1) */
    bool clamped;      /* SOFTMAX: as two layers have it; without smoothing */
    /* SOFTMAX, LOG, COUNT_LABELS: one for each of `classes`, of the definition; NULL: all 1 */
    const float *class_weight;
    int64_t classes;
    float scale;  /* EUCLIDEAN, CONTRASTIVE, SMOOTH_L1 backward: +1 for a's gradient, -1 for b's */
    bool squared; /* HINGE */
    float margin; /* CONTRASTIVE */
    bool legacy;  /* CONTRASTIVE */
    float sigma2; /* SMOOTH_L1: > 0 */
    const float *matrix; /* INFOGAIN: H, row by label, of the graph; NULL: it is input 2 */
    /* Into the record: [sum, count], count as `normalization` divides: FULL all positions, VALID
     * those that are not ignored, BATCH_SIZE the rows in front of `axis` (SOFTMAX; others: axis 0),
     * WEIGHTS the sum of class_weight[label] over those that are not ignored. */
    int metric_offset;
};

#endif
