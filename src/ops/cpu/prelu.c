/* PReLU in the layout that is there: a slope for each channel, or one for all.
 *
 *   y = x > 0 ? x : slope x;   dx = x > 0 ? dy : slope dy;   dslope = sum of dy x over x <= 0
 *
 * The sum is kept in double: by channel, then, where one slope serves all, over the channels in
 * order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/prelu.h"

#include "ops/cpu/kernels.h"

static struct ls_prelu describe(const struct ls_value *x)
{
    const struct ls_shape *shape = &x->shape;
    int64_t block = x->layout->block, channels = shape->dim[1];
    struct ls_prelu prelu = {.outer = shape->dim[0],
                             .channels = channels,
                             .points = ls_shape_count(shape, 2, shape->rank),
                             .lanes = 1,
                             .bf16 = x->type == LS_BF16};
    if (block > 1) {
        prelu.channels = (channels + block - 1) / block * block;
        prelu.lanes = block;
    } else if (prelu.points == 1) {
        prelu.lanes = channels;
    }
    return prelu;
}

static const struct ls_value *x_of(const struct ls_op *op)
{
    return op->input[op->kind == LS_OP_PRELU ? 0 : 1];
}

static bool prelu_accepts(const struct ls_op *op)
{
    return x_of(op)->shape.rank >= 2;
}

/* Not the slope and its gradient. */
static bool prelu_takes_bf16(const struct ls_op *op)
{
    const bool sums = op->kind == LS_OP_PRELU_SLOPE;
    bool all = sums || op->output[0]->type == LS_BF16;
    for (int i = 0; i < op->inputs - !sums; i++)
        all = all && op->input[i]->type == LS_BF16;
    return all;
}

/* The slope is plain; everything else as x lies. */
static int prelu_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                         struct ls_error *error)
{
    if (op->kind == LS_OP_PRELU_SLOPE) {
        (void)error;
        layouts->in[0] = layouts->in[1];
        layouts->out[0] = &ls_layout_plain;
        return 0;
    }
    ls_layouts_follow(op, layouts, error);
    layouts->in[op->inputs - 1] = &ls_layout_plain;
    return 0;
}

static int prelu_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_prelu prelu = describe(x_of(prepared->op));
    prepared->scratch_bytes = (size_t)prelu.channels * sizeof(double);
    return ls_own_prepare(prepared, error);
}

/* A slope for each channel, padding included. */
static const float *spread_slope(const struct ls_value *value, const float *slope,
                                 const struct ls_value *x, const struct ls_prelu *prelu,
                                 float *spread)
{
    bool shared = value->shape.rank == 0;
    if (!shared && prelu->channels == x->shape.dim[1])
        return slope;
    for (int64_t c = 0; c < prelu->channels; c++)
        spread[c] = shared ? slope[0] : (c < x->shape.dim[1] ? slope[c] : 0);
    return spread;
}

static int prelu_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_prelu prelu = describe(op->input[0]);
    ls_vector_prelu()->forward(
        &prelu, in[0], spread_slope(op->input[1], in[1], op->input[0], &prelu, scratch), out[0]);
    return 0;
}

static int data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_prelu prelu = describe(op->input[1]);
    ls_vector_prelu()->data(&prelu, in[0], in[1],
                            spread_slope(op->input[2], in[2], op->input[1], &prelu, scratch),
                            out[0]);
    return 0;
}

static int slope_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_prelu prelu = describe(op->input[1]);
    double *sum = scratch, total = 0;
    float *slope = out[0];
    int64_t channels = op->input[1]->shape.dim[1];
    ls_vector_prelu()->slope(&prelu, in[0], in[1], sum);
    if (op->output[0]->shape.rank > 0) {
        for (int64_t c = 0; c < channels; c++)
            slope[c] = (float)sum[c];
        return 0;
    }
    for (int64_t c = 0; c < channels; c++)
        total += sum[c];
    slope[0] = (float)total;
    return 0;
}

const struct ls_kernel ls_kernel_prelu = {
    .kind = LS_OP_PRELU,
    .bits = LS_BITS_OWN,
    .name = "prelu",
    .accepts = prelu_accepts,
    .takes_bf16 = prelu_takes_bf16,
    .layouts = prelu_layouts,
    .prepare = prelu_prepare,
    .run = prelu_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_prelu_data = {
    .kind = LS_OP_PRELU_DATA,
    .bits = LS_BITS_NOT_PROBED,
    .name = "prelu backward data",
    .accepts = prelu_accepts,
    .takes_bf16 = prelu_takes_bf16,
    .layouts = prelu_layouts,
    .prepare = prelu_prepare,
    .run = data_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_prelu_slope = {
    .kind = LS_OP_PRELU_SLOPE,
    .bits = LS_BITS_OWN,
    .name = "prelu backward slope",
    .accepts = prelu_accepts,
    .takes_bf16 = prelu_takes_bf16,
    .layouts = prelu_layouts,
    .prepare = prelu_prepare,
    .run = slope_run,
    .in_place = -1,
};
