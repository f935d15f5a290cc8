/* The sizes of a convolution, over three spatial axes; those that are not there have size 1, kernel
 * 1, stride 1, dilation 1, pad 0. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_CONVOLUTION_SIZE_H
#define LS_TESTS_KERNELS_CONVOLUTION_SIZE_H

#include <stdbool.h>

struct convolution_size {
    int n, c, o, group;
    int in[3], kernel[3], stride[3], pad[3], dilation[3];
    int out[3]; /* set by set_extents */
};

/* Fills `out` and says whether every axis of it has at least one element. */
bool set_extents(struct convolution_size *size);

#endif
