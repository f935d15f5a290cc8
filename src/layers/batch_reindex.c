/* BatchReindex: rows of its first bottom by number, some of them more than once.
 *
 * x [M, ...], index [N] of whole numbers from 0 to M - 1; y [N, ...] with y[n] = x[index[n]]. Its
 * rows are no samples: it mixes those of the batch. Backward a row gets the sum over all places
 * that it was put to, in their order. Caffe's BatchReindex, which takes no parameters.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0], *index = layer->bottom[1];
    char text[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (x->shape.rank < 1)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' is one number and has no rows", x->name);
    if (index->shape.rank != 1)
        return ls_layer_fail(layer, error, NULL, "bottom", "a Reshape layer makes one axis of it",
                             "'%s' must be a list of numbers of rows, with one axis, but is %s",
                             index->name, ls_shape_text(&index->shape, text, sizeof text));
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    struct ls_shape top = layer->bottom[0]->shape;
    top.dim[0] = layer->bottom[1]->shape.dim[0];
    struct ls_value *y = ls_layer_make_top(layer, 0, &top, layer->bottom[1]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_PICK);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, layer->bottom[1]);
    ls_op_out(graph, op, y);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_value *inputs[] = {ls_graph_gradient(layer->graph, layer->top[0]), layer->bottom[1]};
    if (layer->propagate[1])
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "write propagate_down: true and propagate_down: false into the layer "
                             "to stop the gradient there",
                             "a BatchReindex layer cannot backpropagate to its numbers of rows, "
                             "but '%s' depends on learned parameters",
                             layer->bottom[1]->name);
    if (layer->propagate[0])
        ls_layer_emit_gradient(layer, 0, LS_OP_PICK_BACKWARD, inputs, 2);
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

const struct ls_layer_type ls_layer_batch_reindex = {
    .type = "BatchReindex",
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .mixes_samples = true,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
