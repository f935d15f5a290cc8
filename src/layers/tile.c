/* Tile: its bottom `tiles` times, one copy behind the other along an axis.
 *
 * x [..., A, ...], y [..., tiles A, ...] with y[..., t A + a, ...] = x[..., a, ...]. `axis`
 * (default 1) may be that of the samples, which mixes them (ls_layer_mix). Backward adds up the
 * copies' gradients. Caffe's tile_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct tile {
    struct ls_tile_attr attr;
    struct ls_shape top;
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct tile *state = layer->state;
    const Lockstep__TileParameter *param = layer->definition->tile_param;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int axis = ls_layer_one_axis(layer, error, param, "axis", param != NULL ? param->axis : 1, x);
    int status = axis < 0 ? LOCKSTEP_DEFINITION : 0;
    if (param == NULL || !param->has_tiles)
        return ls_layer_fail(layer, error, param, NULL, NULL, "tiles is missing");
    if (param->tiles < 1)
        return ls_layer_fail(layer, error, param, "tiles", NULL, "tiles %d must be at least 1",
                             param->tiles);
    LS_TRY(status);
    state->attr = (struct ls_tile_attr){.axis = axis, .tiles = param->tiles};
    state->top = x->shape;
    if (state->top.dim[axis] > INT64_MAX / param->tiles)
        state->top.dim[axis] = INT64_MAX; /* refused below */
    else
        state->top.dim[axis] *= param->tiles;
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct tile *state = layer->state;
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_TILE, &state->top);
    if (op != NULL)
        op->attr.tile = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct tile *state = layer->state;
    struct ls_op *op = ls_layer_emit_back(layer, LS_OP_TILE_BACKWARD);
    if (op != NULL)
        op->attr.tile = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
    cost->forward_bytes = bytes;
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = (double)ls_shape_size(&layer->top[0]->shape);
    cost->backward_bytes = bytes;
}

const struct ls_layer_type ls_layer_tile = {
    .type = "Tile",
    .parameter = "tile_param",
    .state_size = sizeof(struct tile),
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
