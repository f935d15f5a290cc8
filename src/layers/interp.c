/* Interp: bilinear resizing of planes, their corners kept in place.
 *
 * x [N, C, H, W]; y [N, C, H', W']. Position i of H' is position i (H_e - 1) / (H' - 1) of the rows
 * that are left of H, H_e = H + pad_beg + pad_end (neither is positive: they cut off); columns
 * likewise. The size of y is `height` and `width`, or that of a second bottom, of which only the
 * shape is used, or follows from the factors:
 *
 *   shrink_factor s: (H_e - 1) / s + 1, rounded down; zoom_factor z: H_e + (H_e - 1) (z - 1)
 *
 * (both: first the one, then the other on what it gives). The interp_param of DeepLab and PSPNet.
 * (Chen and others: Semantic image segmentation with deep convolutional nets and fully connected
 * CRFs; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct interp {
    struct ls_resize_attr attr;
    struct ls_shape top;
};

static const Lockstep__InterpParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__InterpParameter defaults = LOCKSTEP__INTERP_PARAMETER__INIT;
    const Lockstep__InterpParameter *param = layer->definition->interp_param;
    return param != NULL ? param : &defaults;
}

static int fail_field(const struct ls_layer *layer, struct ls_error *error, const char *field,
                      const char *hint, const char *problem)
{
    return ls_layer_fail(layer, error, layer->definition->interp_param, field, hint, "%s", problem);
}

static int check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    const struct ls_value *value = layer->bottom[bottom];
    LS_TRY(ls_layer_check_planes(layer, error, bottom));
    if (bottom == 0)
        return ls_layer_check_samples(layer, error, 0);
    if (value->sample_axis < 2)
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "axis %d of its bottom '%s', which gives the size, runs over the samples "
                         "of a batch",
                         value->sample_axis, value->name);
}

/* The size has one source. */
static int check_source(const struct ls_layer *layer, struct ls_error *error)
{
    static const char hint[] = "give height and width, or zoom_factor and shrink_factor, or a "
                               "second bottom";
    const Lockstep__InterpParameter *p = param_of(layer);
    bool size = p->has_height || p->has_width, factor = p->has_zoom_factor || p->has_shrink_factor;
    const char *size_field = p->has_height ? "height" : "width";
    const char *factor_field = p->has_zoom_factor ? "zoom_factor" : "shrink_factor";
    if (size && p->has_height != p->has_width)
        return fail_field(layer, error, size_field, NULL,
                          "height and width must be given together");
    if (size && factor)
        return fail_field(layer, error, factor_field, hint,
                          "the size of the top is given twice, by height and width and by a "
                          "factor");
    if (layer->bottoms > 1 && (size || factor))
        return fail_field(layer, error, size ? size_field : factor_field, hint,
                          "the size of the top is given twice, here and by the second bottom");
    if (layer->bottoms == 1 && !size && !factor)
        return fail_field(layer, error, NULL, hint, "nothing gives the size of the top");
    return 0;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__InterpParameter *p = param_of(layer);
    const struct {
        const char *name;
        bool given;
        int value;
    } sizes[] = {{"height", p->has_height, p->height},
                 {"width", p->has_width, p->width},
                 {"zoom_factor", p->has_zoom_factor, p->zoom_factor},
                 {"shrink_factor", p->has_shrink_factor, p->shrink_factor}};
    int status = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].given && sizes[i].value < 1)
            status = ls_layer_fail(layer, error, p, sizes[i].name, NULL,
                                   "%s %d is out of range; it must be at least 1", sizes[i].name,
                                   sizes[i].value);
    if (p->pad_beg > 0)
        status = ls_layer_fail(layer, error, p, "pad_beg", "a negative number cuts off",
                               "pad_beg %d must not be positive", p->pad_beg);
    if (p->pad_end > 0)
        status = ls_layer_fail(layer, error, p, "pad_end", "a negative number cuts off",
                               "pad_end %d must not be positive", p->pad_end);
    return status;
}

/* The extent of the top along axis 2 or 3, where `left` positions of the bottom are left. Lengths
 * and factors have 31 bits. */
static int64_t extent_of(const struct ls_layer *layer, int axis, int64_t left)
{
    const Lockstep__InterpParameter *p = param_of(layer);
    if (layer->bottoms > 1)
        return layer->bottom[1]->shape.dim[axis];
    if (p->has_height)
        return axis == 2 ? p->height : p->width;
    int64_t extent = (left - 1) / p->shrink_factor + 1;
    return extent + (extent - 1) * (p->zoom_factor - 1);
}

enum { EXTENT_MAX = 1 << 24 }; /* kernels have a table with an entry for each position */

/* The extents of the top. */
static int infer_top(const struct ls_layer *layer, struct ls_error *error)
{
    static const char *const names[] = {"height", "width"};
    struct interp *state = layer->state;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const Lockstep__InterpParameter *p = param_of(layer);
    state->top = *x;
    for (int axis = 2; axis < 4; axis++) {
        int64_t left = x->dim[axis] - state->attr.begin - state->attr.end;
        if (left < 1)
            return ls_layer_fail(layer, error, p, p->pad_beg < 0 ? "pad_beg" : "pad_end", NULL,
                                 "pad_beg %d and pad_end %d leave nothing of the %lld positions of "
                                 "'%s' (%s)",
                                 p->pad_beg, p->pad_end, (long long)x->dim[axis],
                                 layer->bottom[0]->name, names[axis - 2]);
        state->top.dim[axis] = left > EXTENT_MAX ? INT64_MAX : extent_of(layer, axis, left);
        if (state->top.dim[axis] > EXTENT_MAX)
            return ls_layer_fail(layer, error, NULL, NULL, NULL,
                                 "an axis of more than 2^24 positions cannot be resized (%s)",
                                 names[axis - 2]);
    }
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct interp *state = layer->state;
    const Lockstep__InterpParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int source = check_source(layer, error);
    LS_TRY(check_numbers(layer, error));
    LS_TRY(source);
    for (int i = 0; i < layer->bottoms; i++)
        LS_TRY(check_planes(layer, error, i));
    state->attr =
        (struct ls_resize_attr){.begin = -(int64_t)p->pad_beg, .end = -(int64_t)p->pad_end};
    return infer_top(layer, error);
}

/* Whether the top is the bottom. */
static bool same(const struct ls_layer *layer)
{
    const struct interp *state = layer->state;
    return state->attr.begin == 0 && state->attr.end == 0 &&
           ls_shape_equal(&state->top, &layer->bottom[0]->shape);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct interp *state = layer->state;
    if (same(layer)) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_RESIZE, &state->top);
    if (op != NULL)
        op->attr.resize = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct interp *state = layer->state;
    struct ls_op *op = ls_layer_emit_back(layer, LS_OP_RESIZE_BACKWARD);
    if (op != NULL)
        op->attr.resize = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    if (same(layer))
        return;
    double places = (double)ls_shape_size(&layer->top[0]->shape);
    double bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
    cost->forward_flops = 6 * places;
    cost->forward_bytes = bytes;
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = 8 * places;
    cost->backward_bytes = bytes;
}

const struct ls_layer_type ls_layer_interp = {
    .type = "Interp",
    .parameter = "interp_param",
    .state_size = sizeof(struct interp),
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
