/* What losses have in common, for kernels: labels that count, what gradients are multiplied by, and
 * sums of terms in their order.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_LOSS_SUMS_H
#define LS_OPS_CUDA_LOSS_SUMS_H

#include <math.h>

#include "device/label.h"
#include "ops/cuda/kernels/cuda_c.h"
#include "ops/cuda/kernels/losses.h"

#define LS_LEAST_PROBABILITY 1e-20F /* as device/loss.h has it */

/* What the positions of a micro-batch leave beside their terms. */
struct ls_loss_tally {
    unsigned long long valid, bad; /* labels that count, and those of them that name no class */
};

__device__ static inline bool ls_is_ignored(const struct ls_cuda_loss *loss, float label)
{
    return ls_label_ignored(label, loss->has_ignore, loss->ignore_label);
}

__device__ static inline double ls_class_weight(const struct ls_cuda_loss *loss, int64_t c)
{
    return loss->class_weight != NULL ? (double)loss->class_weight[c] : 1.0;
}

/* What the gradient is multiplied by. */
__device__ static inline double ls_loss_scale(const struct ls_cuda_loss *loss,
                                              const struct ls_batch_numbers *numbers)
{
    const double divisor = loss->normalizer < 0 ? 1.0 : numbers->normalizers[loss->normalizer];
    return (double)loss->loss_weight / divisor;
}

/* `sum` plus n terms, one after the other: a warp reads them side by side, and all of its threads
 * add them up. */
__device__ static inline double ls_add_in_order(double sum, const double *term, int64_t n)
{
    const int64_t lane = threadIdx.x % 32;
    double next = lane < n ? term[lane] : 0;
    for (int64_t first = 0; first < n; first += 32) {
        const double mine = next;
        const int count = n - first < 32 ? (int)(n - first) : 32;
        next = first + 32 + lane < n ? term[first + 32 + lane] : 0;
        for (int k = 0; k < count; k++)
            sum += __shfl_sync(0xffffffffu, mine, k);
    }
    return sum;
}

/* Adds [sum, count]; a label that names no class makes the sum NaN. */
__device__ static inline void ls_add_loss(const struct ls_cuda_loss *loss, double sum,
                                          double weights, const struct ls_loss_tally *tally,
                                          double *record)
{
    record[0] += tally->bad > 0 ? (double)NAN : sum;
    record[1] += loss->normalization == LS_NORM_FULL         ? (double)loss->positions
                 : loss->normalization == LS_NORM_VALID      ? (double)tally->valid
                 : loss->normalization == LS_NORM_BATCH_SIZE ? (double)loss->samples
                 : loss->normalization == LS_NORM_WEIGHTS    ? weights
                                                             : 0;
}

#endif
