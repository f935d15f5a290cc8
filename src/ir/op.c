/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/op.h"

bool ls_convolution_suits_winograd(const struct ls_convolution_attr *attr)
{
    const struct ls_window *window = &attr->window;
    bool fits = window->axes >= 2 && attr->group == 1;
    for (int i = 0; i < window->axes; i++)
        fits = fits && window->kernel[i] == 3 && window->stride[i] == 1 &&
               window->dilation[i] == 1 && window->pad[i] <= 1;
    return fits;
}
