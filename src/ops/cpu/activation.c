/* Functions of one number (see enum ls_activation), in any layout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/activation.h"

#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/activation.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/math.h"

static bool backward_accepts(const struct ls_op *op)
{
    return op->attr.activation.function != LS_THRESHOLD;
}

void ls_activation_run(const struct ls_activation_attr *attr, const float *x, float *y, size_t n)
{
    switch (attr->function) {
    case LS_RELU:
        ls_vector_elementwise()->relu(x, y, attr->slope, n);
        break;
    case LS_TANH:
        ls_vector_math()->tanh(x, y, n);
        break;
    case LS_SIGMOID:
        ls_vector_elementwise()->sigmoid(x, y, n);
        break;
    default:
        ls_vector_activation()->forward(attr, x, y, n);
    }
}

void ls_activation_run_backward(const struct ls_activation_attr *attr, const float *dy,
                                const float *given, float *dx, size_t n)
{
    switch (attr->function) {
    case LS_RELU:
        ls_vector_elementwise()->relu_backward(dy, given, dx, attr->slope, n);
        break;
    case LS_SIGMOID:
        ls_vector_elementwise()->sigmoid_backward(dy, given, dx, n);
        break;
    case LS_TANH:
        ls_vector_elementwise()->tanh_backward(dy, given, dx, n);
        break;
    default:
        ls_vector_activation()->backward(attr, dy, given, dx, n);
    }
}

/* Lanes of padding hold zeros: f(0) may be something else, and f'(0) not even finite. */
static void clear_padding(const struct ls_op *op, void *result)
{
    const enum ls_activation function = op->attr.activation.function;
    if (op->output[0]->type == LS_F32 && function != LS_RELU && function != LS_TANH)
        ls_clear_padding(op->output[0], result);
}

static int activation_run(const struct ls_prepared *prepared, void *local, void *const *in,
                          void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_value *x = op->input[0], *y = op->output[0];
    const size_t n = ls_value_elements(x);
    float tile[LS_TILE];
    for (size_t from = 0, count; from < n; from += count) {
        count = ls_tile_count(x, n - from);
        float *to = ls_tile_begin(y, out[0], from, tile);
        ls_activation_run(&op->attr.activation, ls_tile_read(x, in[0], from, count, tile), to,
                          count);
        ls_tile_end(y, out[0], from, count, to);
    }
    clear_padding(op, out[0]);
    return 0;
}

static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_value *dy = op->input[0], *dx = op->output[0];
    const size_t n = ls_value_elements(dy);
    float tile[LS_TILE], given[LS_TILE];
    for (size_t from = 0, count; from < n; from += count) {
        count = ls_tile_count(dy, n - from);
        float *to = ls_tile_begin(dx, out[0], from, tile);
        ls_activation_run_backward(&op->attr.activation, ls_tile_read(dy, in[0], from, count, tile),
                                   ls_tile_read(op->input[1], in[1], from, count, given), to,
                                   count);
        ls_tile_end(dx, out[0], from, count, to);
    }
    clear_padding(op, out[0]);
    return 0;
}

const struct ls_kernel ls_kernel_activation = {
    .kind = LS_OP_ACTIVATION,
    .bits = LS_BITS_OWN,
    .name = "activation",
    .takes_bf16 = ls_all_bf16,
    .layouts = ls_layouts_follow,
    .prepare = ls_own_prepare,
    .run = activation_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_activation_backward = {
    .kind = LS_OP_ACTIVATION_BACKWARD,
    .bits = LS_BITS_OWN,
    .name = "activation backward",
    .accepts = backward_accepts,
    .takes_bf16 = ls_all_bf16,
    .layouts = ls_layouts_follow,
    .prepare = ls_own_prepare,
    .run = backward_run,
    .in_place = 0,
};
