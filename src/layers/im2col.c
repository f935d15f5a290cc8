/* Im2col: the windows of a convolution as columns.
 *
 *   y[n, (c, k...), i...] = x[n, c, i s - p + k d ...], 0 in the padding
 *
 * x [N, C, H...] with 1 to 3 spatial axes, y [N, C K..., floor((H + 2p - (d (K - 1) + 1)) / s) + 1
 * ...]. Caffe's layer of this name; it reads kernel_size, stride, pad and dilation of
 * convolution_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/extent.h"
#include "layers/window.h"

struct im2col {
    struct ls_window window;
    struct ls_shape top;
};

static int check_bottom(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_shape *x = &layer->bottom[0]->shape;
    char text[160];
    if (x->rank < 3 || x->rank > 5)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' must have 3 to 5 axes (samples, channels, 1 to 3 "
                             "spatial ones), but is %s",
                             layer->bottom[0]->name, ls_shape_text(x, text, sizeof text));
    if (ls_window_param(layer)->axis != 1)
        return ls_layer_fail(layer, error, layer->definition->convolution_param, "axis", NULL,
                             "the channels of an Im2col layer are axis 1");
    return ls_layer_check_samples(layer, error, 0);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct im2col *state = layer->state;
    struct ls_window *window = &state->window;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_bottom(layer, error));
    window->axes = x->rank - 2;
    LS_TRY(ls_window_read(layer, error, window));
    state->top = *x;
    for (int i = 0; i < window->axes; i++) {
        const int64_t padded = x->dim[2 + i] + 2 * window->pad[i];
        const int64_t extent = window->dilation[i] * (window->kernel[i] - 1) + 1;
        if (extent > padded)
            return ls_layer_fail(
                layer, error, layer->definition->convolution_param,
                ls_window_kernel_field(layer, i), "make the kernel smaller or pad more",
                "the kernel covers %lld positions, more than the padded input's "
                "%lld (%s)",
                (long long)extent, (long long)padded, ls_extent_axis_name(window->axes, i));
        state->top.dim[2 + i] = (padded - extent) / window->stride[i] + 1;
        if (__builtin_mul_overflow(state->top.dim[1], window->kernel[i], &state->top.dim[1]))
            state->top.dim[1] = INT64_MAX; /* refused below */
    }
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct im2col *state = layer->state;
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_IM2COL, &state->top);
    if (op != NULL)
        op->attr.window = state->window;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct im2col *state = layer->state;
    struct ls_op *op = ls_layer_emit_back(layer, LS_OP_COL2IM);
    if (op != NULL)
        op->attr.window = state->window;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const double bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
    cost->forward_bytes = bytes;
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = (double)ls_shape_size(&layer->top[0]->shape);
    cost->backward_bytes = bytes;
}

const struct ls_layer_type ls_layer_im2col = {
    .type = "Im2col",
    .parameter = "convolution_param",
    .state_size = sizeof(struct im2col),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
