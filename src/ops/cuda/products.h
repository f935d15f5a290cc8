/* Convolutions as the kernels for products know them, for kernels of libraries, too.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_PRODUCTS_OF_H
#define LS_OPS_CUDA_PRODUCTS_OF_H

#include "ir/op.h"
#include "ops/cuda/kernels/products.h"

/* The windows of a convolution, a deconvolution or one of their gradients, without bias and ReLU;
 * values have their layouts. */
struct ls_cuda_convolution ls_card_convolution(const struct ls_op *op);

/* Whether operands of a product are read, and its result written, in bf16. Of a layer in bf16: both
 * operands are, the weights among them; a bias and the gradients of weights are fp32. */
bool ls_card_product_takes_bf16(const struct ls_op *op);

#endif
