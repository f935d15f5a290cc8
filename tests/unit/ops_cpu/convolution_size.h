/* The sizes of a convolution, over three spatial axes; those that are not there have size 1, kernel
 * 1, stride 1, dilation 1, pad 0. SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_UNIT_OPS_CPU_CONVOLUTION_SIZE_H
#define TESTS_UNIT_OPS_CPU_CONVOLUTION_SIZE_H

#include <stdbool.h>

struct convolution_size {
    int n, c, o, group;
    int in[3], kernel[3], stride[3], pad[3], dilation[3];
    int out[3]; /* set by set_extents */
};

/* Fills `out` and says whether every axis of it has at least one element. */
static inline bool set_extents(struct convolution_size *size)
{
    for (int a = 0; a < 3; a++) {
        int extent = size->dilation[a] * (size->kernel[a] - 1) + 1;
        int room = size->in[a] + 2 * size->pad[a] - extent;
        if (room < 0)
            return false;
        size->out[a] = room / size->stride[a] + 1;
    }
    return true;
}

#endif
