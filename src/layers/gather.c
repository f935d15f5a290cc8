/* Gather: what lies at some places along an axis.
 *
 * x [N, ..., L, ...] with L places along `axis` (default 1), index of whole numbers from 0 to L -
 * 1: [N, K], numbers of each sample, or [K] without samples, the same for all; y has K places along
 * the axis, place k of which is place index[k] of x. Backward a place gets the sum over all that
 * was taken from it, in their order. A number that names no place ends the run with a message.
 * (Rows of the batch itself: BatchReindex; rows of a learned table: Embed.) Lockstep's own
 * gather_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct gather {
    struct ls_gather_attr attr;
    struct ls_shape top;
};

static int check_index(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0], *index = layer->bottom[1];
    const bool shared = index->sample_axis < 0;
    if (index->shape.rank != (shared ? 1 : 2))
        return ls_layer_fail_shape(layer, error, 1,
                                   shared ? "be a list of numbers of places, with one axis"
                                          : "have numbers of places for each sample, with 2 axes");
    if (shared)
        return 0;
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_alike(layer, error, 1));
    if (x->shape.dim[0] == index->shape.dim[0])
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "'%s' has %lld rows, and '%s' numbers of places for %lld", x->name,
                         (long long)x->shape.dim[0], index->name, (long long)index->shape.dim[0]);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct gather *state = layer->state;
    const Lockstep__GatherParameter *p = layer->definition->gather_param;
    const struct ls_shape *index = &layer->bottom[1]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    const int axis =
        ls_layer_axis(layer, error, p, "axis", p != NULL ? p->axis : 1, layer->bottom[0], false);
    if (axis < 0)
        return LOCKSTEP_DEFINITION;
    LS_TRY(check_index(layer, error));
    state->attr = (struct ls_gather_attr){axis, layer->bottom[1]->sample_axis < 0};
    state->top = layer->bottom[0]->shape;
    state->top.dim[axis] = index->dim[index->rank - 1];
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct gather *state = layer->state;
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_GATHER, &state->top);
    ls_op_in(layer->graph, op, layer->bottom[1]);
    if (op != NULL)
        op->attr.gather = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct gather *state = layer->state;
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]), layer->bottom[1]};
    if (layer->propagate[1])
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "write propagate_down: true and propagate_down: false into the layer "
                             "to stop the gradient there",
                             "a Gather layer cannot backpropagate to its numbers of places, but "
                             "'%s' depends on learned parameters",
                             layer->bottom[1]->name);
    if (!layer->propagate[0])
        return 0;
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_GATHER_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.gather = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_bytes = 2 * ls_layer_bytes(layer->top[0]);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = (double)ls_shape_size(&layer->top[0]->shape);
    cost->backward_bytes = ls_layer_bytes(layer->top[0]) + ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_gather = {
    .type = "Gather",
    .parameter = "gather_param",
    .state_size = sizeof(struct gather),
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
