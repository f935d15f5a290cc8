/* ReLU, sigmoid and hyperbolic tangent, in any layout. The backward pass needs the output alone:
 * sigmoid' = y (1 - y), tanh' = 1 - y^2, and a ReLU's output has the sign of its input (unless its
 * slope is negative; then the op is given the input).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/math.h"

static void activation_run(const struct ls_prepared *prepared, void *local, void *const *in,
                           void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const float *x = in[0];
    float *y = out[0];
    size_t n = ls_value_elements(op->input[0]);
    switch (op->attr.activation.function) {
    case LS_RELU:
        ls_vector_elementwise()->relu(x, y, op->attr.activation.slope, n);
        break;
    case LS_SIGMOID:
        ls_vector_elementwise()->sigmoid(x, y, n);
        ls_clear_padding(op->output[0], y); /* sigmoid(0) is not 0 */
        break;
    case LS_TANH:
        ls_vector_math()->tanh(x, y, n);
        break;
    }
}

static void backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                         void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const float *dy = in[0], *y = in[1];
    float *dx = out[0];
    size_t n = ls_value_elements(op->input[0]);
    switch (op->attr.activation.function) {
    case LS_RELU:
        ls_vector_elementwise()->relu_backward(dy, y, dx, op->attr.activation.slope, n);
        break;
    case LS_SIGMOID:
        ls_vector_elementwise()->sigmoid_backward(dy, y, dx, n);
        break;
    case LS_TANH:
        ls_vector_elementwise()->tanh_backward(dy, y, dx, n);
        break;
    }
}

const struct ls_kernel ls_kernel_activation = {
    .kind = LS_OP_ACTIVATION,
    .name = "activation",
    .layouts = ls_layouts_follow,
    .prepare = ls_own_prepare,
    .run = activation_run,
    .in_place = 0,
};

const struct ls_kernel ls_kernel_activation_backward = {
    .kind = LS_OP_ACTIVATION_BACKWARD,
    .name = "activation backward",
    .layouts = ls_layouts_follow,
    .prepare = ls_own_prepare,
    .run = backward_run,
    .in_place = 0,
};
