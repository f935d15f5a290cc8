/* Layers that put the numbers of a sample in another order: they are seen under a shape of more
 * axes, permuted, and seen under the shape of the top.
 *
 *   ShuffleChannel: channel k of group g becomes channel g of group k (ShuffleNet's
 *     shuffle_channel_param; Zhang et al., 2017)
 *   Reorg: squares of s x s positions become channels (YOLO's reorg_param). What is there as
 *     [C, H, W] is taken as [C / s^2, H, s, W, s], whatever it meant, and becomes
 *     [C s^2, H / s, W / s] with the places in a square first; that is how Darknet has it.
 *     `reverse` undoes what another one has done: from [C, H, W] to [C / s^2, H s, W s].
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/emit.h"

struct reorder {
    struct ls_shape seen, top; /* x under its axes; its permuted numbers have those of `order` */
    int order[LS_RANK_MAX];
};

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct reorder *state = layer->state;
    struct ls_value *x = layer->bottom[0];
    struct ls_value *seen = ls_emit_view(layer, "seen", x, &state->seen, x);
    struct ls_value *moved = ls_emit_permuted(layer, -1, "moved", seen, state->order);
    ls_emit_top(layer, LS_OP_VIEW, 0, &state->top, x, &moved, 1);
    return 0;
}

/* The values between are not kept: what their gradients lie like is found anew. */
static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct reorder *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]), *x = layer->bottom[0];
    struct ls_shape moved = state->seen;
    int back[LS_RANK_MAX] = {0};
    for (int i = 0; i < moved.rank; i++) {
        moved.dim[i] = state->seen.dim[state->order[i]];
        back[state->order[i]] = i;
    }
    struct ls_value *lying = ls_emit_view(layer, "grad_moved", dy, &moved, x);
    struct ls_value *seen = ls_emit_permuted(layer, -1, "grad_seen", lying, back);
    struct ls_emitted dx = ls_emit_slope(layer, LS_OP_VIEW, x, &seen, 1);
    ls_graph_add_gradient(graph, x, dx.value);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 0, 0, 0);
}

/* ---- ShuffleChannel -------------------------------------------------------------------------- */

static int shuffle_setup(struct ls_layer *layer, struct ls_error *error)
{
    struct reorder *state = layer->state;
    const Lockstep__ShuffleChannelParameter *p = layer->definition->shuffle_channel_param;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const int64_t group = p != NULL ? p->group : 1;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    if (group < 1 || x->dim[1] % group != 0)
        return ls_layer_fail(layer, error, p, "group", NULL,
                             "the %lld channels of '%s' cannot be divided into %lld groups",
                             (long long)x->dim[1], layer->bottom[0]->name, (long long)group);
    state->top = *x;
    state->seen =
        (struct ls_shape){4, {x->dim[0], group, x->dim[1] / group, ls_shape_count(x, 2, x->rank)}};
    const int order[] = {0, 2, 1, 3};
    for (int i = 0; i < 4; i++)
        state->order[i] = order[i];
    return 0;
}

const struct ls_layer_type ls_layer_shuffle_channel = {
    .type = "ShuffleChannel",
    .parameter = "shuffle_channel_param",
    .state_size = sizeof(struct reorder),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = shuffle_setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};

/* ---- Reorg ----------------------------------------------------------------------------------- */

static int check_divides(const struct ls_layer *layer, struct ls_error *error, int axis, int64_t by)
{
    const struct ls_value *x = layer->bottom[0];
    if (x->shape.dim[axis] % by == 0)
        return 0;
    return ls_layer_fail(layer, error, layer->definition->reorg_param, "stride", NULL,
                         "axis %d of '%s' has extent %lld, which is no multiple of %lld", axis,
                         x->name, (long long)x->shape.dim[axis], (long long)by);
}

static int reorg_setup(struct ls_layer *layer, struct ls_error *error)
{
    struct reorder *state = layer->state;
    const Lockstep__ReorgParameter *p = layer->definition->reorg_param;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const bool reverse = p != NULL && p->reverse;
    const int64_t s = p != NULL ? p->stride : 0;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_planes(layer, error, 0));
    if (s < 1 || s > 1 << 15)
        return ls_layer_fail(layer, error, p, p != NULL && p->has_stride ? "stride" : NULL, NULL,
                             p != NULL && p->has_stride ? "stride must be 1 to 32768"
                                                        : "stride is missing");
    LS_TRY(check_divides(layer, error, 1, s * s));
    if (!reverse) {
        LS_TRY(check_divides(layer, error, 2, s));
        LS_TRY(check_divides(layer, error, 3, s));
    }
    const int64_t n = x->dim[0], c = x->dim[1] / (s * s), h = x->dim[2], w = x->dim[3];
    const int forth[] = {0, 3, 5, 1, 2, 4}, back[] = {0, 3, 4, 1, 5, 2};
    for (int i = 0; i < 6; i++)
        state->order[i] = reverse ? back[i] : forth[i];
    state->seen = reverse ? (struct ls_shape){6, {n, s, s, c, h, w}}
                          : (struct ls_shape){6, {n, c, h, s, w, s}};
    state->top = reverse ? (struct ls_shape){4, {n, c, h * s, w * s}}
                         : (struct ls_shape){4, {n, x->dim[1] * s * s, h / s, w / s}};
    return 0;
}

const struct ls_layer_type ls_layer_reorg = {
    .type = "Reorg",
    .parameter = "reorg_param",
    .state_size = sizeof(struct reorder),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = reorg_setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
