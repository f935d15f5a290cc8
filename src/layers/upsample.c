/* Upsample: planes enlarged.
 *
 * With one bottom each number is repeated in a field (nearest neighbours): x [N, C, H, W], y [N, C,
 * a H, b W] with y[n, c, i, j] = x[n, c, i / a, j / b]; `scale` is both factors, or `scale_h` and
 * `scale_w` give them one by one. (YOLOv3's.) Backward adds up each field.
 *
 * The second bottom may be the second top of a Pooling layer, where the maxima were: then each
 * number of x goes back to the place that the maximum came from, and y is zero elsewhere. y has the
 * size of what was pooled; what the definition says of it must agree: `upsample_h` and
 * `upsample_w`, or the factors, less one row with `pad_out_h` (one column with `pad_out_w`). x has
 * as many channels and positions as the pooled planes. (Badrinarayanan, Kendall, Cipolla: SegNet,
 * a deep convolutional encoder-decoder architecture for image segmentation; 2015. Its
 * upsample_param.) The windows of the pooling must not overlap: else a place could be that of two
 * maxima.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct upsample {
    struct ls_upsample_attr attr;
    struct ls_shape top;
};

static const Lockstep__UpsampleParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__UpsampleParameter defaults = LOCKSTEP__UPSAMPLE_PARAMETER__INIT;
    const Lockstep__UpsampleParameter *param = layer->definition->upsample_param;
    return param != NULL ? param : &defaults;
}

static int fail_field(const struct ls_layer *layer, struct ls_error *error, const char *field,
                      const char *hint, const char *problem)
{
    return ls_layer_fail(layer, error, layer->definition->upsample_param, field, hint, "%s",
                         problem);
}

static int read_factors(const struct ls_layer *layer, struct ls_error *error, int64_t factor[2])
{
    const Lockstep__UpsampleParameter *p = param_of(layer);
    if (p->has_scale_h != p->has_scale_w)
        return fail_field(layer, error, p->has_scale_h ? "scale_h" : "scale_w", NULL,
                          "scale_h and scale_w must be given together");
    if (p->has_scale_h && p->has_scale)
        return fail_field(layer, error, "scale", "remove one of them",
                          "the factors are given twice, by scale and by scale_h and scale_w");
    factor[0] = p->has_scale_h ? p->scale_h : p->scale;
    factor[1] = p->has_scale_h ? p->scale_w : p->scale;
    for (int i = 0; i < 2; i++)
        if (factor[i] < 1)
            return fail_field(layer, error,
                              !p->has_scale_h ? "scale"
                              : i == 0        ? "scale_h"
                                              : "scale_w",
                              NULL, "a factor of 0 leaves nothing; it must be at least 1");
    return 0;
}

/* The op that wrote the maxima of which `value` says where they were; NULL: it says no such thing.
 */
static const struct ls_op *find_pooling(const struct ls_graph *graph, const struct ls_value *value)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->kind == LS_OP_POOLING && op->outputs > 1 && op->output[1] == value)
            return op;
    }
    return NULL;
}

static int check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    LS_TRY(ls_layer_check_planes(layer, error, bottom));
    return ls_layer_check_samples(layer, error, bottom);
}

/* The size that the definition asks for along an axis must be that of what was pooled. */
static int check_extent(const struct ls_layer *layer, struct ls_error *error, int axis,
                        int64_t pooled, int64_t factor)
{
    const Lockstep__UpsampleParameter *p = param_of(layer);
    const bool given = axis == 2 ? p->has_upsample_h : p->has_upsample_w;
    const bool less = axis == 2 ? p->pad_out_h : p->pad_out_w;
    const int64_t wanted = given ? axis == 2 ? p->upsample_h : p->upsample_w
                                 : layer->bottom[0]->shape.dim[axis] * factor - less;
    if (wanted == pooled)
        return 0;
    return ls_layer_fail(layer, error, p, given ? axis == 2 ? "upsample_h" : "upsample_w" : NULL,
                         "give its size as upsample_h and upsample_w",
                         "the top would have a %s of %lld, but '%s' says where maxima were in "
                         "planes with one of %lld",
                         axis == 2 ? "height" : "width", (long long)wanted, layer->bottom[1]->name,
                         (long long)pooled);
}

static int check_pooling(const struct ls_layer *layer, struct ls_error *error,
                         const struct ls_op *pooling, const int64_t factor[2])
{
    const struct ls_window *window = &pooling->attr.pooling.window;
    const struct ls_shape *x = &layer->bottom[0]->shape, *pooled = &pooling->output[0]->shape;
    char text[160], other[160];
    for (int i = 0; i < window->axes; i++)
        if (window->kernel[i] > window->stride[i])
            return ls_layer_fail(layer, error, NULL, "bottom",
                                 "pool with a stride that is not less than the window",
                                 "the windows of the pooling that made '%s' overlap, so that two "
                                 "maxima can be at one place",
                                 layer->bottom[1]->name);
    if (!ls_shape_equal(x, pooled))
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' is %s, but '%s' says where the maxima of %s were",
                             layer->bottom[0]->name, ls_shape_text(x, text, sizeof text),
                             layer->bottom[1]->name, ls_shape_text(pooled, other, sizeof other));
    int rows = check_extent(layer, error, 2, pooling->input[0]->shape.dim[2], factor[0]);
    int columns = check_extent(layer, error, 3, pooling->input[0]->shape.dim[3], factor[1]);
    return rows != 0 ? rows : columns;
}

static int setup_places(struct ls_layer *layer, struct ls_error *error)
{
    struct upsample *state = layer->state;
    const struct ls_op *pooling = find_pooling(layer->graph, layer->bottom[1]);
    if (pooling == NULL)
        return ls_layer_fail(
            layer, error, NULL, "bottom", "give a max Pooling layer a second top, and name that",
            "its second bottom '%s' does not say where maxima were", layer->bottom[1]->name);
    LS_TRY(check_planes(layer, error, 1));
    LS_TRY(check_pooling(layer, error, pooling, state->attr.factor));
    state->top = pooling->input[0]->shape;
    return 0;
}

static int setup_fields(struct ls_layer *layer, struct ls_error *error)
{
    struct upsample *state = layer->state;
    const Lockstep__UpsampleParameter *p = param_of(layer);
    const char *field = p->has_upsample_h   ? "upsample_h"
                        : p->has_upsample_w ? "upsample_w"
                        : p->pad_out_h      ? "pad_out_h"
                        : p->pad_out_w      ? "pad_out_w"
                                            : NULL;
    if (field != NULL)
        return fail_field(
            layer, error, field, "an Interp layer enlarges to any size",
            "the size is that of a second bottom, which says where maxima were; there "
            "is none");
    state->top = layer->bottom[0]->shape;
    for (int axis = 2; axis < 4; axis++) {
        int64_t *extent = &state->top.dim[axis], factor = state->attr.factor[axis - 2];
        *extent = *extent > INT64_MAX / factor ? INT64_MAX : *extent * factor; /* refused below */
    }
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct upsample *state = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(read_factors(layer, error, state->attr.factor));
    LS_TRY(check_planes(layer, error, 0));
    LS_TRY(layer->bottoms > 1 ? setup_places(layer, error) : setup_fields(layer, error));
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct upsample *state = layer->state;
    const bool places = layer->bottoms > 1;
    struct ls_op *op =
        ls_layer_emit_top(layer, places ? LS_OP_UNPOOL : LS_OP_UPSAMPLE, &state->top);
    if (places)
        ls_op_in(layer->graph, op, layer->bottom[1]);
    else if (op != NULL)
        op->attr.upsample = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct upsample *state = layer->state;
    const bool places = layer->bottoms > 1;
    if (!layer->propagate[0])
        return 0;
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]),
                                 places ? layer->bottom[1] : NULL};
    struct ls_op *op = ls_layer_emit_gradient(
        layer, 0, places ? LS_OP_UNPOOL_BACKWARD : LS_OP_UPSAMPLE_BACKWARD, inputs, places ? 2 : 1);
    if (!places && op != NULL)
        op->attr.upsample = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
    if (layer->bottoms > 1)
        bytes += ls_layer_bytes(layer->bottom[1]);
    cost->forward_bytes = bytes;
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops =
        layer->bottoms > 1 ? 0 : (double)ls_shape_size(&layer->top[0]->shape);
    cost->backward_bytes = bytes;
}

const struct ls_layer_type ls_layer_upsample = {
    .type = "Upsample",
    .parameter = "upsample_param",
    .state_size = sizeof(struct upsample),
    .bottoms_min = 1,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
