/* Local response normalisation, across channels and within them. Takes and leaves the layout that
 * is there.
 *
 *   across: s = k + alpha / n sum of x^2 over n channels around
 *   within: s = 1 + alpha / n^2 sum of x^2 over n x n positions around in the plane
 *   y = x s^-beta;   dx = dy s^-beta - 2 alpha beta / n (n^2) x sum of dy y / s over the same
 * places
 *
 * Where s is 0 (k = 0 and only zeros around) the result is NaN, as 0 times infinity is.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/lrn.h"

static bool lrn_accepts(const struct ls_op *op)
{
    const struct ls_lrn_attr *attr = &op->attr.lrn;
    const struct ls_shape *x = &op->input[0]->shape;
    if (attr->size < 1 || attr->size % 2 == 0)
        return false;
    if (attr->within)
        return x->rank == 4;
    bool scaled = op->kind == LS_OP_LRN || (op->inputs > 3 && op->input[3] != NULL);
    return x->rank >= 2 && scaled;
}

/* Not what is kept for the backward pass. */
static bool lrn_takes_bf16(const struct ls_op *op)
{
    bool all = op->output[0]->type == LS_BF16;
    for (int i = 0; i < op->inputs && i < 3; i++)
        all = all && op->input[i]->type == LS_BF16;
    return all;
}

static void describe(const struct ls_op *op, struct ls_lrn *lrn)
{
    const struct ls_lrn_attr *attr = &op->attr.lrn;
    const struct ls_value *x = op->input[0];
    const struct ls_shape *shape = &x->shape;
    double places = (double)attr->size * (attr->within ? (double)attr->size : 1.0);
    double factor = (double)attr->alpha / places;
    *lrn = (struct ls_lrn){
        .samples = shape->dim[0],
        .channels = shape->dim[1],
        .height = shape->rank == 4 ? shape->dim[2] : 1,
        .width = ls_shape_count(shape, shape->rank == 4 ? 3 : 2, shape->rank),
        .block = x->layout->block,
        .size = attr->size,
        .factor = (float)factor,
        .beta = attr->beta,
        .k = attr->within ? 1 : attr->k,
        .slope = (float)(2 * factor * (double)attr->beta),
        .bf16 = x->type == LS_BF16,
    };
}

static int lrn_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    struct ls_lrn *lrn = ls_alloc(1, sizeof *lrn);
    if (lrn == NULL)
        return ls_fail_memory(error, "a normalisation");
    describe(prepared->op, lrn);
    prepared->state = lrn;
    int64_t floats = prepared->op->attr.lrn.within ? ls_vector_lrn_within()->scratch(lrn)
                                                   : ls_vector_lrn_across()->scratch(lrn);
    prepared->scratch_bytes = (size_t)floats * sizeof(float);
    return ls_own_prepare(prepared, error);
}

static int lrn_run(const struct ls_prepared *prepared, void *local, void *const *in,
                   void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    if (op->attr.lrn.within)
        ls_vector_lrn_within()->forward(prepared->state, in[0], out[0], scratch);
    else
        ls_vector_lrn_across()->forward(prepared->state, in[0], out[0],
                                        op->outputs > 1 ? out[1] : NULL, scratch);
    return 0;
}

static int lrn_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                            void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    if (prepared->op->attr.lrn.within)
        ls_vector_lrn_within()->backward(prepared->state, in[0], in[1], in[2], out[0], scratch);
    else
        ls_vector_lrn_across()->backward(prepared->state, in[0], in[1], in[2], in[3], out[0],
                                         scratch);
    return 0;
}

const struct ls_kernel ls_kernel_lrn = {
    .kind = LS_OP_LRN,
    .bits = LS_BITS_OWN,
    .name = "lrn",
    .accepts = lrn_accepts,
    .takes_bf16 = lrn_takes_bf16,
    .layouts = ls_layouts_follow,
    .prepare = lrn_prepare,
    .release = ls_own_release,
    .run = lrn_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_lrn_backward = {
    .kind = LS_OP_LRN_BACKWARD,
    .bits = LS_BITS_OWN,
    .name = "lrn backward",
    .accepts = lrn_accepts,
    .takes_bf16 = lrn_takes_bf16,
    .layouts = ls_layouts_follow,
    .prepare = lrn_prepare,
    .release = ls_own_release,
    .run = lrn_backward_run,
    .in_place = -1,
};
