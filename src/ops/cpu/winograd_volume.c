/* Convolutions of volumes by Winograd's algorithm; see ops/cpu/vector/volume.h for the formulas.
 *
 * The rule looks at the definition and the instruction set: windows of 3 x 3 x 3 with stride 1, a
 * block of channels (16 for AVX-512, which AVX2 is to agree with) or more on both sides, and an
 * extent that tiles of 2 do not waste much of. All passes of a convolution follow it alike. The
 * weights lie as for oneDNN's direct kernels, with the channels of y in the innermost block, for
 * the gradient by x those of x; they are transformed in each pass, which takes little of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/primitive.h"
#include "ops/cpu/vector/volume.h"

enum { CHANNELS_MIN = 16, EXTENT_MIN = 4 };

struct state {
    struct ls_volume volume; /* of the convolution that the pass is */
    struct ls_volume_weights weights;
    int64_t outputs;            /* channels behind which the bias is zero */
    size_t bias_at, scratch_at; /* floats in scratch memory */
};

static bool accepts(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    if (attr->algorithm == LS_CONVOLUTION_DIRECT || ls_cpu_isa() < LS_ISA_AVX2 ||
        attr->window.axes != 3 || x->rank != 5 || !ls_convolution_suits_winograd(attr))
        return false;
    for (int i = 2; i < 5; i++)
        if (y->dim[i] < EXTENT_MIN)
            return false;
    return x->dim[1] >= CHANNELS_MIN && y->dim[1] >= CHANNELS_MIN;
}

static int layouts(const struct ls_op *op, struct ls_op_layouts *result, struct ls_error *error)
{
    const int block = (int)ls_vector_volume()->block;
    const struct ls_layout *wide = block == 16 ? &ls_layout_blocked16 : &ls_layout_blocked8;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    const struct ls_onednn_tensor tensor = {.rank = 5, .dim = {y->dim[1], x->dim[1], 3, 3, 3}};
    const struct ls_layout *weights;
    LS_TRY(
        ls_layout_of_filters(&tensor, block, op->kind != LS_OP_CONVOLUTION_DATA, &weights, error));
    const struct ls_layout *const by_slot[LS_SLOTS] = {wide, weights, &ls_layout_plain, wide};
    for (int i = 0; i < LS_SLOTS; i++) {
        const struct ls_layout **layout = ls_primitive_layout(op, result, (enum ls_tensor_slot)i);
        if (layout != NULL)
            *layout = by_slot[i];
    }
    return 0;
}

/* The convolution of `x` to `y`; for the gradient by x that of dy to dx. */
static void set_volume(const struct ls_op *op, struct state *state)
{
    const bool data = op->kind == LS_OP_CONVOLUTION_DATA;
    const struct ls_shape *from = &ls_primitive_value(op, data ? LS_TARGET : LS_SOURCE)->shape;
    const struct ls_shape *to = &ls_primitive_value(op, data ? LS_SOURCE : LS_TARGET)->shape;
    const int64_t block = ls_vector_volume()->block;
    struct ls_volume *volume = &state->volume;
    volume->samples = from->dim[0];
    volume->in_blocks = (from->dim[1] + block - 1) / block;
    volume->out_blocks = (to->dim[1] + block - 1) / block;
    for (int i = 0; i < 3; i++) {
        const int64_t pad = op->attr.convolution.window.pad[i];
        volume->in[i] = from->dim[i + 2];
        volume->out[i] = to->dim[i + 2];
        volume->pad[i] = data ? 2 - pad : pad;
    }
    state->outputs = to->dim[1];
    state->weights = (struct ls_volume_weights){.out_blocks = volume->out_blocks,
                                                .in_blocks = volume->in_blocks,
                                                .out_step = data ? 1 : volume->in_blocks,
                                                .in_step = data ? volume->out_blocks : 1,
                                                .turned = data};
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_vector_volume *loops = ls_vector_volume();
    struct state *state = ls_alloc(1, sizeof *state);
    if (state == NULL)
        return ls_fail_memory(error, "a convolution");
    prepared->state = state;
    set_volume(prepared->op, state);
    const struct ls_volume *volume = &state->volume;
    bool weights = prepared->op->kind == LS_OP_CONVOLUTION_WEIGHTS;
    if (!weights)
        state->bias_at = loops->transformed_size(volume->out_blocks, volume->in_blocks);
    state->scratch_at = state->bias_at + (size_t)(volume->out_blocks * loops->block);
    prepared->scratch_bytes = (state->scratch_at + (weights ? loops->differentiate_scratch(volume)
                                                            : loops->convolve_scratch(volume))) *
                              sizeof(float);
    snprintf(prepared->implementation, sizeof prepared->implementation, "lockstep:winograd:%s",
             ls_cpu_isa_name(ls_cpu_isa()));
    return 0;
}

/* The forward pass, and the gradient by x, which has no bias. */
static int run(const struct ls_prepared *prepared, void *local, void *const *in, void *const *out,
               void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_vector_volume *loops = ls_vector_volume();
    const struct state *state = prepared->state;
    const struct ls_op *op = prepared->op;
    float *u = scratch, *bias = u + state->bias_at;
    bool forward = op->kind == LS_OP_CONVOLUTION;
    bool biased = forward && op->inputs > 2 && op->input[2] != NULL;
    struct ls_volume_end end = {.bias = biased ? bias : NULL,
                                .relu = forward && op->attr.convolution.relu,
                                .slope = op->attr.convolution.relu_slope};
    if (biased) {
        memset(bias, 0, (state->scratch_at - state->bias_at) * sizeof *bias);
        memcpy(bias, in[2], (size_t)state->outputs * sizeof *bias);
    }
    loops->transform(&state->weights, in[1], u);
    loops->convolve(&state->volume, in[0], u, &end, u + state->scratch_at, out[0]);
    return 0;
}

static int run_weights(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct state *state = prepared->state;
    const struct ls_op *op = prepared->op;
    float *db = scratch;
    bool biased = op->outputs > 1 && op->output[1] != NULL;
    ls_vector_volume()->differentiate(&state->volume, in[0], in[1], db + state->scratch_at, out[0],
                                      biased ? db : NULL);
    if (biased)
        memcpy(out[1], db, (size_t)state->outputs * sizeof *db);
    return 0;
}

const struct ls_kernel ls_kernel_volume = {
    .kind = LS_OP_CONVOLUTION,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution of volumes",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_own_release,
    .run = run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_volume_data = {
    .kind = LS_OP_CONVOLUTION_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution of volumes backward data",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_own_release,
    .run = run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_volume_weights = {
    .kind = LS_OP_CONVOLUTION_WEIGHTS,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution of volumes backward weights",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_own_release,
    .run = run_weights,
    .in_place = -1,
};
