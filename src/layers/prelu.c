/* PReLU: y = x for x > 0, else slope x, with a learned slope for each channel (axis 1), or one for
 * all (channel_shared).
 *
 * The slope begins at 0.25 unless `filler` says otherwise; its gradient is the sum of dy x where
 * x <= 0. Both backward passes want x. Caffe's prelu_param; the blob has shape [C], or none where
 * it is shared. (He, Zhang, Ren, Sun: Delving deep into rectifiers; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

static const Lockstep__FillerParameter *filler_of(const Lockstep__PReLUParameter *param)
{
    static const Lockstep__FillerParameter quarter = {
        PROTOBUF_C_MESSAGE_INIT(&lockstep__filler_parameter__descriptor),
        .type = lockstep__filler_parameter__type__default_value, /* "constant" */
        .has_value = 1,
        .value = 0.25F,
        .max = 1,
        .std = 1,
        .sparse = -1,
    };
    return param != NULL && param->filler != NULL ? param->filler : &quarter;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__PReLUParameter *p = layer->definition->prelu_param;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    struct ls_shape slope = {.rank = p != NULL && p->channel_shared ? 0 : 1, .dim = {x->dim[1]}};
    layer->request[0] =
        (struct ls_blob_request){.name = "slope", .shape = slope, .filler = filler_of(p)};
    layer->blobs = 1;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_PRELU);
    ls_op_in(layer->graph, op, x);
    ls_op_in(layer->graph, op, ls_graph_parameter(layer->graph, layer, 0));
    ls_op_out(layer->graph, op, ls_layer_make_top(layer, 0, &x->shape, x));
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0], *dy = ls_graph_gradient(graph, layer->top[0]);
    if (layer->train_blob[0]) {
        struct ls_value *slope = ls_graph_parameter_gradient(graph, layer, 0);
        struct ls_op *op = ls_graph_op(graph, LS_OP_PRELU_SLOPE);
        ls_op_in(graph, op, dy);
        ls_op_in(graph, op, x);
        ls_op_out(graph, op, slope);
        ls_graph_accumulate(graph, layer, 0, slope);
    }
    if (layer->propagate[0]) {
        struct ls_value *inputs[] = {dy, x, ls_graph_parameter(graph, layer, 0)};
        ls_layer_emit_gradient(layer, 0, LS_OP_PRELU_DATA, inputs, 3);
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 1, 1, 1);
    if (!ls_layer_trains_blob(layer, 0))
        return;
    cost->backward_weights_flops = 2 * (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->backward_bytes += 2 * ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_prelu = {
    .type = "PReLU",
    .parameter = "prelu_param",
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
