/* y = x factor + bias along some axes of x, and the gradients of factor and bias. Keeps the layout
 * that is there, unless the factor's axes go into a picture: then everything is plain.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/scale.h"

/* What x would best lie as. Of two inputs that matter the gradient follows the value. */
static const struct ls_layout *layout_for(const struct ls_op *op,
                                          const struct ls_op_layouts *layouts)
{
    const struct ls_value *output = op->output[0];
    if (op->attr.scale.axis + op->attr.scale.axes > 2)
        return &ls_layout_plain;
    if (op->kind == LS_OP_SCALE_SUMS)
        return layouts->in[op->input[1] != NULL ? 1 : 0];
    if (op->backward && output->gradient_of != NULL && output->gradient_of->layout != NULL)
        return output->gradient_of->layout;
    return layouts->in[0];
}

static int scale_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    (void)error;
    const struct ls_layout *layout = layout_for(op, layouts);
    bool sums = op->kind == LS_OP_SCALE_SUMS;
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            layouts->in[i] = i == 0 || sums ? layout : &ls_layout_plain;
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = sums ? &ls_layout_plain : layout;
    return 0;
}

/* Not a factor or a bias that is a parameter, and their gradients; others are converted. */
static bool scale_takes_bf16(const struct ls_op *op)
{
    const bool sums = op->kind == LS_OP_SCALE_SUMS;
    bool takes = op->input[0]->type == LS_BF16 && (sums || op->output[0]->type == LS_BF16);
    for (int i = 1; i < op->inputs; i++)
        takes = takes && (op->input[i] == NULL || (op->input[i]->type == LS_BF16) == sums);
    for (int i = 0; sums && i < op->outputs; i++)
        takes = takes && (op->output[i] == NULL || op->output[i]->type == LS_F32);
    return takes;
}

static void describe(const struct ls_op *op, struct ls_scale *scale)
{
    const struct ls_value *x = op->input[0];
    const struct ls_shape *shape = &x->shape;
    int first = op->attr.scale.axis, end = first + op->attr.scale.axes;
    *scale = (struct ls_scale){
        .block = shape->rank >= 2 ? x->layout->block : 1,
        .outer = ls_shape_count(shape, 0, first),
        .dim = ls_shape_count(shape, first, end),
        .inner = ls_shape_count(shape, end, shape->rank),
        .samples = shape->rank >= 1 ? shape->dim[0] : 1,
        .channels = shape->rank >= 2 ? shape->dim[1] : 1,
        .points = shape->rank >= 2 ? ls_shape_count(shape, 2, shape->rank) : 1,
        .by_sample = first == 0 && end >= 1,
        .by_channel = end >= 2,
        .bf16 = x->type == LS_BF16,
    };
}

static int scale_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    struct ls_scale *scale = ls_alloc(1, sizeof *scale);
    if (scale == NULL)
        return ls_fail_memory(error, "a factor");
    describe(prepared->op, scale);
    prepared->state = scale;
    if (prepared->op->kind == LS_OP_SCALE_SUMS)
        prepared->scratch_bytes = (size_t)ls_vector_scale()->scratch(scale) * sizeof(double);
    return ls_own_prepare(prepared, error);
}

static int scale_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    ls_vector_scale()->forward(prepared->state, in[0], in[1], in[2], out[0]);
    return 0;
}

static int sums_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const void *x = in[1] != NULL ? in[1] : in[0]; /* then their products go nowhere */
    ls_vector_scale()->sums(prepared->state, in[0], x, scratch, out[0], out[1]);
    return 0;
}

const struct ls_kernel ls_kernel_scale = {
    .kind = LS_OP_SCALE,
    .bits = LS_BITS_NOT_PROBED,
    .name = "scale",
    .takes_bf16 = scale_takes_bf16,
    .layouts = scale_layouts,
    .prepare = scale_prepare,
    .release = ls_own_release,
    .run = scale_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_scale_sums = {
    .kind = LS_OP_SCALE_SUMS,
    .bits = LS_BITS_NOT_PROBED,
    .name = "scale backward sums",
    .takes_bf16 = scale_takes_bf16,
    .layouts = scale_layouts,
    .prepare = scale_prepare,
    .release = ls_own_release,
    .run = sums_run,
    .in_place = -1,
};
