/* What Lockstep's own kernels share.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "base/memory.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/kernels.h"

int ls_own_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    snprintf(prepared->implementation, sizeof prepared->implementation, "lockstep:%s",
             ls_cpu_isa_name(ls_cpu_isa()));
    return 0;
}

int ls_own_prepare_bf16(struct ls_prepared *prepared, const char *name)
{
    const bool bf16 = prepared->op->bf16;
    snprintf(prepared->implementation, sizeof prepared->implementation, "lockstep:%s:%s",
             bf16 ? "bf16" : "portable", bf16 ? name : ls_cpu_isa_name(ls_cpu_isa()));
    prepared->slow = ls_cpu_isa() < LS_ISA_AVX2;
    return 0;
}

void ls_own_release(struct ls_prepared *prepared)
{
    ls_free(prepared->state);
    prepared->state = NULL;
}

/* Gradients had best lie as the values lie that they are of: then nothing between two convolutions
 * has to be reordered. A value that a fusion removed has no layout; then what the forward pass left
 * behind (input 1 of most backward ops) says how it would have lain. */
const struct ls_layout *ls_gradient_layout(const struct ls_op *op,
                                           const struct ls_op_layouts *layouts)
{
    const struct ls_value *output = op->outputs > 0 ? op->output[0] : NULL;
    if (output != NULL && output->gradient_of != NULL) {
        if (output->gradient_of->layout != NULL)
            return output->gradient_of->layout;
        if (op->inputs > 1 && op->input[1] != NULL)
            return layouts->in[1];
    }
    return layouts->in[0];
}

int ls_layouts_follow(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    const struct ls_layout *layout =
        op->backward ? ls_gradient_layout(op, layouts) : layouts->in[0];
    (void)error;
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            layouts->in[i] = layout;
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            layouts->out[i] = layout;
    return 0;
}

size_t ls_value_elements(const struct ls_value *value)
{
    return ls_layout_elements(value->layout, &value->shape);
}

void ls_clear_padding(const struct ls_value *value, float *data)
{
    const struct ls_shape *shape = &value->shape;
    int64_t block = value->layout->block;
    if (block <= 1 || shape->rank < 2 || shape->dim[1] % block == 0)
        return;
    int64_t blocks = (shape->dim[1] + block - 1) / block, used = shape->dim[1] % block;
    int64_t points = ls_shape_count(shape, 2, shape->rank);
    for (int64_t n = 0; n < shape->dim[0]; n++) {
        float *last = data + ((n + 1) * blocks - 1) * points * block;
        for (int64_t p = 0; p < points; p++)
            for (int64_t lane = used; lane < block; lane++)
                last[p * block + lane] = 0;
    }
}
