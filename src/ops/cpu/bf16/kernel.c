/* See kernel.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/kernel.h"

bool ls_bf16_accepts(const struct ls_op *op)
{
    return op->bf16;
}

int ls_bf16_layouts(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = &ls_layout_plain;
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = &ls_layout_plain;
    layouts->in_type[1] = LS_BF16;
    return 0;
}
