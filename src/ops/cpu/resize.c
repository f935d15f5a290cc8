/* Bilinear resizing with corners aligned. Takes and leaves the layout that is there. (oneDNN's
 * resampling aligns the centres of half pixels.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/resize.h"

struct resize_state {
    struct ls_resize resize;
    int32_t *index; /* the tables of both axes */
    float *factor;
};

/* x or dx, and y or dy. */
static const struct ls_value *inner_value(const struct ls_op *op)
{
    return op->kind == LS_OP_RESIZE ? op->input[0] : op->output[0];
}

static const struct ls_value *outer_value(const struct ls_op *op)
{
    return op->kind == LS_OP_RESIZE ? op->output[0] : op->input[0];
}

static bool resize_accepts(const struct ls_op *op)
{
    const struct ls_shape *x = &inner_value(op)->shape, *y = &outer_value(op)->shape;
    if (x->rank != 4)
        return false;
    for (int axis = 2; axis < 4; axis++)
        if (x->dim[axis] > INT32_MAX || y->dim[axis] > INT32_MAX)
            return false;
    return true;
}

/* Positions are exact: i (left - 1) / (out - 1) as quotient and remainder. Where the remainder is
 * 0 there is no second neighbour, so that none is read behind the last. */
static void fill_axis(struct ls_resize_axis *axis, const struct ls_resize_attr *attr,
                      int32_t *index, float *factor)
{
    int64_t left = axis->in - attr->begin - attr->end;
    int64_t steps = axis->out > 1 ? axis->out - 1 : 1;
    int32_t *low = index, *high = index + axis->out;
    float *near = factor, *far = factor + axis->out;
    for (int64_t i = 0; i < axis->out; i++) {
        int64_t quotient = i * (left - 1) / steps, rest = i * (left - 1) % steps;
        low[i] = (int32_t)(attr->begin + quotient);
        high[i] = low[i] + (rest > 0 ? 1 : 0);
        far[i] = (float)((double)rest / (double)steps);
        near[i] = (float)((double)(steps - rest) / (double)steps);
    }
    axis->low = low;
    axis->high = high;
    axis->near = near;
    axis->far = far;
}

static void resize_release(struct ls_prepared *prepared)
{
    struct resize_state *state = prepared->state;
    if (state != NULL) {
        ls_free(state->index);
        ls_free(state->factor);
    }
    ls_free(state);
    prepared->state = NULL;
}

static int resize_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    const struct ls_shape *x = &inner_value(op)->shape, *y = &outer_value(op)->shape;
    int64_t block = inner_value(op)->layout->block;
    struct resize_state *state = ls_alloc(1, sizeof *state);
    size_t entries = 2 * (size_t)(y->dim[2] + y->dim[3]);
    prepared->state = state;
    if (state != NULL) {
        state->index = ls_alloc(entries, sizeof *state->index);
        state->factor = ls_alloc(entries, sizeof *state->factor);
    }
    if (state == NULL || state->index == NULL || state->factor == NULL) {
        resize_release(prepared);
        return ls_fail_memory(error, "tables of a resizing");
    }
    struct ls_resize *resize = &state->resize;
    resize->block = block;
    resize->bf16 = inner_value(op)->type == LS_BF16;
    resize->planes = x->dim[0] * ((x->dim[1] + block - 1) / block);
    resize->row = (struct ls_resize_axis){.in = x->dim[2], .out = y->dim[2]};
    resize->column = (struct ls_resize_axis){.in = x->dim[3], .out = y->dim[3]};
    fill_axis(&resize->row, &op->attr.resize, state->index, state->factor);
    fill_axis(&resize->column, &op->attr.resize, state->index + 2 * y->dim[2],
              state->factor + 2 * y->dim[2]);
    prepared->scratch_bytes =
        (size_t)ls_vector_resize()->scratch(resize, op->kind == LS_OP_RESIZE_BACKWARD) *
        sizeof(float);
    return ls_own_prepare(prepared, error);
}

static int resize_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct resize_state *state = prepared->state;
    ls_vector_resize()->forward(&state->resize, in[0], out[0], scratch);
    return 0;
}

static int resize_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                               void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct resize_state *state = prepared->state;
    ls_vector_resize()->backward(&state->resize, in[0], out[0], scratch);
    return 0;
}

const struct ls_kernel ls_kernel_resize = {
    .kind = LS_OP_RESIZE,
    .bits = LS_BITS_NOT_PROBED,
    .name = "resize",
    .accepts = resize_accepts,
    .takes_bf16 = ls_all_bf16,
    .layouts = ls_layouts_follow,
    .prepare = resize_prepare,
    .release = resize_release,
    .run = resize_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_resize_backward = {
    .kind = LS_OP_RESIZE_BACKWARD,
    .bits = LS_BITS_NOT_PROBED,
    .name = "resize backward",
    .accepts = resize_accepts,
    .takes_bf16 = ls_all_bf16,
    .layouts = ls_layouts_follow,
    .prepare = resize_prepare,
    .release = resize_release,
    .run = resize_backward_run,
    .in_place = -1,
};
