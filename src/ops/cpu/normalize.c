/* Normalisation of each sample by itself: MVN, GroupNorm, LayerNorm, InstanceNorm, RMSNorm.
 *
 * In plain layouts: a group's values are contiguous there, whatever its share of the channels is;
 * behind a convolution that costs a reorder.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/normalize.h"

#include "ops/cpu/kernels.h"

static const struct ls_value *x_of(const struct ls_op *op)
{
    return op->input[op->kind == LS_OP_NORMALIZE ? 0 : 1];
}

static bool normalize_accepts(const struct ls_op *op)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    const struct ls_shape *x = &x_of(op)->shape;
    return attr->axis >= 0 && attr->axis < x->rank && attr->groups > 0 &&
           x->dim[attr->axis] % attr->groups == 0;
}

/* Not scale, bias, their gradients and what is kept for the backward pass. */
static bool normalize_takes_bf16(const struct ls_op *op)
{
    const bool forward = op->kind == LS_OP_NORMALIZE, sums = op->kind == LS_OP_NORMALIZE_SUMS;
    return op->input[0]->type == LS_BF16 && (forward || op->input[1]->type == LS_BF16) &&
           (sums || op->output[0]->type == LS_BF16);
}

static struct ls_vector_normalize_job describe(const struct ls_op *op)
{
    const struct ls_normalize_attr *attr = &op->attr.normalize;
    const struct ls_shape *x = &x_of(op)->shape;
    return (struct ls_vector_normalize_job){
        .outer = ls_shape_count(x, 0, attr->axis),
        .groups = attr->groups,
        .channels = x->dim[attr->axis] / attr->groups,
        .points = ls_shape_count(x, attr->axis + 1, x->rank),
        .variance = attr->variance,
        .behind = attr->behind,
        .elements = attr->elements,
        .around_zero = attr->around_zero,
        .eps = attr->eps,
        .bf16 = x_of(op)->type == LS_BF16,
    };
}

/* How many numbers scale and bias have each. */
static int64_t factors_of(const struct ls_vector_normalize_job *normalize)
{
    int64_t channels = normalize->groups * normalize->channels;
    return normalize->elements ? channels * normalize->points : channels;
}

static int normalize_run(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_vector_normalize_job normalize = describe(op);
    ls_vector_normalize()->forward(&normalize, in[0], op->inputs > 1 ? in[1] : NULL,
                                   op->inputs > 2 ? in[2] : NULL, out[0],
                                   op->outputs > 1 ? out[1] : NULL);
    return 0;
}

static int data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_vector_normalize_job normalize = describe(op);
    ls_vector_normalize()->data(&normalize, in[0], in[1], in[2], op->inputs > 3 ? in[3] : NULL,
                                out[0]);
    return 0;
}

static int sums_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_vector_normalize_job normalize = describe(prepared->op);
    prepared->scratch_bytes = 2 * (size_t)factors_of(&normalize) * sizeof(double);
    return ls_own_prepare(prepared, error);
}

static void round_sums(const double *sum, float *to, int64_t count)
{
    for (int64_t i = 0; to != NULL && i < count; i++)
        to[i] = (float)sum[i];
}

static int sums_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_vector_normalize_job normalize = describe(prepared->op);
    int64_t count = factors_of(&normalize);
    double *scale = scratch, *bias = scale + count;
    ls_vector_normalize()->sums(&normalize, in[0], in[1], in[2], scale, bias);
    round_sums(scale, out[0], count);
    round_sums(bias, prepared->op->outputs > 1 ? out[1] : NULL, count);
    return 0;
}

const struct ls_kernel ls_kernel_normalize = {
    .kind = LS_OP_NORMALIZE,
    .bits = LS_BITS_OWN,
    .name = "normalize",
    .accepts = normalize_accepts,
    .takes_bf16 = normalize_takes_bf16,
    .prepare = ls_own_prepare,
    .run = normalize_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_normalize_data = {
    .kind = LS_OP_NORMALIZE_DATA,
    .bits = LS_BITS_OWN,
    .name = "normalize backward data",
    .accepts = normalize_accepts,
    .takes_bf16 = normalize_takes_bf16,
    .prepare = ls_own_prepare,
    .run = data_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_normalize_sums = {
    .kind = LS_OP_NORMALIZE_SUMS,
    .bits = LS_BITS_OWN,
    .name = "normalize backward sums",
    .accepts = normalize_accepts,
    .takes_bf16 = normalize_takes_bf16,
    .prepare = sums_prepare,
    .run = sums_run,
    .in_place = -1,
};
