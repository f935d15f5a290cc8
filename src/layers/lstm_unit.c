/* LSTMUnit: one step of an LSTM, without its products.
 *
 * Bottoms: c before [1, N, H]; what its gates are made of, [1, N, 4 H], parts i, f, o, g; cont [1,
 * N], which is 0 where a sequence begins. Tops: c and h [1, N, H]:
 *
 *   c = cont sigmoid(f) c_before + sigmoid(i) tanh(g),  h = sigmoid(o) tanh(c)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct lstm_unit {
    struct ls_recurrent_attr attr;
    struct ls_value *gates;
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct lstm_unit *state = layer->state;
    const struct ls_shape *c = &layer->bottom[0]->shape, *gates = &layer->bottom[1]->shape;
    const struct ls_shape *cont = &layer->bottom[2]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (c->rank != 3 || c->dim[0] != 1)
        return ls_layer_fail_shape(layer, error, 0, "be 1 x sequences x numbers");
    if (gates->rank != 3 || gates->dim[0] != 1 || gates->dim[1] != c->dim[1] ||
        gates->dim[2] != 4 * c->dim[2])
        return ls_layer_fail_shape(layer, error, 1,
                                   "be 1 x sequences x 4 times the numbers of bottom 0");
    if (cont->rank != 2 || cont->dim[0] != 1 || cont->dim[1] != c->dim[1])
        return ls_layer_fail_shape(layer, error, 2, "be 1 x sequences");
    LS_TRY(ls_layer_check_alike(layer, error, 1));
    LS_TRY(ls_layer_check_alike(layer, error, 2));
    state->attr = (struct ls_recurrent_attr){
        .cell = LS_CELL_LSTM, .steps = 1, .rows = c->dim[1], .hidden = c->dim[2]};
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct lstm_unit *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *before = layer->bottom[0], *gates = layer->bottom[1];
    struct ls_value *c = ls_layer_make_top(layer, 0, &before->shape, before);
    struct ls_value *h = ls_layer_make_top(layer, 1, &before->shape, before);
    if (graph->training)
        state->gates = ls_layer_make_side(layer, "gates", gates);
    struct ls_value *in[] = {gates, layer->bottom[2], NULL, NULL, NULL, NULL, before};
    struct ls_value *out[] = {h, state->gates, NULL, c, NULL, NULL};
    struct ls_op *op = ls_graph_op(graph, LS_OP_RECURRENT);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        ls_op_in(graph, op, in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ls_op_out(graph, op, out[i]);
    if (op != NULL)
        op->attr.recurrent = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct lstm_unit *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *before = layer->bottom[0], *gates = layer->bottom[1];
    struct ls_value *dz = ls_graph_gradient_value(graph, gates);
    struct ls_value *dc = layer->propagate[0] ? ls_graph_gradient_value(graph, before) : NULL;
    struct ls_value *in[] = {ls_graph_gradient(graph, layer->top[1]),
                             NULL,
                             ls_graph_gradient(graph, layer->top[0]),
                             state->gates,
                             NULL,
                             NULL,
                             layer->top[0],
                             before,
                             layer->bottom[2],
                             NULL};
    struct ls_value *out[] = {dz, NULL, NULL, NULL, dc};
    struct ls_op *op = ls_graph_op(graph, LS_OP_RECURRENT_BACKWARD);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        ls_op_in(graph, op, in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ls_op_out(graph, op, out[i]);
    if (op != NULL)
        op->attr.recurrent = state->attr;
    if (layer->propagate[0])
        ls_graph_add_gradient(graph, before, dc);
    if (layer->propagate[1])
        ls_graph_add_gradient(graph, gates, dz);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 120, 150, 6); /* an element of c: four gates and two tanh */
}

const struct ls_layer_type ls_layer_lstm_unit = {
    .type = "LSTMUnit",
    .state_size = sizeof(struct lstm_unit),
    .bottoms_min = 3,
    .bottoms_max = 3,
    .tops_min = 2,
    .tops_max = 2,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
