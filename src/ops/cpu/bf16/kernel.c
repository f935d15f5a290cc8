/* See kernel.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/kernel.h"

#include "ops/cpu/matrix_products.h"

bool ls_bf16_accepts(const struct ls_op *op)
{
    switch (op->kind) {
    case LS_OP_INNER_PRODUCT:
    case LS_OP_INNER_PRODUCT_DATA:
    case LS_OP_INNER_PRODUCT_WEIGHTS:
        return op->bf16 || op->attr.inner_product.portable;
    default:
        return op->bf16 || op->attr.convolution.algorithm == LS_CONVOLUTION_PORTABLE ||
               ls_replaces_matrix_products(op);
    }
}

bool ls_bf16_takes(const struct ls_op *op)
{
    return op->bf16;
}

void ls_bf16_put_ones(bool f32, void *to, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++)
        if (f32)
            ((float *)to)[i] = 1;
        else
            ((uint16_t *)to)[i] = LS_BF16_ONE;
}

int ls_bf16_layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = &ls_layout_plain;
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = &ls_layout_plain;
    layouts->in_type[1] = op->bf16 ? LS_BF16 : LS_F32;
    return 0;
}
