/* What Convolution and Deconvolution share. See layers/window.h.
 *
 * `engine` and `force_nd_im2col` choose between ways to compute the same thing, so that they are
 * accepted and change nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/window.h"

static const char *const axis_names[3][3] = {
    {"length", NULL, NULL}, {"height", "width", NULL}, {"depth", "height", "width"}};

/* One of kernel_size, stride, pad, dilation: a list, or a pair of fields with _h and _w. */
struct extent {
    const char *list, *h_name, *w_name;
    size_t count;
    const uint32_t *values;
    bool has_h, has_w;
    uint32_t h, w;
    int64_t missing; /* what stands for a list that is not given; -1: it must be given */
    int64_t least;
};

const Lockstep__ConvolutionParameter *ls_window_param(const struct ls_layer *layer)
{
    static const Lockstep__ConvolutionParameter defaults = LOCKSTEP__CONVOLUTION_PARAMETER__INIT;
    const Lockstep__ConvolutionParameter *param = layer->definition->convolution_param;
    return param != NULL ? param : &defaults;
}

const char *ls_window_axis_name(int axes, int axis)
{
    return axis_names[axes - 1][axis];
}

const char *ls_window_kernel_field(const struct ls_layer *layer, int axis)
{
    if (ls_window_param(layer)->n_kernel_size > 0)
        return "kernel_size";
    return axis == 0 ? "kernel_h" : "kernel_w";
}

static int check_values(const struct ls_layer *layer, struct ls_error *error,
                        const struct extent *extent, int axes, const int64_t *out)
{
    const void *message = layer->definition->convolution_param;
    for (int i = 0; i < axes; i++) {
        if (out[i] >= extent->least && out[i] <= INT32_MAX)
            continue;
        return ls_layer_fail(layer, error, message,
                             extent->count > 0 ? extent->list : extent->h_name, NULL,
                             "%s %lld is out of range; it must be at least %lld", extent->list,
                             (long long)out[i], (long long)extent->least);
    }
    return 0;
}

/* Reads one of them for `axes` spatial axes. */
static int read_extent(const struct ls_layer *layer, struct ls_error *error,
                       const struct extent *extent, int axes, int64_t *out)
{
    const void *message = layer->definition->convolution_param;
    if (extent->has_h || extent->has_w) {
        const char *field = extent->has_h ? extent->h_name : extent->w_name;
        if (extent->count > 0)
            return ls_layer_fail(layer, error, message, field, "keep one of the two forms",
                                 "%s and %s cannot both be given", extent->list, field);
        if (axes != 2)
            return ls_layer_fail(layer, error, message, field, "use the list form",
                                 "%s is for bottoms with two spatial axes; this one has %d", field,
                                 axes);
        /* One of the pair alone leaves the other at 0 (kernel, stride: refused) as in Caffe. */
        out[0] = extent->h;
        out[1] = extent->w;
        if (extent->least > 0 && !(extent->has_h && extent->has_w))
            return ls_layer_fail(layer, error, message, field, NULL,
                                 "%s and %s must be given together", extent->h_name,
                                 extent->w_name);
        return check_values(layer, error, extent, axes, out);
    }
    if (extent->count == 0 && extent->missing < 0)
        return ls_layer_fail(layer, error, message, NULL, NULL, "%s is missing", extent->list);
    if (extent->count > 1 && extent->count != (size_t)axes)
        return ls_layer_fail(layer, error, message, extent->list, NULL,
                             "%s is given %zu times; it must be given once, or once for each of "
                             "the %d spatial axes",
                             extent->list, extent->count, axes);
    for (int i = 0; i < axes; i++)
        out[i] = extent->count == 0 ? extent->missing : extent->values[extent->count == 1 ? 0 : i];
    return check_values(layer, error, extent, axes, out);
}

static int read_window(const struct ls_layer *layer, struct ls_error *error,
                       struct ls_window *window)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    const struct extent kernel = {"kernel_size",
                                  "kernel_h",
                                  "kernel_w",
                                  p->n_kernel_size,
                                  p->kernel_size,
                                  p->has_kernel_h,
                                  p->has_kernel_w,
                                  p->kernel_h,
                                  p->kernel_w,
                                  -1,
                                  1};
    const struct extent stride = {
        "stride",        "stride_h",  "stride_w",  p->n_stride, p->stride, p->has_stride_h,
        p->has_stride_w, p->stride_h, p->stride_w, 1,           1};
    const struct extent pad = {"pad",        "pad_h",  "pad_w",  p->n_pad, p->pad, p->has_pad_h,
                               p->has_pad_w, p->pad_h, p->pad_w, 0,        0};
    const struct extent dilation = {
        "dilation", "dilation", "dilation", p->n_dilation, p->dilation, false, false, 0, 0, 1, 1};
    for (int i = 0; i < 3; i++)
        window->kernel[i] = window->stride[i] = window->dilation[i] = 1;
    int status = 0, failed;
    if ((failed = read_extent(layer, error, &kernel, window->axes, window->kernel)) != 0)
        status = failed;
    if ((failed = read_extent(layer, error, &stride, window->axes, window->stride)) != 0)
        status = failed;
    if ((failed = read_extent(layer, error, &pad, window->axes, window->pad)) != 0)
        status = failed;
    if ((failed = read_extent(layer, error, &dilation, window->axes, window->dilation)) != 0)
        status = failed;
    return status;
}

/* The bottoms: one shape, samples, channels, 1 to 3 spatial axes. */
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
    }
    if (x->rank < 3 || x->rank > 5)
        return ls_layer_fail(layer, error, NULL, "bottom",
                             x->rank < 3 ? "an InnerProduct layer needs no spatial axes" : NULL,
                             "its bottom '%s' must have 3 to 5 axes (samples, channels, 1 to 3 "
                             "spatial ones), but is %s",
                             layer->bottom[0]->name, ls_shape_text(x, a, sizeof a));
    return 0;
}

static int check_channels(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    const void *message = layer->definition->convolution_param;
    int64_t channels = layer->bottom[0]->shape.dim[1];
    int status = 0;
    int axis = ls_shape_axis(&layer->bottom[0]->shape, p->axis);
    if (axis != 1)
        status = ls_layer_fail(layer, error, message, "axis", NULL,
                               "axis %d is not supported; the channels must be axis 1", p->axis);
    if (p->num_output == 0)
        status = ls_layer_fail(layer, error, message, "num_output", NULL,
                               p->has_num_output ? "num_output must be at least 1"
                                                 : "num_output is missing");
    if (p->group == 0)
        return ls_layer_fail(layer, error, message, "group", NULL, "group must be at least 1");
    if (channels % p->group != 0)
        status = ls_layer_fail(layer, error, message, "group", NULL,
                               "the %lld channels of '%s' cannot be divided into %u groups",
                               (long long)channels, layer->bottom[0]->name, p->group);
    if (p->num_output % p->group != 0)
        status = ls_layer_fail(layer, error, message, "num_output", NULL,
                               "num_output %u cannot be divided into %u groups", p->num_output,
                               p->group);
    return status;
}

static int request_blobs(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_window_state *state = layer->state;
    const Lockstep__ConvolutionParameter *p = ls_window_param(layer);
    struct ls_shape weight = state->top;
    int64_t channels = layer->bottom[0]->shape.dim[1], outputs = p->num_output;
    bool transposed = state->kind->transposed;
    weight.dim[0] = transposed ? channels : outputs;
    weight.dim[1] = (transposed ? outputs : channels) / p->group;
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
    state->attr.window.axes = layer->bottom[0]->shape.rank - 2;
    int channels = check_channels(layer, error);
    LS_TRY(read_window(layer, error, &state->attr.window));
    state->top = layer->bottom[0]->shape;
    LS_TRY(kind->extents(layer, error));
    LS_TRY(channels);
    state->attr.group = p->group;
    state->attr.bias = p->bias_term;
    state->top.dim[1] = p->num_output;
    LS_TRY(ls_layer_check_shape(layer, error, "the top", &state->top));
    return request_blobs(layer, error);
}

int ls_window_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct ls_window_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *weight = ls_graph_parameter(graph, layer, 0);
    struct ls_value *bias = layer->blobs > 1 ? ls_graph_parameter(graph, layer, 1) : NULL;
    for (int i = 0; i < layer->bottoms; i++) {
        struct ls_value *y = ls_layer_make_top(layer, i, &state->top, layer->bottom[i]);
        struct ls_op *op = ls_graph_op(graph, state->kind->forward);
        ls_op_in(graph, op, layer->bottom[i]);
        ls_op_in(graph, op, weight);
        ls_op_in(graph, op, bias);
        ls_op_out(graph, op, y);
        if (op != NULL)
            op->attr.convolution = state->attr;
    }
    return 0;
}

static void backward_weights(struct ls_layer *layer, struct ls_value *x, struct ls_value *dy)
{
    const struct ls_window_state *state = layer->state;
    struct ls_graph *graph = layer->graph;
    bool bias = layer->blobs > 1 && layer->train_blob[1];
    /* The op always writes dw; where only the bias learns, nobody reads it. */
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
    struct ls_value *inputs[] = {dy, ls_graph_parameter(layer->graph, layer, 0)};
    struct ls_op *op = ls_layer_emit_gradient(layer, bottom, state->kind->data, inputs, 2);
    if (op != NULL)
        op->attr.convolution = state->attr;
}

/* Weights come before data: x is not needed any more when dx, which is as large, is written. */
int ls_window_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    for (int i = 0; i < layer->bottoms; i++) {
        struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[i]);
        if (dy == NULL)
            continue;
        if (layer->train_blob[0] || (layer->blobs > 1 && layer->train_blob[1]))
            backward_weights(layer, layer->bottom[i], dy);
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
