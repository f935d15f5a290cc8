/* Methods that attributes of ops choose among, in a header by itself for kernels of a GPU.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_METHODS_H
#define LS_IR_METHODS_H

enum ls_pooling {
    LS_POOL_MAX,
    LS_POOL_AVERAGE,
    LS_POOL_STOCHASTIC, /* x[i] with probability x[i] / sum x, for x >= 0 */
    LS_POOL_EXPECTED    /* sum x^2 / sum x: what STOCHASTIC gives in the mean */
};
enum ls_eltwise { LS_ELTWISE_PROD, LS_ELTWISE_SUM, LS_ELTWISE_MAX };

/* By what a loss is divided (Caffe's LossParameter.NormalizationMode). */
enum ls_normalization {
    LS_NORM_FULL,
    LS_NORM_VALID,
    LS_NORM_BATCH_SIZE,
    LS_NORM_NONE,
    LS_NORM_WEIGHTS /* Lockstep's own; only with class_weight */
};

/* y = coeff * sum of x (SUM), |x| (ASUM), x^2 (SUMSQ), or sum of x / count (MEAN). */
enum ls_reduction { LS_REDUCE_SUM, LS_REDUCE_ASUM, LS_REDUCE_SUMSQ, LS_REDUCE_MEAN };

#endif
