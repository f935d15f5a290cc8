/* Crop: a part of its first bottom, of the size of its second one.
 *
 *   y[i...] = x[i + offset...] from `axis` on (default 2), everything in front of it
 *
 * x [N, C, ...] and a reference of as many axes, of which only the shape is used: no gradient goes
 * to it. `offset` is given once for all those axes, or once for each; without it, it is 0. Axis 0,
 * or another that holds samples, cannot be cropped. Backward, what was not taken gets zeros.
 * Caffe's crop_param. (Long, Shelhamer, Darrell: Fully convolutional networks for semantic
 * segmentation; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct crop {
    struct ls_crop_attr attr;
    struct ls_shape top;
};

static const Lockstep__CropParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__CropParameter defaults = LOCKSTEP__CROP_PARAMETER__INIT;
    const Lockstep__CropParameter *param = layer->definition->crop_param;
    return param != NULL ? param : &defaults;
}

/* The first axis that is cropped; -1 after a failure. The sizes of the reference along the cropped
 * axes must not depend on how many samples a micro-batch has. */
static int read_axis(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__CropParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0], *size = layer->bottom[1];
    int axis =
        ls_layer_axis(layer, error, layer->definition->crop_param, "axis", p->axis, x, false);
    if (axis == 0) {
        ls_layer_fail(layer, error, layer->definition->crop_param, "axis", NULL,
                      "axis 0 cannot be cropped");
        return -1;
    }
    if (axis < 0)
        return -1;
    if (size->shape.rank != x->shape.rank) {
        char a[160], b[160];
        ls_layer_fail(layer, error, NULL, "bottom", NULL,
                      "its bottoms must have as many axes as each other, but '%s' is %s and '%s' "
                      "is %s",
                      x->name, ls_shape_text(&x->shape, a, sizeof a), size->name,
                      ls_shape_text(&size->shape, b, sizeof b));
        return -1;
    }
    if (size->sample_axis >= axis) {
        ls_layer_fail(layer, error, NULL, "bottom", NULL,
                      "axis %d of its bottom '%s', which gives the size, runs over the samples of "
                      "a batch",
                      size->sample_axis, size->name);
        return -1;
    }
    return axis;
}

static int crop_axis(const struct ls_layer *layer, struct ls_error *error, int axis, size_t index)
{
    struct crop *state = layer->state;
    const Lockstep__CropParameter *p = param_of(layer);
    int64_t offset = p->n_offset == 0 ? 0 : p->offset[p->n_offset == 1 ? 0 : index];
    int64_t there = layer->bottom[0]->shape.dim[axis], size = layer->bottom[1]->shape.dim[axis];
    state->attr.offset[axis] = offset;
    state->top.dim[axis] = size;
    if (offset + size <= there)
        return 0;
    return ls_layer_fail(
        layer, error, layer->definition->crop_param, p->n_offset > 0 ? "offset" : NULL, NULL,
        "%lld positions from %lld on do not fit into the %lld of '%s' along axis "
        "%d",
        (long long)size, (long long)offset, (long long)there, layer->bottom[0]->name, axis);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct crop *state = layer->state;
    const Lockstep__CropParameter *p = param_of(layer);
    const struct ls_shape *x = &layer->bottom[0]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int first = read_axis(layer, error), status = 0;
    LS_TRY(first < 0 ? LOCKSTEP_DEFINITION : 0);
    if (p->n_offset > 1 && p->n_offset != (size_t)(x->rank - first))
        return ls_layer_fail(layer, error, p, "offset", NULL,
                             "offset is given %zu times; it must be given once, or once for each "
                             "of the %d axes from %d on",
                             p->n_offset, x->rank - first, first);
    state->top = *x;
    for (int axis = first; axis < x->rank; axis++) {
        int failed = crop_axis(layer, error, axis, (size_t)(axis - first));
        status = failed != 0 ? failed : status;
    }
    return status != 0 ? status : ls_layer_check_shape(layer, error, "the top", &state->top);
}

/* Whether the top is the bottom. */
static bool same(const struct ls_layer *layer)
{
    const struct crop *state = layer->state;
    return ls_shape_equal(&state->top, &layer->bottom[0]->shape);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct crop *state = layer->state;
    if (same(layer)) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_CROP, &state->top);
    if (op != NULL)
        op->attr.crop = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct crop *state = layer->state;
    struct ls_op *op = ls_layer_emit_back(layer, LS_OP_CROP_BACKWARD);
    if (op != NULL)
        op->attr.crop = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    if (same(layer))
        return;
    cost->forward_bytes = 2 * ls_layer_bytes(layer->top[0]);
    if (ls_layer_has_gradient(layer, 0))
        cost->backward_bytes = ls_layer_bytes(layer->top[0]) + ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_crop = {
    .type = "Crop",
    .parameter = "crop_param",
    .state_size = sizeof(struct crop),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
