/* Loops of batch normalisation, over the values of some samples, channel by channel.
 *
 *   x^ = ((x - mean) - rest) inv_std,   y = f(scale x^ + bias),   f(z) = z > 0 ? z : slope z
 *   dz = y > 0 ? dy : slope dy,         dx = factor (dz - mean_dz - x^ mean_dzx)
 *
 * Where channels lie side by side, vectors lie along them, and the sums of a channel are kept in
 * four (two) accumulators, by position; where they do not, vectors lie along positions, in sixteen
 * lanes. Sums are doubles. The bits depend on the view alone, not on the instruction set.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BATCH_NORM_H
#define LS_OPS_CPU_VECTOR_BATCH_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

/* Where the values lie, counted in numbers: `runs` of `points` values for each channel. All of x,
 * y, dy and dx are fp32, or bf16: then what is computed in fp32 is rounded at its end. */
struct ls_batch_norm_view {
    int64_t channels;            /* lanes of padding included */
    int64_t block, block_stride; /* channels side by side, and from one such block to the next */
    int64_t runs, run_stride;
    int64_t points, point_stride; /* block 1: stride 1 */
    bool bf16;                    /* only with block 1 */
};

/* What the loops know of each channel; arrays of at least `channels` floats. */
struct ls_batch_norm_channels {
    const float *mean, *rest, *inv_std;
    const float *scale, *bias;                /* forward; backward with a ReLU and no y */
    const float *factor, *mean_dz, *mean_dzx; /* backward: factor is scale inv_std */
    bool relu;                                /* else f(z) = z, and y is not read */
    float slope;
};

struct ls_vector_batch_norm {
    /* The mean, and the sum of squared distances from it; by channel. */
    void (*moments)(const struct ls_batch_norm_view *view, const void *x, double *mean, double *m2);
    void (*forward)(const struct ls_batch_norm_view *view,
                    const struct ls_batch_norm_channels *channels, const void *x, void *y);
    /* The sums of dz and of dz x^, by channel. Here and in `backward`, y may be NULL: whether it is
     * positive is found from x then, with the same bits. */
    void (*sums)(const struct ls_batch_norm_view *view,
                 const struct ls_batch_norm_channels *channels, const void *dy, const void *x,
                 const void *y, double *sum_dz, double *sum_dzx);
    /* dx may be dy. Without x (NULL): dx = factor dz, no means of dz are read, and a ReLU needs y.
     */
    void (*backward)(const struct ls_batch_norm_view *view,
                     const struct ls_batch_norm_channels *channels, const void *dy, const void *x,
                     const void *y, void *dx);
};
LS_VECTOR_TABLES(ls_vector_batch_norm)

#endif
