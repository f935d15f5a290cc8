/* Slice: cuts its bottom along an axis, one part for each top.
 *
 * x [..., A, ...], y_i [..., A_i, ...] with the A_i adding up to A: cut at the slice_points, one
 * less than there are tops, or into equal parts. `axis` (default 1) may be that of the
 * samples, which mixes them (ls_layer_mix); `slice_dim` is its older name. Backward joins the
 * gradients; those of tops that no loss depends on are zeros. Caffe's slice_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct slice {
    int axis;
};

static const Lockstep__SliceParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__SliceParameter defaults = LOCKSTEP__SLICE_PARAMETER__INIT;
    const Lockstep__SliceParameter *param = layer->definition->slice_param;
    return param != NULL ? param : &defaults;
}

static int read_axis(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__SliceParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    if (!p->has_slice_dim)
        return ls_layer_one_axis(layer, error, p, "axis", p->axis, x);
    if (p->has_axis) {
        ls_layer_fail(layer, error, p, "slice_dim", "keep axis",
                      "axis and slice_dim cannot both be given");
        return -1;
    }
    int dim = p->slice_dim < LS_RANK_MAX ? (int)p->slice_dim : LS_RANK_MAX;
    return ls_layer_one_axis(layer, error, p, "slice_dim", dim, x);
}

/* Where part `index` begins; `index` may be the number of tops. */
static int64_t begin_of(const struct ls_layer *layer, int axis, int index)
{
    const Lockstep__SliceParameter *p = param_of(layer);
    int64_t length = layer->bottom[0]->shape.dim[axis];
    if (index == 0 || index == layer->tops)
        return index == 0 ? 0 : length;
    return p->n_slice_point > 0 ? p->slice_point[index - 1] : length / layer->tops * index;
}

static int check_points(const struct ls_layer *layer, struct ls_error *error, int axis)
{
    const Lockstep__SliceParameter *p = param_of(layer);
    int64_t length = layer->bottom[0]->shape.dim[axis];
    if (p->n_slice_point == 0 && length % layer->tops != 0)
        return ls_layer_fail(layer, error, NULL, "top", "say where with slice_point",
                             "axis %d of '%s' has extent %lld, which cannot be cut into %d equal "
                             "parts",
                             axis, layer->bottom[0]->name, (long long)length, layer->tops);
    if (p->n_slice_point == 0)
        return 0;
    if (p->n_slice_point != (size_t)layer->tops - 1)
        return ls_layer_fail(layer, error, p, "slice_point", NULL,
                             "%d tops need %d slice_points; there are %zu", layer->tops,
                             layer->tops - 1, p->n_slice_point);
    for (int i = 0; i < layer->tops; i++)
        if (begin_of(layer, axis, i + 1) <= begin_of(layer, axis, i))
            return ls_layer_fail(layer, error, p, "slice_point", NULL,
                                 "slice_points must increase, from 1 on, and stay below %lld, the "
                                 "extent of axis %d of '%s'",
                                 (long long)length, axis, layer->bottom[0]->name);
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct slice *state = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->axis = read_axis(layer, error);
    LS_TRY(state->axis < 0 ? LOCKSTEP_DEFINITION : 0);
    return check_points(layer, error, state->axis);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct slice *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    if (layer->tops == 1) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    struct ls_op *op = ls_graph_op(graph, LS_OP_SLICE);
    ls_op_in(graph, op, x);
    for (int i = 0; i < layer->tops; i++) {
        struct ls_shape part = x->shape;
        part.dim[state->axis] =
            begin_of(layer, state->axis, i + 1) - begin_of(layer, state->axis, i);
        ls_op_out(graph, op, ls_layer_make_top(layer, i, &part, x));
    }
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

/* The gradient of a top, or zeros. */
static struct ls_value *gradient_of(struct ls_layer *layer, int top)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *gradient = ls_graph_gradient(graph, layer->top[top]);
    if (gradient != NULL)
        return gradient;
    gradient = ls_graph_gradient_value(graph, layer->top[top]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_FILL);
    ls_op_out(graph, op, gradient);
    return gradient;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct slice *state = layer->state;
    struct ls_value *gradients[LS_OP_VALUES_MAX];
    if (layer->tops == 1)
        return 0; /* top and bottom are one value, and so are their gradients */
    for (int i = 0; i < layer->tops; i++)
        gradients[i] = gradient_of(layer, i);
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_CONCAT, gradients, layer->tops);
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    if (layer->tops == 1)
        return;
    cost->forward_bytes = 2 * ls_layer_bytes(layer->bottom[0]);
    if (ls_layer_has_gradient(layer, 0))
        cost->backward_bytes = 2 * ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_slice = {
    .type = "Slice",
    .parameter = "slice_param",
    .state_size = sizeof(struct slice),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = LS_LAYER_VALUES_MAX,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
