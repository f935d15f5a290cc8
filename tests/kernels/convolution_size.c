/* See kernels/convolution_size.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/convolution_size.h"

bool set_extents(struct convolution_size *size)
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
