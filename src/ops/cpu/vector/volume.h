/* Convolutions of volumes by 3 x 3 x 3 weights with stride 1, by Winograd's algorithm.
 *
 * F(2 x 2, 3 x 3) over the first two axes, direct along the third: 2 x 2 rows of results come of
 * 4 x 4 rows of x in 16 parts, each of which is a convolution of rows by 3 weights. That is 12
 * multiplications where the direct algorithm has 27, sums and halves before and after them, and
 * hardly more rounding. (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks; 2016.)
 *
 *   v = B' x B    u = G w G'    y = A' (sum over channels and taps of u v) A
 *
 * with B' = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1], G = [1 0 0; .5 .5 .5; .5 -.5 .5; 0 0 1],
 * A' = [1 1 1 0; 0 1 -1 -1]. The gradient by w goes back through the same: dw = G' (sum of v times
 * A dy A') G; that by x is a convolution of dy with the weights turned round.
 *
 * Order of sums: a number of a part takes input channels in order, the taps of each in order, in
 * one chain of fused multiply-adds. In the gradient by w the points of LS_VOLUME_ROWS rows of tiles
 * make one chain, the chains are added in order. All in blocks of channels, as many as registers
 * hold; the bits do not depend on that.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_VOLUME_H
#define LS_OPS_CPU_VECTOR_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

enum { LS_VOLUME_PARTS = 16, LS_VOLUME_TAPS = 27, LS_VOLUME_ROWS = 4 };

/* x [samples, in_blocks, in..., block] and y [samples, out_blocks, out..., block];
 * out = in + 2 pad - 2, at least 1 along the first two axes and 2 along the last one. */
struct ls_volume {
    int64_t samples, in_blocks, out_blocks;
    int64_t in[3], out[3], pad[3];
};

/* Weights in blocks [27 taps, block (channels of x), block (channels of y)]: that of out block o
 * and in block i is the o out_step + i in_step th. */
struct ls_volume_weights {
    int64_t out_blocks, in_blocks, out_step, in_step;
    bool turned; /* the taps in the opposite order, along all axes */
};

struct ls_volume_end {
    const float *bias; /* of y's channels, zeros behind the last one; NULL: none */
    bool relu;
    float slope;
};

struct ls_vector_volume {
    int64_t block;
    /* Floats of scratch memory: for `convolve`, for `differentiate`, and of transformed weights. */
    size_t (*convolve_scratch)(const struct ls_volume *volume);
    size_t (*differentiate_scratch)(const struct ls_volume *volume);
    size_t (*transformed_size)(int64_t out_blocks, int64_t in_blocks);
    void (*transform)(const struct ls_volume_weights *shape, const float *w, float *u);
    void (*convolve)(const struct ls_volume *volume, const float *x, const float *u,
                     const struct ls_volume_end *end, float *scratch, float *y);
    /* dw in blocks as the weights (out_step: in_blocks, in_step: 1); db: NULL, or the sums of dy,
     * out_blocks * block of them. */
    void (*differentiate)(const struct ls_volume *volume, const float *x, const float *dy,
                          float *scratch, float *dw, float *db);
};
LS_VECTOR_TABLES(ls_vector_volume)

#endif
