/* See values.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/values.h"

bool ls_card_last(const struct ls_value *value)
{
    return value->layout == &ls_layout_channels_last && value->shape.rank > 2;
}

bool ls_card_is_bf16(const struct ls_value *value)
{
    return value->type == LS_BF16;
}

void ls_card_axis_order(const struct ls_value *value, int order[LS_RANK_MAX])
{
    const int rank = value->shape.rank;
    for (int a = 0; a < rank; a++)
        order[a] = a;
    if (!ls_card_last(value))
        return;
    for (int a = 1; a < rank - 1; a++)
        order[a] = a + 1;
    order[rank - 1] = 1;
}

struct ls_cuda_axes ls_card_axes(const struct ls_value *value, int axis, int axes)
{
    const struct ls_shape *shape = &value->shape;
    const bool last = ls_card_last(value);
    const int64_t dim = ls_shape_count(shape, axis, axis + axes);
    struct ls_cuda_axes of = {ls_shape_count(shape, 0, axis), dim,
                              ls_shape_count(shape, axis + axes, shape->rank)};
    if (last && axis == 1 && axes == 1) {
        of.outer *= of.inner;
        of.inner = 1;
    } else if (last && axis > 1) { /* channels lie behind what is in front of them */
        of.outer /= shape->dim[1];
        of.inner *= shape->dim[1];
    }
    return of;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

const struct ls_layout *ls_card_layout(const struct ls_op *op, const struct ls_op_layouts *layouts)
{
    const struct ls_value *output = op->outputs > 0 ? op->output[0] : NULL;
    const struct ls_layout *layout = layouts->in[0];
    if (output != NULL && output->gradient_of != NULL && output->gradient_of->layout != NULL)
        layout = output->gradient_of->layout;
    return layout == &ls_layout_channels_last ? layout : &ls_layout_plain;
}

void ls_card_lay_out(const struct ls_op *op, struct ls_op_layouts *layouts,
                     const struct ls_layout *layout, unsigned plain_in, unsigned plain_out)
{
    for (int i = 0; i < op->inputs; i++)
        layouts->in[i] = i < 32 && (plain_in >> i & 1) != 0 ? &ls_layout_plain : layout;
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = i < 32 && (plain_out >> i & 1) != 0 ? &ls_layout_plain : layout;
}

int ls_card_follow(const struct ls_op *op, struct ls_op_layouts *layouts, struct ls_error *error)
{
    (void)error;
    ls_card_lay_out(op, layouts, ls_card_layout(op, layouts), 0, 0);
    return 0;
}

/* ---- Types ----------------------------------------------------------------------------------- */

static bool has_type(const struct ls_value *value, bool wide)
{
    return value == NULL || !ls_dtype_is_float(value->type) ||
           value->type == (wide ? LS_F32 : LS_BF16);
}

bool ls_card_all_bf16(const struct ls_op *op, unsigned wide_in, unsigned wide_out)
{
    bool all = true;
    for (int i = 0; i < op->inputs; i++)
        all = all && has_type(op->input[i], i < 32 && (wide_in >> i & 1) != 0);
    for (int i = 0; i < op->outputs; i++)
        all = all && has_type(op->output[i], i < 32 && (wide_out >> i & 1) != 0);
    return all;
}

bool ls_card_takes_bf16(const struct ls_op *op)
{
    return ls_card_all_bf16(op, 0, 0);
}
