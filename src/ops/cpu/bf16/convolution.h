/* What the kernels for convolutions of bf16 or fp32 numbers share: the convolution that an op is,
 * or, of a deconvolution, that it is the gradient of.
 *
 * All is said in the words of the convolution: x is the picture with the windows, y has a number
 * for each window. A deconvolution leads from y to x.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_CONVOLUTION_H
#define LS_OPS_CPU_BF16_CONVOLUTION_H

#include "ir/kernel.h"
#include "ops/cpu/bf16/windows.h"
#include "ops/cpu/vector/bf16_ends.h"

enum ls_bf16_pass { LS_BF16_TO_Y, LS_BF16_TO_X, LS_BF16_TO_W };

/* Positions of a grid, and the taps (weights of a window, in their order) that come to them: all
 * positions of y, or positions of x a stride apart along each axis. */
struct ls_bf16_class {
    int64_t first[3], grid[3]; /* where the positions begin, and how many there are */
    int64_t taps;
    int64_t (*offset)[3]; /* by tap: see struct ls_bf16_windows */
    int64_t *tap;         /* which weight of the window it is */
};

struct ls_bf16_convolution {
    enum ls_bf16_pass pass;
    bool f32; /* of fp32 numbers */
    int64_t samples, groups;
    int64_t x_channels, y_channels; /* of a group */
    int64_t x[3], y[3];             /* extents; unused axes are the first, and 1 */
    int64_t stride[3];
    int64_t taps; /* weights of a window */
    struct ls_bf16_ends ends;
    /* Of y, or of x by the remainders modulo the strides. */
    struct ls_bf16_class *classes;
    int64_t class_count;
    int64_t (*offsets)[3], *tap_numbers; /* the memory of all classes */
};

static inline int64_t ls_bf16_plane(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

/* Says what is wrong with an op's definition, and in which layer. */
int ls_bf16_refuse(const struct ls_op *op, const char *problem, struct ls_error *error);
/* LOCKSTEP_RESOURCE where memory is short, LOCKSTEP_DEFINITION for windows that are too large; to
 * be released in any case. */
int ls_bf16_convolution_new(const struct ls_op *op, struct ls_bf16_convolution **convolution,
                            struct ls_error *error);
void ls_bf16_convolution_free(struct ls_bf16_convolution *convolution); /* NULL: nothing */

/* What a class meets: x for classes of y, y for those of x. Channels are those of one group. */
struct ls_bf16_windows ls_bf16_class_windows(const struct ls_bf16_convolution *convolution,
                                             const struct ls_bf16_class *class, const void *data);

/* The gradient of a deconvolution's bias: sums over the positions of x in all samples, in blocks of
 * 32 terms; and the bytes of scratch that it needs. */
void ls_bf16_sum_planes(const struct ls_bf16_convolution *convolution, const void *x, float *db,
                        void *scratch);
size_t ls_bf16_sum_scratch(const struct ls_bf16_convolution *convolution);

#endif
