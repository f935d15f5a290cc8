/* SPP: pooling over grids of 1 x 1, 2 x 2, ... cells of a picture, put in one row.
 *
 * Level l of spp_param.pyramid_height has 2^l by 2^l cells: a Pooling with windows of ceil(H / 2^l)
 * by ceil(W / 2^l), as far apart, with half of what they stick out as padding. x [N, C, H, W], y
 * [N, C (1 + 4 + ...)], level by level, channel by channel. pool: MAX or AVE. (He et al.: Spatial
 * pyramid pooling in deep convolutional networks; 2014.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/emit.h"

enum { LEVELS_MAX = 16 };

struct level {
    struct ls_pooling_attr attr;
    struct ls_shape pooled, flat;
    struct ls_value *y, *index, *row;
};

struct spp {
    int levels;
    struct level level[LEVELS_MAX];
};

static const Lockstep__SPPParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__SPPParameter defaults = LOCKSTEP__SPPPARAMETER__INIT;
    const Lockstep__SPPParameter *param = layer->definition->spp_param;
    return param != NULL ? param : &defaults;
}

/* One level; windows must not lie in the padding, as in Caffe. */
static int set_level(const struct ls_layer *layer, struct ls_error *error, int l,
                     struct level *level)
{
    const struct ls_shape *x = &layer->bottom[0]->shape;
    struct ls_window *window = &level->attr.window;
    const int64_t cells = INT64_C(1) << l;
    *window = (struct ls_window){
        .axes = 2, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    level->pooled = *x;
    for (int a = 0; a < 2; a++) {
        const int64_t extent = x->dim[2 + a], kernel = (extent + cells - 1) / cells;
        window->kernel[a] = window->stride[a] = kernel;
        window->pad[a] = (kernel * cells - extent + 1) / 2;
        level->pooled.dim[2 + a] = cells;
        if (window->pad[a] >= kernel || (cells - 1) * kernel - window->pad[a] >= extent)
            return ls_layer_fail(layer, error, param_of(layer), "pyramid_height", NULL,
                                 "level %d of the pyramid has %lld cells, too many for an axis of "
                                 "extent %lld of '%s'",
                                 l, (long long)cells, (long long)extent, layer->bottom[0]->name);
    }
    level->flat = (struct ls_shape){2, {x->dim[0], x->dim[1] * cells * cells}};
    level->attr.method = param_of(layer)->pool == LOCKSTEP__SPPPARAMETER__POOL_METHOD__AVE
                             ? LS_POOL_AVERAGE
                             : LS_POOL_MAX;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct spp *state = layer->state;
    const Lockstep__SPPParameter *p = param_of(layer);
    const void *message = layer->definition->spp_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_planes(layer, error, 0));
    if (p->pyramid_height < 1 || p->pyramid_height > LEVELS_MAX)
        return ls_layer_fail(
            layer, error, message, p->has_pyramid_height ? "pyramid_height" : NULL, NULL,
            p->has_pyramid_height ? "pyramid_height must be 1 to 16" : "pyramid_height is missing");
    if (p->pool == LOCKSTEP__SPPPARAMETER__POOL_METHOD__STOCHASTIC)
        return ls_layer_fail(layer, error, message, "pool", "use MAX or AVE",
                             "pool: STOCHASTIC is not for padded windows, as those of a pyramid "
                             "are");
    state->levels = (int)p->pyramid_height;
    for (int l = 0; l < state->levels; l++)
        LS_TRY(set_level(layer, error, l, &state->level[l]));
    return 0;
}

static void pool_level(struct ls_layer *layer, struct level *level)
{
    struct ls_value *x = layer->bottom[0];
    struct ls_emitted pooled =
        ls_emit_side(layer, LS_OP_POOLING, "pooled", &level->pooled, x, &x, 1);
    level->y = pooled.value;
    if (level->attr.method == LS_POOL_MAX && layer->graph->training && x->needs_grad) {
        level->index = ls_layer_make_side(layer, "index", level->y);
        if (level->index != NULL)
            level->index->type = LS_I32;
    }
    ls_op_out(layer->graph, pooled.op, level->index);
    if (pooled.op != NULL)
        pooled.op->attr.pooling = level->attr;
    level->row = ls_emit_view(layer, "row", level->y, &level->flat, x);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct spp *state = layer->state;
    struct ls_value *rows[LEVELS_MAX];
    struct ls_shape top = state->level[0].flat;
    for (int l = 0; l < state->levels; l++) {
        pool_level(layer, &state->level[l]);
        rows[l] = state->level[l].row;
        top.dim[1] += l > 0 ? state->level[l].flat.dim[1] : 0;
    }
    struct ls_emitted joined =
        ls_emit_top(layer, LS_OP_CONCAT, 0, &top, layer->bottom[0], rows, state->levels);
    if (joined.op != NULL)
        joined.op->attr.axis = 1;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct spp *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_op *cut = ls_graph_op(graph, LS_OP_SLICE);
    ls_op_in(graph, cut, ls_graph_gradient(graph, layer->top[0]));
    struct ls_value *drow[LEVELS_MAX];
    for (int l = 0; l < state->levels; l++) {
        drow[l] = ls_graph_gradient_value(graph, state->level[l].row);
        ls_op_out(graph, cut, drow[l]);
    }
    if (cut != NULL)
        cut->attr.axis = 1;
    for (int l = 0; l < state->levels; l++) {
        const struct level *level = &state->level[l];
        struct ls_value *inputs[] = {ls_emit_slope(layer, LS_OP_VIEW, level->y, &drow[l], 1).value,
                                     level->index};
        struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_POOLING_BACKWARD, inputs, 2);
        if (op != NULL)
            op->attr.pooling = level->attr;
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct spp *state = layer->state;
    ls_layer_map_cost(layer, cost, state->levels, state->levels, 0);
    cost->forward_bytes *= state->levels;
    cost->backward_bytes *= state->levels;
}

const struct ls_layer_type ls_layer_spp = {
    .type = "SPP",
    .parameter = "spp_param",
    .state_size = sizeof(struct spp),
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
