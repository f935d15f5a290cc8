/* Pooling: the maximum or the average of a window that moves over the spatial axes, in each
 * channel.
 *
 *   MAX:  y[n,c,i...] = max x[n,c,h...] over the window's part inside the input
 *   AVE:  y[n,c,i...] = sum of the same part / size of the window's part inside the padded input
 *   STOCHASTIC, in training: one x of the window, each with probability x / sum of x, what is below
 *         0 taken for 0; in tests sum of x^2 / sum of x, which is its mean
 *
 * x [N, C, H...] with 1 to 3 spatial axes, y [N, C, ceil((H + 2p - k) / s) + 1 ...] (floor with
 * round_mode: FLOOR); where there is padding along any axis, a last window that would begin in the
 * padding behind the input is left out, axis by axis. So the windows may reach beyond the input on
 * the far sides. All this is Caffe's pooling_param, which knows two spatial axes; for one and three
 * kernel_size, stride and pad are given once, or once for each axis, as for a Convolution.
 * The second top, of MAX alone, says where the maxima were: the place in the plane, row by row, as
 * a whole number, -1 where a window has no maximum. Upsample layers read it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"
#include "layers/extent.h"

struct pooling {
    struct ls_pooling_attr attr;
    struct ls_shape top;
    struct ls_value *index; /* has_winners, for training: where each number came from */
};

/* Whether each number of the top is one of the bottom. */
static bool has_winners(const struct pooling *state)
{
    return state->attr.method == LS_POOL_MAX || state->attr.method == LS_POOL_STOCHASTIC;
}

/* The fields of the message. */
struct extents {
    struct ls_extent kernel, stride, pad;
};

static const Lockstep__PoolingParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__PoolingParameter defaults = LOCKSTEP__POOLING_PARAMETER__INIT;
    const Lockstep__PoolingParameter *param = layer->definition->pooling_param;
    return param != NULL ? param : &defaults;
}

static struct extents extents_of(const struct ls_layer *layer)
{
    const Lockstep__PoolingParameter *p = param_of(layer);
    return (struct extents){
        .kernel = {.list = "kernel_size",
                   .h_name = "kernel_h",
                   .w_name = "kernel_w",
                   .count = p->n_kernel_size,
                   .values = p->kernel_size,
                   .has_h = p->has_kernel_h,
                   .has_w = p->has_kernel_w,
                   .h = p->kernel_h,
                   .w = p->kernel_w,
                   .missing = p->global_pooling ? 1 : -1,
                   .least = 1,
                   .together = true,
                   .hint = "or ask for global_pooling: true, whose window is the whole plane"},
        .stride = {.list = "stride",
                   .h_name = "stride_h",
                   .w_name = "stride_w",
                   .count = p->n_stride,
                   .values = p->stride,
                   .has_h = p->has_stride_h,
                   .has_w = p->has_stride_w,
                   .h = p->stride_h,
                   .w = p->stride_w,
                   .missing = 1,
                   .least = 1,
                   .together = true},
        .pad = {.list = "pad",
                .h_name = "pad_h",
                .w_name = "pad_w",
                .count = p->n_pad,
                .values = p->pad,
                .has_h = p->has_pad_h,
                .has_w = p->has_pad_w,
                .h = p->pad_h,
                .w = p->pad_w,
                .together = true},
    };
}

static int read_window(const struct ls_layer *layer, struct ls_error *error,
                       const struct extents *extents, struct ls_window *window)
{
    const void *message = layer->definition->pooling_param;
    int axes = layer->bottom[0]->shape.rank - 2, status = 0, failed;
    *window = (struct ls_window){
        .axes = axes, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    if ((failed = ls_extent_read(layer, error, message, &extents->kernel, axes, window->kernel)))
        status = failed;
    if ((failed = ls_extent_read(layer, error, message, &extents->stride, axes, window->stride)))
        status = failed;
    if ((failed = ls_extent_read(layer, error, message, &extents->pad, axes, window->pad)))
        status = failed;
    return status;
}

static int set_global(const struct ls_layer *layer, struct ls_error *error,
                      const struct extents *extents, struct ls_window *window)
{
    const Lockstep__PoolingParameter *p = param_of(layer);
    if (ls_extent_given(&extents->kernel))
        return ls_layer_fail(layer, error, p, ls_extent_field(&extents->kernel, 0),
                             "remove the size, or global_pooling",
                             "with global_pooling the window is the whole plane; a kernel size "
                             "cannot be given");
    for (int i = 0; i < window->axes; i++) {
        if (window->pad[i] != 0 || window->stride[i] != 1)
            return ls_layer_fail(layer, error, p, "global_pooling", NULL,
                                 "with global_pooling, pad must be 0 and stride 1");
        window->kernel[i] = layer->bottom[0]->shape.dim[2 + i];
    }
    return 0;
}

/* ceil_mode is another name of round_mode. */
static int check_rounding(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__PoolingParameter *p = param_of(layer);
    const bool ceil = p->round_mode == LOCKSTEP__POOLING_PARAMETER__ROUND_MODE__CEIL;
    if (!p->has_ceil_mode || !p->has_round_mode || (p->ceil_mode != 0) == ceil)
        return 0;
    return ls_layer_fail(layer, error, p, "ceil_mode", "leave one of them out",
                         "ceil_mode and round_mode round in different ways");
}

/* The extent of the top along one axis, as Caffe has it. */
static int infer_axis(const struct ls_layer *layer, struct ls_error *error,
                      const struct extents *extents, int axis)
{
    struct pooling *state = layer->state;
    const struct ls_window *window = &state->attr.window;
    const Lockstep__PoolingParameter *p = param_of(layer);
    int64_t kernel = window->kernel[axis], stride = window->stride[axis], pad = window->pad[axis];
    int64_t input = layer->bottom[0]->shape.dim[2 + axis], padded = input + 2 * pad;
    int64_t room = padded - kernel;
    const char *field = ls_extent_field(&extents->kernel, axis);
    const char *name = ls_extent_axis_name(window->axes, axis);
    bool floor = p->has_ceil_mode ? !p->ceil_mode
                                  : p->round_mode == LOCKSTEP__POOLING_PARAMETER__ROUND_MODE__FLOOR;
    /* Rounded up, a window that sticks out by less than a stride is still there. */
    if (room < 0 && (floor || room <= -stride))
        return ls_layer_fail(layer, error, p, field, "make the window smaller or pad more",
                             "%s %lld is larger than the padded input %lld (%s)", field,
                             (long long)kernel, (long long)padded, name);
    int64_t last = room < 0 ? 0 : (room + (floor ? 0 : stride - 1)) / stride;
    bool any_pad = window->pad[0] != 0 || window->pad[1] != 0 || window->pad[2] != 0;
    if (any_pad && last * stride >= input + pad)
        last--;
    int64_t begin = last * stride - pad; /* of the last window */
    if (begin >= input)
        return ls_layer_fail(layer, error, p, "stride", "use round_mode: FLOOR",
                             "the last window would begin at %lld, behind the input of %lld (%s)",
                             (long long)begin, (long long)input, name);
    state->top.dim[2 + axis] = last + 1;
    return 0;
}

static int infer_top(const struct ls_layer *layer, struct ls_error *error,
                     const struct extents *extents)
{
    struct pooling *state = layer->state;
    int status = 0;
    state->top = layer->bottom[0]->shape;
    for (int i = 0; i < state->attr.window.axes; i++) {
        int failed = infer_axis(layer, error, extents, i);
        status = failed != 0 ? failed : status;
        if (failed != 0 && extents->kernel.count == 1)
            break; /* one field for all axes is one problem */
    }
    return status;
}

/* A window that lies in the padding has no elements. */
static int check_pad(const struct ls_layer *layer, struct ls_error *error,
                     const struct extents *extents, const struct ls_window *window)
{
    for (int i = 0; i < window->axes; i++) {
        const char *field = ls_extent_field(&extents->pad, i);
        if (window->pad[i] >= window->kernel[i])
            return ls_layer_fail(layer, error, param_of(layer), field, NULL,
                                 "%s %lld must be smaller than the window's %lld (%s)", field,
                                 (long long)window->pad[i], (long long)window->kernel[i],
                                 ls_extent_axis_name(window->axes, i));
    }
    return 0;
}

/* Which numbers are drawn is a function of (seed, layer name, ordinal of the sample, element of the
 * top), as with dropout. */
static int set_method(const struct ls_layer *layer, struct ls_error *error)
{
    struct pooling *state = layer->state;
    const Lockstep__PoolingParameter *p = param_of(layer);
    switch (p->pool) {
    case LOCKSTEP__POOLING_PARAMETER__POOL_METHOD__AVE:
        state->attr.method = LS_POOL_AVERAGE;
        break;
    case LOCKSTEP__POOLING_PARAMETER__POOL_METHOD__STOCHASTIC:
        state->attr.method =
            layer->graph->phase == LOCKSTEP__PHASE__TRAIN ? LS_POOL_STOCHASTIC : LS_POOL_EXPECTED;
        state->attr.key = ls_random_key(layer->graph->seed, LS_RANDOM_POOLING, layer->name);
        break;
    default:
        state->attr.method = LS_POOL_MAX;
    }
    if (layer->tops > 1 && p->pool != LOCKSTEP__POOLING_PARAMETER__POOL_METHOD__MAX)
        return ls_layer_fail(layer, error, NULL, "top", "remove it, or pool the maximum",
                             "only pool: MAX has a second top, which says where the maxima were");
    return 0;
}

/* Caffe has padding for maxima and averages alone. */
static int check_stochastic(const struct ls_layer *layer, struct ls_error *error,
                            const struct extents *extents)
{
    const struct pooling *state = layer->state;
    for (int i = 0; i < state->attr.window.axes; i++)
        if (state->attr.method >= LS_POOL_STOCHASTIC && state->attr.window.pad[i] != 0)
            return ls_layer_fail(layer, error, param_of(layer), ls_extent_field(&extents->pad, i),
                                 NULL, "pool: STOCHASTIC has no padding");
    return 0;
}

static int check_bottom(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_shape *x = &layer->bottom[0]->shape;
    char text[160];
    if (x->rank < 3 || x->rank > 5)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' must have 3 to 5 axes (samples, channels, 1 to 3 "
                             "spatial ones), but is %s",
                             layer->bottom[0]->name, ls_shape_text(x, text, sizeof text));
    return ls_layer_check_samples(layer, error, 0);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct pooling *state = layer->state;
    struct ls_window *window = &state->attr.window;
    const struct extents extents = extents_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_bottom(layer, error));
    LS_TRY(check_rounding(layer, error));
    int method = set_method(layer, error);
    LS_TRY(read_window(layer, error, &extents, window));
    if (param_of(layer)->global_pooling)
        LS_TRY(set_global(layer, error, &extents, window));
    LS_TRY(check_pad(layer, error, &extents, window));
    LS_TRY(check_stochastic(layer, error, &extents));
    int top = infer_top(layer, error, &extents);
    LS_TRY(method);
    LS_TRY(top);
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct pooling *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    if (layer->tops > 1)
        state->index = ls_layer_make_top(layer, 1, &state->top, layer->bottom[0]);
    else if (has_winners(state) && graph->training && layer->bottom[0]->needs_grad)
        state->index = ls_layer_make_side(layer, "index", y);
    if (state->index != NULL)
        state->index->type = LS_I32;
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
    if (op == NULL)
        return 0;
    op->attr.pooling = state->attr;
    if (has_winners(state))
        op->attr.pooling.method = LS_POOL_MAX;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct pooling *state = layer->state;
    const int64_t *kernel = state->attr.window.kernel;
    double window = (double)kernel[0] * (double)kernel[1] * (double)kernel[2];
    double outputs = (double)ls_shape_size(&state->top);
    double x = ls_layer_bytes(layer->bottom[0]), y = ls_layer_bytes(layer->top[0]);
    double index = ls_layer_bytes(state->index);
    bool maximum = has_winners(state);
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
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
