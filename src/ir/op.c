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

bool ls_op_is_portable_product(const struct ls_op *op)
{
    if (op->tf32)
        return false;
    switch (op->kind) {
    case LS_OP_CONVOLUTION:
    case LS_OP_CONVOLUTION_DATA:
    case LS_OP_CONVOLUTION_WEIGHTS:
    case LS_OP_DECONVOLUTION:
    case LS_OP_DECONVOLUTION_DATA:
    case LS_OP_DECONVOLUTION_WEIGHTS:
        return op->bf16 || op->attr.convolution.algorithm == LS_CONVOLUTION_PORTABLE;
    case LS_OP_INNER_PRODUCT:
    case LS_OP_INNER_PRODUCT_DATA:
    case LS_OP_INNER_PRODUCT_WEIGHTS:
        return op->bf16 || op->attr.inner_product.portable;
    case LS_OP_LINEAR_LOSS:
    case LS_OP_LINEAR_LOSS_GRADIENT:
    case LS_OP_MATMUL:
        return true;
    default:
        return false;
    }
}
