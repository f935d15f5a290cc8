/* Functions of one number (see enum ls_activation), in any layout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/activation.h"

#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/math.h"

static bool backward_accepts(const struct ls_op *op)
{
    return op->attr.activation.function != LS_THRESHOLD;
}

/* Lanes of padding hold zeros: f(0) may be something else, and f'(0) not even finite. */
static int activation_run(const struct ls_prepared *prepared, void *local, void *const *in,
                          void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_activation_attr *attr = &op->attr.activation;
    const float *x = in[0];
    float *y = out[0];
    size_t n = ls_value_elements(op->input[0]);
    switch (attr->function) {
    case LS_RELU:
        ls_vector_elementwise()->relu(x, y, attr->slope, n);
        break;
    case LS_TANH:
        ls_vector_math()->tanh(x, y, n);
        break;
    case LS_SIGMOID:
        ls_vector_elementwise()->sigmoid(x, y, n);
        ls_clear_padding(op->output[0], y);
        break;
    default:
        ls_vector_activation()->forward(attr, x, y, n);
        ls_clear_padding(op->output[0], y);
    }
    return 0;
}

static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_activation_attr *attr = &op->attr.activation;
    const float *dy = in[0], *given = in[1];
    float *dx = out[0];
    size_t n = ls_value_elements(op->input[0]);
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
        ls_clear_padding(op->output[0], dx);
    }
    return 0;
}

const struct ls_kernel ls_kernel_activation = {
    .kind = LS_OP_ACTIVATION,
    .bits = LS_BITS_OWN,
    .name = "activation",
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
    .layouts = ls_layouts_follow,
    .prepare = ls_own_prepare,
    .run = backward_run,
    .in_place = 0,
};
