/* Pooling: the maximum or the average of a window that moves over each channel's plane.
 *
 *   MAX:  y[n,c,i,j] = max x[n,c,h,w] over the window's part inside the plane
 *   AVE:  y[n,c,i,j] = sum of the same part / size of the window's part inside the padded plane
 *
 * x [N, C, H, W], y [N, C, H', W'] with H' = ceil((H + 2p - k) / s) + 1 (floor with round_mode:
 * FLOOR); with padding, a last window that would begin in the padding behind the plane is left
 * out. So the windows may reach beyond the plane on the far sides, as in Caffe, whose pooling_param
 * this is. STOCHASTIC and the second top (where the maxima were) are refused.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static const char *const axis_names[2] = {"height", "width"};

struct pooling {
    struct ls_pooling_attr attr;
    struct ls_shape top;
    struct ls_value *index; /* MAX, for training: where each maximum was */
};

/* One of kernel, stride, pad: a number for both axes, or a pair. */
struct extent {
    const char *both, *h_name, *w_name;
    bool has_both, has_h, has_w;
    uint32_t value, h, w;
    bool required;
};

static const Lockstep__PoolingParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__PoolingParameter defaults = LOCKSTEP__POOLING_PARAMETER__INIT;
    const Lockstep__PoolingParameter *param = layer->definition->pooling_param;
    return param != NULL ? param : &defaults;
}

static int read_extent(const struct ls_layer *layer, struct ls_error *error,
                       const struct extent *extent, int64_t out[2])
{
    const void *message = layer->definition->pooling_param;
    const char *field = extent->has_h ? extent->h_name : extent->w_name;
    if (extent->has_both && (extent->has_h || extent->has_w))
        return ls_layer_fail(layer, error, message, field, "keep one of the two forms",
                             "%s and %s cannot both be given", extent->both, field);
    if (extent->has_h != extent->has_w)
        return ls_layer_fail(layer, error, message, field, NULL, "%s and %s must be given together",
                             extent->h_name, extent->w_name);
    if (extent->required && !extent->has_both && !extent->has_h)
        return ls_layer_fail(layer, error, message, NULL,
                             "or ask for global_pooling: true, whose window is the whole plane",
                             "%s is missing", extent->both);
    out[0] = extent->has_h ? extent->h : extent->value;
    out[1] = extent->has_h ? extent->w : extent->value;
    return 0;
}

static int read_window(const struct ls_layer *layer, struct ls_error *error,
                       struct ls_window *window)
{
    const Lockstep__PoolingParameter *p = param_of(layer);
    const struct extent kernel = {
        "kernel_size",   "kernel_h",     "kernel_w",  p->has_kernel_size, p->has_kernel_h,
        p->has_kernel_w, p->kernel_size, p->kernel_h, p->kernel_w,        !p->global_pooling};
    const struct extent stride = {
        "stride",        "stride_h", "stride_w",  p->has_stride, p->has_stride_h,
        p->has_stride_w, p->stride,  p->stride_h, p->stride_w,   false};
    const struct extent pad = {"pad",        "pad_h", "pad_w",  p->has_pad, p->has_pad_h,
                               p->has_pad_w, p->pad,  p->pad_h, p->pad_w,   false};
    *window = (struct ls_window){
        .axes = 2, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    int status = 0, failed;
    if ((failed = read_extent(layer, error, &kernel, window->kernel)) != 0)
        status = failed;
    if ((failed = read_extent(layer, error, &stride, window->stride)) != 0)
        status = failed;
    if ((failed = read_extent(layer, error, &pad, window->pad)) != 0)
        status = failed;
    return status;
}

static int check_global(const struct ls_layer *layer, struct ls_error *error,
                        struct ls_window *window)
{
    const Lockstep__PoolingParameter *p = param_of(layer);
    if (p->has_kernel_size || p->has_kernel_h || p->has_kernel_w)
        return ls_layer_fail(layer, error, p, p->has_kernel_size ? "kernel_size" : "kernel_h",
                             "remove the size, or global_pooling",
                             "with global_pooling the window is the whole plane; a kernel size "
                             "cannot be given");
    for (int i = 0; i < 2; i++) {
        if (window->pad[i] != 0 || window->stride[i] != 1)
            return ls_layer_fail(layer, error, p, "global_pooling", NULL,
                                 "with global_pooling, pad must be 0 and stride 1");
        window->kernel[i] = layer->bottom[0]->shape.dim[2 + i];
    }
    return 0;
}

/* The extent of the top along one axis, as Caffe has it. */
static int infer_axis(const struct ls_layer *layer, struct ls_error *error, int axis)
{
    struct pooling *state = layer->state;
    const struct ls_window *window = &state->attr.window;
    const Lockstep__PoolingParameter *p = param_of(layer);
    int64_t kernel = window->kernel[axis], stride = window->stride[axis], pad = window->pad[axis];
    int64_t input = layer->bottom[0]->shape.dim[2 + axis], padded = input + 2 * pad;
    int64_t room = padded - kernel;
    const char *field = p->has_kernel_size ? "kernel_size" : axis == 0 ? "kernel_h" : "kernel_w";
    bool floor = p->round_mode == LOCKSTEP__POOLING_PARAMETER__ROUND_MODE__FLOOR;
    /* Rounded up, a window that sticks out by less than a stride is still there. */
    if (room < 0 && (floor || room <= -stride))
        return ls_layer_fail(layer, error, p, field, "make the window smaller or pad more",
                             "%s %lld is larger than the padded input %lld (%s)", field,
                             (long long)kernel, (long long)padded, axis_names[axis]);
    int64_t last = room < 0 ? 0 : (room + (floor ? 0 : stride - 1)) / stride;
    bool any_pad = window->pad[0] != 0 || window->pad[1] != 0;
    if (any_pad && last * stride >= input + pad)
        last--;
    int64_t begin = last * stride - pad; /* of the last window */
    if (begin >= input)
        return ls_layer_fail(layer, error, p, "stride", "use round_mode: FLOOR",
                             "the last window would begin at %lld, behind the input of %lld (%s)",
                             (long long)begin, (long long)input, axis_names[axis]);
    state->top.dim[2 + axis] = last + 1;
    return 0;
}

static int check_extents(const struct ls_layer *layer, struct ls_error *error,
                         const struct ls_window *window)
{
    const Lockstep__PoolingParameter *p = param_of(layer);
    for (int i = 0; i < 2; i++) {
        const char *kernel = p->has_kernel_size ? "kernel_size" : i == 0 ? "kernel_h" : "kernel_w";
        const char *stride = p->has_stride ? "stride" : i == 0 ? "stride_h" : "stride_w";
        const char *pad = p->has_pad ? "pad" : i == 0 ? "pad_h" : "pad_w";
        if (window->kernel[i] < 1 || window->kernel[i] > INT32_MAX)
            return ls_layer_fail(layer, error, p, kernel, NULL, "%s must be 1 to 2147483647",
                                 kernel);
        if (window->stride[i] < 1 || window->stride[i] > INT32_MAX)
            return ls_layer_fail(layer, error, p, stride, NULL, "%s must be 1 to 2147483647",
                                 stride);
        if (window->pad[i] >= window->kernel[i])
            return ls_layer_fail(
                layer, error, p, pad, NULL, "%s %lld must be smaller than the window's %lld (%s)",
                pad, (long long)window->pad[i], (long long)window->kernel[i], axis_names[i]);
    }
    return 0;
}

static int check_method(const struct ls_layer *layer, struct ls_error *error)
{
    struct pooling *state = layer->state;
    const Lockstep__PoolingParameter *p = param_of(layer);
    int status = 0;
    state->attr.method =
        p->pool == LOCKSTEP__POOLING_PARAMETER__POOL_METHOD__AVE ? LS_POOL_AVERAGE : LS_POOL_MAX;
    if (p->pool == LOCKSTEP__POOLING_PARAMETER__POOL_METHOD__STOCHASTIC)
        status = ls_layer_fail(layer, error, p, "pool", "use MAX or AVE",
                               "pool: STOCHASTIC is not supported");
    if (layer->tops > 1)
        status = ls_layer_fail(layer, error, NULL, "top", "remove it",
                               "a second top of a Pooling layer (where the maxima were) is not "
                               "supported");
    return status;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct pooling *state = layer->state;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    struct ls_window *window = &state->attr.window;
    char text[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (x->rank != 4)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' must have 4 axes (samples, channels, height, "
                             "width), but is %s",
                             layer->bottom[0]->name, ls_shape_text(x, text, sizeof text));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    int method = check_method(layer, error);
    LS_TRY(read_window(layer, error, window));
    if (param_of(layer)->global_pooling)
        LS_TRY(check_global(layer, error, window));
    LS_TRY(check_extents(layer, error, window));
    state->top = *x;
    /* One field for both axes is one problem. */
    int height = infer_axis(layer, error, 0), width = 0;
    if (height == 0 || !param_of(layer)->has_kernel_size)
        width = infer_axis(layer, error, 1);
    LS_TRY(method);
    LS_TRY(height);
    LS_TRY(width);
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct pooling *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    if (state->attr.method == LS_POOL_MAX && graph->training && layer->bottom[0]->needs_grad) {
        state->index = ls_layer_make_side(layer, "index", y);
        if (state->index != NULL)
            state->index->type = LS_I32;
    }
    struct ls_op *op = ls_graph_op(graph, LS_OP_POOLING);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_out(graph, op, y);
    ls_op_out(graph, op, state->index);
    if (op != NULL)
        op->attr.pooling = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct pooling *state = layer->state;
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]), state->index};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_POOLING_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.pooling = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct pooling *state = layer->state;
    double window = (double)(state->attr.window.kernel[0] * state->attr.window.kernel[1]);
    double outputs = (double)ls_shape_size(&state->top);
    double x = ls_layer_bytes(layer->bottom[0]), y = ls_layer_bytes(layer->top[0]);
    double index = ls_layer_bytes(state->index);
    bool maximum = state->attr.method == LS_POOL_MAX;
    cost->forward_flops = outputs * window;
    cost->forward_bytes = x + y + index;
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = maximum ? outputs : outputs * window;
    cost->backward_bytes = x + y + index;
}

const struct ls_layer_type ls_layer_pooling = {
    .type = "Pooling",
    .parameter = "pooling_param",
    .state_size = sizeof(struct pooling),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 2,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
