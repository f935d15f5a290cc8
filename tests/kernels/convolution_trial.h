/* What the tests of convolutions and deconvolutions share: shapes, trials of the three passes, the
 * comparison of samples by themselves and among others. In the words of the convolution.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_CONVOLUTION_TRIAL_H
#define LS_TESTS_KERNELS_CONVOLUTION_TRIAL_H

#include "kernels/convolution_size.h"
#include "kernels/kernel_trial.h"

/* n samples of c channels with `size` positions along each of `axes` axes; o channels come out. */
struct shape_case {
    const char *name;
    int axes, n, c, o, group, size, kernel, stride, pad, dilation;
};

/* Sets the windows of `c` and the extents of its input, size[3]; unused axes have 1. */
void set_windows(struct convolution_size *c, const struct shape_case *shape, int size[3]);
struct ls_shape tensor_shape(int n, int channels, const int size[3], int axes);
double product(const int size[3]);
void set_attributes(struct ls_convolution_attr *attr, const struct convolution_size *c, int axes,
                    bool bias);
enum trial_pass { TRIAL_FORWARD, TRIAL_DATA, TRIAL_WEIGHTS };

/* Adds the inputs and outputs of a pass; `bias` is NULL where there is none. */
void add_tensors(struct trial *trial, enum trial_pass pass, const struct ls_shape *x,
                 const struct ls_shape *y, const struct ls_shape *w, const struct ls_shape *bias);

/* The first `n` samples by themselves, `some`, have the bits and layouts that they have in `all`.
 */
void compare_samples(const struct trial *all, const struct trial *some, int n, const char *name);

#endif
