/* Positions: the numbers of places in sequences.
 *
 * x [N, T, ...], of which only the shape is used; y [N, T], the numbers 0 to T - 1 in each row,
 * from `offset` on. A second bottom, segments [N, T], lets them begin anew wherever a segment's
 * number differs from that of the place in front. An Embed layer makes learned embeddings of them.
 * Lockstep's own positions_param. No gradient goes to the bottoms.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

enum { NUMBERS = 1 << 24 }; /* whole numbers beyond are not all floats */

static int offset_of(const struct ls_layer *layer)
{
    const Lockstep__PositionsParameter *p = layer->definition->positions_param;
    return p != NULL ? p->offset : 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0];
    const int64_t offset = offset_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    if (x->shape.rank < 2)
        return ls_layer_fail_shape(layer, error, 0, "have at least 2 axes (samples, places)");
    if (offset < -NUMBERS || offset + x->shape.dim[1] > NUMBERS)
        return ls_layer_fail(layer, error, layer->definition->positions_param, "offset", NULL,
                             "numbers of %lld places from %lld on go beyond those that a value can "
                             "hold, -2^24 to 2^24",
                             (long long)x->shape.dim[1], (long long)offset);
    if (layer->bottoms == 1)
        return 0;
    LS_TRY(ls_layer_check_alike(layer, error, 1));
    const struct ls_shape *segments = &layer->bottom[1]->shape;
    if (segments->rank == 2 && segments->dim[0] == x->shape.dim[0] &&
        segments->dim[1] == x->shape.dim[1])
        return 0;
    return ls_layer_fail_shape(layer, error, 1,
                               "have a number of a segment for each place, with 2 axes");
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_shape shape = layer->bottom[0]->shape;
    shape.rank = 2;
    struct ls_value *y = ls_layer_make_top(layer, 0, &shape, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_POSITIONS);
    if (layer->bottoms > 1)
        ls_op_in(layer->graph, op, layer->bottom[1]);
    ls_op_out(layer->graph, op, y);
    if (op != NULL)
        op->attr.offset = offset_of(layer);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_bytes = ls_layer_bytes(layer->top[0]) * layer->bottoms;
}

const struct ls_layer_type ls_layer_positions = {
    .type = "Positions",
    .parameter = "positions_param",
    .bottoms_min = 1,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
