/* What Convolution and Deconvolution share. See layers/window.h.
 *
 * `engine` and `force_nd_im2col` choose between ways to compute the same thing, so that they are
 * accepted and change nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/window.h"

#include <string.h>

#include "base/memory.h"
#include "layers/extent.h"

const Lockstep__ConvolutionParameter *ls_window_param(const struct ls_layer *layer)
{
    static const Lockstep__ConvolutionParameter defaults = LOCKSTEP__CONVOLUTION_PARAMETER__INIT;
    const Lockstep__ConvolutionParameter *param = layer->definition->convolution_param;
    return param != NULL ? param : &defaults;
}

/* The depthwise types of forks have a group for each channel where they do not say another. */
static uint32_t group_of(const struct ls_layer *layer, int64_t channels)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    const char *type = layer->definition->type;
    const bool depthwise = type != NULL && strcmp(type, layer->type->type) != 0 &&
                           strcmp(type, "ConvolutionDepthwise") == 0;
    return depthwise && !p->has_group && channels <= UINT32_MAX ? (uint32_t)channels : p->group;
}

bool ls_window_is_portable(const struct ls_layer *layer)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    return p->has_algorithm ? p->algorithm == LOCKSTEP__CONVOLUTION_PARAMETER__ALGORITHM__PORTABLE
                            : layer->portable;
}

/* The kernel's extents, for convolution.c's messages too. */
static struct ls_extent kernel_of(const struct ls_layer *layer)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    return (struct ls_extent){.list = "kernel_size",
                              .h_name = "kernel_h",
                              .w_name = "kernel_w",
                              .count = p->n_kernel_size,
                              .values = p->kernel_size,
                              .has_h = p->has_kernel_h,
                              .has_w = p->has_kernel_w,
                              .h = p->kernel_h,
                              .w = p->kernel_w,
                              .missing = -1,
                              .least = 1,
                              .together = true};
}

const char *ls_window_kernel_field(const struct ls_layer *layer, int axis)
{
    const struct ls_extent kernel = kernel_of(layer);
    return ls_extent_field(&kernel, axis);
}

int ls_window_read(const struct ls_layer *layer, struct ls_error *error, struct ls_window *window)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    const struct ls_extent kernel = kernel_of(layer);
    const struct ls_extent stride = {.list = "stride",
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
                                     .together = true};
    const struct ls_extent pad = {.list = "pad",
                                  .h_name = "pad_h",
                                  .w_name = "pad_w",
                                  .count = p->n_pad,
                                  .values = p->pad,
                                  .has_h = p->has_pad_h,
                                  .has_w = p->has_pad_w,
                                  .h = p->pad_h,
                                  .w = p->pad_w};
    const struct ls_extent dilation = {.list = "dilation",
                                       .count = p->n_dilation,
                                       .values = p->dilation,
                                       .missing = 1,
                                       .least = 1};
    const struct {
        const struct ls_extent *extent;
        int64_t *out;
    } all[] = {{&kernel, window->kernel},
               {&stride, window->stride},
               {&pad, window->pad},
               {&dilation, window->dilation}};
    int status = 0;
    for (int i = 0; i < 3; i++)
        window->kernel[i] = window->stride[i] = window->dilation[i] = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int failed = ls_extent_read(layer, error, layer->definition->convolution_param,
                                    all[i].extent, window->axes, all[i].out);
        status = failed != 0 ? failed : status;
    }
    return status;
}

/* The bottoms: one shape, that begins with the samples. */
static int check_bottoms(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_shape *x = &layer->bottom[0]->shape;
    char a[160], b[160];
    if (layer->tops != layer->bottoms)
        return ls_layer_fail(layer, error, NULL, "top", NULL,
                             "has %d bottoms and %d tops; each bottom needs a top", layer->bottoms,
                             layer->tops);
    for (int i = 0; i < layer->bottoms; i++) {
        LS_TRY(ls_layer_check_samples(layer, error, i));
        if (!ls_shape_equal(x, &layer->bottom[i]->shape))
            return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                                 "its bottoms share weights and must have one shape, but '%s' is "
                                 "%s and '%s' is %s",
                                 layer->bottom[0]->name, ls_shape_text(x, a, sizeof a),
                                 layer->bottom[i]->name,
                                 ls_shape_text(&layer->bottom[i]->shape, b, sizeof b));
        LS_TRY(ls_layer_check_alike(layer, error, i));
    }
    return 0;
}

/* Finds the channels, and what the ops see: [all in front of them, channels, 1 to 3 spatial axes].
 */
static int read_axis(const struct ls_layer *layer, struct ls_error *error)
{
    struct ls_window_state *state = layer->state;
    const struct ls_value *x = layer->bottom[0];
    char text[160];
    int axis = ls_layer_axis(layer, error, layer->definition->convolution_param, "axis",
                             ls_window_param(layer)->axis, x, false);
    if (axis < 0)
        return LOCKSTEP_DEFINITION;
    int spatial = x->shape.rank - axis - 1;
    if (spatial < 1 || spatial > 3)
        return ls_layer_fail(layer, error, NULL, "bottom",
                             spatial < 1 ? "an InnerProduct layer needs no spatial axes" : NULL,
                             "its bottom '%s' must have 1 to 3 spatial axes behind axis %d, the "
                             "channels, but is %s",
                             x->name, axis, ls_shape_text(&x->shape, text, sizeof text));
    state->axis = axis;
    state->attr.window.axes = spatial;
    state->bottom.rank = spatial + 2;
    state->bottom.dim[0] = ls_shape_count(&x->shape, 0, axis);
    for (int i = 0; i <= spatial; i++)
        state->bottom.dim[1 + i] = x->shape.dim[axis + i];
    return 0;
}

static int check_channels(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    const void *message = layer->definition->convolution_param;
    int64_t channels = ((const struct ls_window_state *)layer->state)->bottom.dim[1];
    const uint32_t group = group_of(layer, channels);
    int status = 0;
    if (p->num_output == 0)
        status = ls_layer_fail(layer, error, message, "num_output", NULL,
                               p->has_num_output ? "num_output must be at least 1"
                                                 : "num_output is missing");
    if (group == 0)
        return ls_layer_fail(layer, error, message, "group", NULL, "group must be at least 1");
    if (channels % group != 0)
        status = ls_layer_fail(layer, error, message, "group", NULL,
                               "the %lld channels of '%s' cannot be divided into %u groups",
                               (long long)channels, layer->bottom[0]->name, group);
    if (p->num_output % group != 0)
        status =
            ls_layer_fail(layer, error, message, "num_output", NULL,
                          "num_output %u cannot be divided into %u groups", p->num_output, group);
    return status;
}

static int request_blobs(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_window_state *state = layer->state;
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    struct ls_shape weight = state->top;
    int64_t channels = state->bottom.dim[1], outputs = p->num_output;
    bool transposed = state->kind->transposed;
    weight.dim[0] = transposed ? channels : outputs;
    weight.dim[1] = (transposed ? outputs : channels) / group_of(layer, channels);
    for (int i = 0; i < state->attr.window.axes; i++)
        weight.dim[2 + i] = state->attr.window.kernel[i];
    LS_TRY(ls_layer_check_shape(layer, error, "the weight", &weight));
    layer->request[0] =
        (struct ls_blob_request){.name = "weight", .shape = weight, .filler = p->weight_filler};
    layer->request[1] = (struct ls_blob_request){
        .name = "bias", .shape = {.rank = 1, .dim = {outputs}}, .filler = p->bias_filler};
    layer->blobs = p->bias_term ? 2 : 1;
    return 0;
}

int ls_window_setup(struct ls_layer *layer, struct ls_error *error,
                    const struct ls_window_kind *kind)
{
    struct ls_window_state *state = layer->state;
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    state->kind = kind;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_bottoms(layer, error));
    LS_TRY(read_axis(layer, error));
    int channels = check_channels(layer, error);
    LS_TRY(ls_window_read(layer, error, &state->attr.window));
    state->top = state->bottom;
    LS_TRY(kind->extents(layer, error));
    LS_TRY(channels);
    state->attr.group = group_of(layer, state->bottom.dim[1]);
    state->attr.bias = p->bias_term;
    state->top.dim[1] = p->num_output;
    state->whole_top = layer->bottom[0]->shape;
    for (int i = 0; i <= state->attr.window.axes; i++)
        state->whole_top.dim[state->axis + i] = state->top.dim[1 + i];
    LS_TRY(ls_layer_check_shape(layer, error, "the top", &state->whole_top));
    return request_blobs(layer, error);
}

/* `x` under another shape, by a view into `y` (NULL: a new value); both begin with the samples. */
static struct ls_value *view_of(struct ls_layer *layer, struct ls_value *x,
                                const struct ls_shape *shape, struct ls_value *y)
{
    struct ls_graph *graph = layer->graph;
    if (x != NULL && y == NULL)
        y = ls_graph_value(graph, x->name, shape, x);
    if (x == NULL || y == NULL)
        return NULL;
    y->rows = y->shape.dim[0] / graph->samples;
    struct ls_op *op = ls_graph_op(graph, LS_OP_VIEW);
    ls_op_in(graph, op, x);
    ls_op_out(graph, op, y);
    return y;
}

static struct ls_value *forward_one(struct ls_layer *layer, struct ls_value *x, struct ls_value *y)
{
    const struct ls_window_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_op *op = ls_graph_op(graph, state->kind->forward);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, ls_graph_parameter(graph, layer, 0));
    ls_op_in(graph, op, layer->blobs > 1 ? ls_graph_parameter(graph, layer, 1) : NULL);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.convolution = state->attr;
    return y;
}

int ls_window_forward(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_window_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    state->x = ls_graph_own(graph, ls_alloc((size_t)layer->bottoms, sizeof *state->x));
    if (state->x == NULL)
        return ls_fail_memory(error, "a layer");
    for (int i = 0; i < layer->bottoms; i++) {
        struct ls_value *x = layer->bottom[i];
        bool whole = state->axis == 1;
        state->x[i] = whole ? x : view_of(layer, x, &state->bottom, NULL);
        struct ls_value *y =
            whole ? ls_layer_make_top(layer, i, &state->top, x)
                  : ls_graph_value(graph, ls_layer_top_name(layer, i), &state->top, state->x[i]);
        forward_one(layer, state->x[i], y);
        if (!whole)
            view_of(layer, y, NULL, ls_layer_make_top(layer, i, &state->whole_top, x));
    }
    return 0;
}

static void backward_weights(struct ls_layer *layer, struct ls_value *x, struct ls_value *dy)
{
    const struct ls_window_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    bool bias = layer->blobs > 1 && layer->train_blob[1];
    /* The op always writes dw; where only the bias learns, it is not read. */
    struct ls_value *dw = ls_graph_parameter_gradient(graph, layer, 0);
    struct ls_value *db = bias ? ls_graph_parameter_gradient(graph, layer, 1) : NULL;
    struct ls_op *op = ls_graph_op(graph, state->kind->weights);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, dy);
    ls_op_out(graph, op, dw);
    ls_op_out(graph, op, db);
    if (op != NULL) {
        op->attr.convolution = state->attr;
        op->attr.convolution.bias = bias;
    }
    if (layer->train_blob[0])
        ls_graph_accumulate(graph, layer, 0, dw);
    if (bias)
        ls_graph_accumulate(graph, layer, 1, db);
}

static void backward_data(struct ls_layer *layer, int bottom, struct ls_value *dy)
{
    const struct ls_window_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dx = ls_graph_gradient_value(graph, state->x[bottom]);
    struct ls_op *op = ls_graph_op(graph, state->kind->data);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, ls_graph_parameter(graph, layer, 0));
    ls_op_out(graph, op, dx);
    if (op != NULL)
        op->attr.convolution = state->attr;
    if (state->axis != 1)
        dx = view_of(layer, dx, NULL, ls_graph_gradient_value(graph, layer->bottom[bottom]));
    ls_graph_add_gradient(graph, layer->bottom[bottom], dx);
}

/* Weights come before data: x is not needed any more when dx, which is as large, is written. */
int ls_window_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct ls_window_state *state = layer->state;
    for (int i = 0; i < layer->bottoms; i++) {
        struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[i]);
        bool weights = layer->train_blob[0] || (layer->blobs > 1 && layer->train_blob[1]);
        if (dy == NULL || !(weights || layer->propagate[i]))
            continue;
        if (state->axis != 1)
            dy = view_of(layer, dy, &state->top, NULL);
        if (weights)
            backward_weights(layer, state->x[i], dy);
        if (layer->propagate[i])
            backward_data(layer, i, dy);
    }
    return 0;
}

void ls_window_cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_window_state *state = layer->state;
    const struct ls_shape *weight = &layer->request[0].shape;
    double per_place = 2.0 * (double)ls_shape_count(weight, 1, weight->rank);
    double weight_bytes = 4.0 * (double)ls_shape_size(weight);
    for (int i = 0; i < layer->bottoms; i++) {
        const struct ls_value *places = state->kind->transposed ? layer->bottom[i] : layer->top[i];
        double flops = per_place * (double)ls_shape_size(&places->shape);
        double x = ls_layer_bytes(layer->bottom[i]), y = ls_layer_bytes(layer->top[i]);
        cost->forward_flops += flops;
        cost->forward_bytes += x + y + weight_bytes;
        if (ls_layer_trains_blob(layer, 0)) {
            cost->backward_weights_flops += flops;
            cost->backward_bytes += x + y + weight_bytes;
        }
        if (ls_layer_has_gradient(layer, i)) {
            cost->backward_data_flops += flops;
            cost->backward_bytes += x + y + weight_bytes;
        }
    }
}
