/* Reorders: the same elements in another layout.
 *
 * Between plain and channel-blocked layouts (what lies behind the channels counts as one axis), and
 * from the layout that a kernel wrote a gradient in to the layout of its parameter.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/primitive.h"

/* Without channels there are no blocks of them: see ls_layout_elements. */
static struct ls_onednn_tensor activation(const struct ls_shape *shape, enum ls_dtype type,
                                          const struct ls_layout *layout)
{
    if (shape->rank < 2)
        layout = &ls_layout_plain;
    struct ls_onednn_tensor tensor = {.rank = 3, .type = type, .layout = layout};
    tensor.dim[0] = shape->rank > 0 ? shape->dim[0] : 1;
    tensor.dim[1] = shape->rank > 1 ? shape->dim[1] : 1;
    tensor.dim[2] = shape->rank > 2 ? ls_shape_count(shape, 2, shape->rank) : 1;
    return tensor;
}

static bool same_tensor(const struct ls_onednn_tensor *a, const struct ls_onednn_tensor *b)
{
    bool same = a->rank == b->rank && a->transposed == b->transposed && a->grouped == b->grouped;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

static int64_t tensor_size(const struct ls_onednn_tensor *tensor)
{
    int64_t size = 1;
    for (int i = 0; i < tensor->rank; i++)
        size *= tensor->dim[i];
    return size;
}

/* An opaque layout knows the axes of its tensor, which Caffe's shape may have otherwise (groups);
 * plain is then Caffe's order of these axes. */
int ls_reorder_tensors(const struct ls_shape *shape, enum ls_dtype type,
                       const struct ls_layout *from_layout, const struct ls_layout *to_layout,
                       struct ls_onednn_tensor *from, struct ls_onednn_tensor *to,
                       struct ls_error *error)
{
    const struct ls_layout *opaque = from_layout->block == 0 ? from_layout : to_layout;
    if (opaque->block == 0) {
        *from = *to = *ls_layout_tensor(opaque);
        if (to_layout->block == 0)
            *to = *ls_layout_tensor(to_layout);
        from->layout = from_layout;
        to->layout = to_layout;
    } else {
        *from = activation(shape, type, from_layout);
        *to = activation(shape, type, to_layout);
    }
    /* Weights have no axis of channels that blocks could be cut from. */
    bool mixed = opaque->block == 0 && (from_layout->block > 1 || to_layout->block > 1);
    if (mixed || !same_tensor(from, to) || tensor_size(from) != ls_shape_size(shape) ||
        from->type != type)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "no reorder leads from layout %s to %s", from_layout->name, to_layout->name);
    return 0;
}

static bool accepts(const struct ls_op *op)
{
    const struct ls_value *x = op->input[0], *y = op->output[0];
    struct ls_onednn_tensor from, to;
    if (x->type != y->type || (x->type != LS_F32 && x->type != LS_I32))
        return false;
    return ls_reorder_tensors(&x->shape, x->type, x->layout, y->layout, &from, &to, NULL) == 0;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_value *x = prepared->op->input[0], *y = prepared->op->output[0];
    struct ls_primitive_spec spec = {.kind = LS_PRIMITIVE_REORDER};
    LS_TRY(ls_reorder_tensors(&x->shape, x->type, x->layout, y->layout, &spec.tensor[LS_SOURCE],
                              &spec.tensor[LS_TARGET], error));
    return ls_primitive_prepare(prepared, &spec, error);
}

/* The plan has set both layouts before; a reorder has no wishes. */
static int layouts(const struct ls_op *op, struct ls_op_layouts *result, struct ls_error *error)
{
    (void)error;
    result->out[0] = op->output[0]->layout;
    return 0;
}

const struct ls_kernel ls_kernel_reorder = {
    .kind = LS_OP_REORDER,
    .bits = LS_BITS_EXACT,
    .name = "reorder",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};
