/* Winograd's algorithm for convolutions, F(4x4, 3x3): which ops it does.
 * (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks; 2016.)
 *
 * A tile of 4 x 4 results takes 36 multiplications for each pair of channels instead of 144, and
 * some more rounding. All three passes of a convolution do the same. The weights lie as for the
 * direct algorithm and are transformed inside: one layout serves micro-batches of every size. A
 * forward pass with a fused ReLU of a slope other than 0 stays direct.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_WINOGRAD_H
#define LS_OPS_CPU_WINOGRAD_H

#include <stdbool.h>

#include "ops/cpu/primitive.h"

/* The rule of AUTO: whether it pays, by shapes alone. Of `x` and `y` the channels are axis 1. */
bool ls_winograd_pays(const struct ls_convolution_attr *attr, const struct ls_shape *x,
                      const struct ls_shape *y);

/* The layouts of x, y and the weights are those of the direct algorithm, given in `forward`, a spec
 * of the forward pass. Sets *use; LOCKSTEP_DEFINITION where the definition demands what oneDNN does
 * not have. */
int ls_winograd_choose(const struct ls_op *op, const struct ls_primitive_spec *forward, bool *use,
                       struct ls_error *error);

#endif
