/* Parameter: a learnable tensor as a top.
 *
 * Blob: parameter, of the shape in parameter_param, filled by its blob_filler (default: zeros). The
 * top does not depend on samples. Its gradient is the exact sum over all micro-batches. Caffe's
 * parameter_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static int read_shape(const struct ls_layer *layer, struct ls_error *error, struct ls_shape *shape)
{
    const Lockstep__ParameterParameter *param = layer->definition->parameter_param;
    const Lockstep__BlobShape *given = param != NULL ? param->shape : NULL;
    if (given == NULL || given->n_dim == 0)
        return ls_layer_fail(layer, error, param, NULL, "parameter_param { shape { dim: 10 } }",
                             "shape is missing");
    shape->rank = given->n_dim <= LS_RANK_MAX ? (int)given->n_dim : LS_RANK_MAX + 1;
    for (int i = 0; i < shape->rank && i < LS_RANK_MAX; i++) {
        shape->dim[i] = given->dim[i];
        if (given->dim[i] < 1)
            return ls_layer_fail(layer, error, given, "dim", NULL,
                                 "extent %lld of axis %d is not possible", (long long)given->dim[i],
                                 i);
    }
    return ls_layer_check_shape(layer, error, "the parameter", shape);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_shape shape = {0};
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(read_shape(layer, error, &shape));
    layer->request[0] =
        (struct ls_blob_request){.name = "parameter",
                                 .shape = shape,
                                 .filler = layer->definition->parameter_param->blob_filler};
    layer->blobs = 1;
    return 0;
}

/* The top is a copy, since layers may write their bottom in place. */
static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    struct ls_value *y = ls_layer_make_top(layer, 0, &layer->request[0].shape, NULL);
    struct ls_op *op = ls_graph_op(graph, LS_OP_TILE);
    ls_op_in(graph, op, ls_graph_parameter(graph, layer, 0));
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.tile = (struct ls_tile_attr){.axis = 0, .tiles = 1};
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dw = ls_graph_parameter_gradient(graph, layer, 0);
    struct ls_op *op = ls_graph_op(graph, LS_OP_TILE_BACKWARD);
    ls_op_in(graph, op, ls_graph_gradient(graph, layer->top[0]));
    ls_op_out(graph, op, dw);
    if (op != NULL)
        op->attr.tile = (struct ls_tile_attr){.axis = 0, .tiles = 1};
    ls_graph_accumulate(graph, layer, 0, dw);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_bytes = 2 * ls_layer_bytes(layer->top[0]);
    if (ls_layer_trains_blob(layer, 0))
        cost->backward_bytes = cost->forward_bytes;
}

const struct ls_layer_type ls_layer_parameter = {
    .type = "Parameter",
    .parameter = "parameter_param",
    .bottoms_min = 0,
    .bottoms_max = 0,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
