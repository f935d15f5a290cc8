/* Flatten: axes `axis` .. `end_axis` (default 1 .. -1) become one; the elements stay as they are.
 *
 * If the axis of samples is among them it must be the first that is longer than 1, so that the
 * elements of a sample stay together; each sample then has several rows. Other axes in front of it
 * mix samples (ls_layer_mix). Caffe's flatten_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct flatten {
    struct ls_shape top;
    int sample_axis;
    int64_t rows;
};

/* Where the samples lie in the top. */
static int place_samples(struct ls_layer *layer, struct ls_error *error, int axis, int end)
{
    struct flatten *state = layer->state;
    const struct ls_value *x = layer->bottom[0];
    state->sample_axis = x->sample_axis;
    state->rows = x->rows;
    if (x->sample_axis > end) {
        state->sample_axis -= end - axis;
    } else if (x->sample_axis >= axis) {
        if (ls_shape_count(&x->shape, axis, x->sample_axis) != 1 && !ls_layer_mix(layer))
            return ls_layer_fail(layer, error, layer->definition->flatten_param, "axis", NULL,
                                 "joining axis %d of '%s', which holds the samples, to the axes "
                                 "before it would mix samples",
                                 x->sample_axis, x->name);
        state->sample_axis = axis;
        state->rows *= ls_shape_count(&x->shape, x->sample_axis + 1, end + 1);
    }
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct flatten *state = layer->state;
    const Lockstep__FlattenParameter *param = layer->definition->flatten_param;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int axis = ls_layer_axis(layer, error, param, "axis", param != NULL ? param->axis : 1, x, true);
    int end = ls_layer_axis(layer, error, param, "end_axis", param != NULL ? param->end_axis : -1,
                            x, true);
    if (axis < 0 || end < 0)
        return LOCKSTEP_DEFINITION;
    if (end < axis)
        return ls_layer_fail(layer, error, param, "end_axis", NULL,
                             "end_axis %d lies before axis %d", end, axis);
    state->top.rank = x->shape.rank - (end - axis);
    for (int i = 0; i < axis; i++)
        state->top.dim[i] = x->shape.dim[i];
    state->top.dim[axis] = ls_shape_count(&x->shape, axis, end + 1);
    for (int i = axis + 1; i < state->top.rank; i++)
        state->top.dim[i] = x->shape.dim[i + end - axis];
    return place_samples(layer, error, axis, end);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct flatten *state = layer->state;
    ls_layer_emit_view(layer, &state->top, state->sample_axis, state->rows);
    return 0;
}

const struct ls_layer_type ls_layer_flatten = {
    .type = "Flatten",
    .parameter = "flatten_param",
    .state_size = sizeof(struct flatten),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = ls_layer_view_backward,
};
