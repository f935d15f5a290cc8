/* See layers/recurrent.h. SPDX-License-Identifier: BSD-2-Clause */
#include "layers/recurrent.h"

#include <stdio.h>

#include "base/text.h"

static const Lockstep__RecurrentParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__RecurrentParameter defaults = LOCKSTEP__RECURRENT_PARAMETER__INIT;
    const Lockstep__RecurrentParameter *param = layer->definition->recurrent_param;
    return param != NULL ? param : &defaults;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Dummy data may have got the shape of cont wrong, which nothing else says. */
static int fail_cont(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_shape *cont = &layer->bottom[1]->shape;
    char hint[200];
    if (!layer->graph->dummy || cont->rank != 1)
        return ls_layer_fail_shape(layer, error, 1, "be steps x sequences, as bottom 0");
    snprintf(hint, sizeof hint,
             "--input %.100s=%lld,N says its shape; likewise those of the layer's other tops",
             layer->bottom[1]->name, (long long)cont->dim[0]);
    return ls_layer_fail(layer, error, NULL, "bottom", hint,
                         "its bottom '%.100s' must be steps x sequences, as bottom 0, but is %lld",
                         layer->bottom[1]->name, (long long)cont->dim[0]);
}

/* Bottoms 0 and 1, x and cont. Where samples are not sequences, as records that are steps, cells
 * mix them. */
static int check_sequences(const struct ls_layer *layer, struct ls_error *error)
{
    struct ls_value *x = layer->bottom[0];
    const struct ls_shape *cont = &layer->bottom[1]->shape;
    if (x->shape.rank < 2)
        return ls_layer_fail_shape(layer, error, 0, "be steps x sequences x ...");
    const bool mixes = x->sample_axis != 1 && ls_layer_mix(layer);
    if (mixes && x->sample_axis < 0) { /* its one sample is the batch */
        x->sample_axis = 0;
        x->rows = x->shape.dim[0];
    }
    if (x->sample_axis != 1 && !mixes)
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "tensor { sample_axis: 1 } of a Data layer that reads arrays, or "
                             "sample_axis: 1 of an Input layer, says that samples are sequences",
                             "its bottom '%s' must be steps x sequences x ..., with the samples of "
                             "the batch along axis 1; they lie along axis %d",
                             x->name, x->sample_axis);
    if (cont->rank != 2 || cont->dim[0] != x->shape.dim[0] || cont->dim[1] != x->shape.dim[1])
        return fail_cont(layer, error);
    return mixes ? 0 : ls_layer_check_alike(layer, error, 1);
}

/* x_static: a row for each sequence. */
static int check_static(const struct ls_layer *layer, int bottom, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0], *fixed = layer->bottom[bottom];
    const bool fits = fixed->shape.rank >= 1 && fixed->shape.dim[0] == x->shape.dim[1];
    const bool alike = x->sample_axis == 1 && fixed->sample_axis == 0 && fixed->rows == x->rows;
    if (!fits || (!alike && !ls_layer_mix(layer)))
        return ls_layer_fail_shape(
            layer, error, bottom, "be sequences x ..., with the samples of the batch along axis 0");
    return 0;
}

static int check_start(const struct ls_layer *layer, int bottom, struct ls_error *error)
{
    const struct ls_recurrent *state = layer->state;
    const struct ls_shape *shape = &layer->bottom[bottom]->shape;
    if (shape->rank != 3 || shape->dim[0] != 1 || shape->dim[1] != state->attr.rows ||
        shape->dim[2] != state->attr.hidden)
        return ls_layer_fail_shape(layer, error, bottom, "be 1 x sequences x num_output");
    if (layer->bottom[0]->sample_axis != 1) /* mixed anyway */
        return 0;
    return ls_layer_check_alike(layer, error, bottom);
}

/* How many bottoms and tops there must be depends on expose_hidden. */
static int check_counts(struct ls_layer *layer, bool exposed, struct ls_error *error)
{
    struct ls_recurrent *state = layer->state;
    const int hidden = exposed ? state->states : 0, least = 2 + hidden;
    if (layer->bottoms < least || layer->bottoms > least + 1)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             exposed
                                 ? "with expose_hidden it has %d or %d bottoms (x, cont, "
                                   "perhaps x_static, then the state), not %d"
                                 : "it has %d or %d bottoms (x, cont, perhaps x_static), not %d",
                             least, least + 1, layer->bottoms);
    if (layer->tops != 1 + hidden)
        return ls_layer_fail(layer, error, NULL, "top", NULL,
                             exposed ? "with expose_hidden it has %d tops, not %d"
                                     : "it has %d top (more with expose_hidden), not %d",
                             1 + hidden, layer->tops);
    state->fixed = layer->bottoms > least ? 2 : -1;
    state->first = exposed ? layer->bottoms - hidden : -1;
    return 0;
}

/* ---- Blobs ----------------------------------------------------------------------------------- */

/* A product of `rows` rows of `inputs` numbers, and its blobs behind those that there are. */
static int add_product(struct ls_layer *layer, struct ls_layer_product *product, const char *name,
                       const char *bias, int64_t rows, int64_t inputs, int64_t outputs,
                       struct ls_error *error)
{
    const Lockstep__RecurrentParameter *p = param_of(layer);
    const struct ls_shape weight = {.rank = 2, .dim = {outputs, inputs}};
    LS_TRY(ls_layer_check_shape(layer, error, name, &weight));
    *product = (struct ls_layer_product){.weight = layer->blobs,
                                         .bias = bias != NULL ? layer->blobs + 1 : -1,
                                         .attr = {.m = rows,
                                                  .k = inputs,
                                                  .n = outputs,
                                                  .bias = bias != NULL,
                                                  .portable = true,
                                                  .large = ls_product_is_large(inputs, outputs)}};
    layer->request[layer->blobs++] =
        (struct ls_blob_request){.name = name, .shape = weight, .filler = p->weight_filler};
    if (bias != NULL)
        layer->request[layer->blobs++] = (struct ls_blob_request){
            .name = bias, .shape = {.rank = 1, .dim = {outputs}}, .filler = p->bias_filler};
    return 0;
}

/* In Caffe's order. */
static int add_products(struct ls_layer *layer, const struct ls_recurrent_blobs *names,
                        struct ls_error *error)
{
    struct ls_recurrent *state = layer->state;
    const struct ls_recurrent_attr *attr = &state->attr;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const int64_t rows = attr->steps * attr->rows, hidden = attr->hidden;
    const int64_t outputs = ls_cell_parts(attr->cell) * hidden;
    LS_TRY(add_product(layer, &state->x, names->x, names->x_bias, rows,
                       ls_shape_count(x, 2, x->rank), outputs, error));
    if (state->fixed >= 0) {
        const struct ls_shape *fixed = &layer->bottom[state->fixed]->shape;
        LS_TRY(add_product(layer, &state->still, names->still, NULL, attr->rows,
                           ls_shape_count(fixed, 1, fixed->rank), outputs, error));
    }
    LS_TRY(add_product(layer, &state->h, names->h, names->h_bias, rows, hidden, outputs, error));
    if (names->o != NULL)
        LS_TRY(add_product(layer, &state->o, names->o, names->o_bias, rows, hidden, hidden, error));
    return 0;
}

int ls_recurrent_setup(struct ls_layer *layer, enum ls_cell cell,
                       const struct ls_recurrent_blobs *names, struct ls_error *error)
{
    struct ls_recurrent *state = layer->state;
    const Lockstep__RecurrentParameter *p = param_of(layer);
    state->states = cell == LS_CELL_LSTM ? 2 : 1;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (p->num_output == 0 || p->num_output > INT32_MAX / 4)
        return ls_layer_fail(layer, error, layer->definition->recurrent_param, "num_output", NULL,
                             p->has_num_output ? "num_output must be 1 to 536870911"
                                               : "num_output is missing");
    LS_TRY(check_counts(layer, p->expose_hidden, error));
    LS_TRY(check_sequences(layer, error));
    const struct ls_shape *x = &layer->bottom[0]->shape;
    state->attr = (struct ls_recurrent_attr){
        .cell = cell, .steps = x->dim[0], .rows = x->dim[1], .hidden = p->num_output};
    if (state->fixed >= 0)
        LS_TRY(check_static(layer, state->fixed, error));
    for (int i = 0; state->first >= 0 && i < state->states; i++)
        LS_TRY(check_start(layer, state->first + i, error));
    const struct ls_shape all = {
        .rank = 3,
        .dim = {x->dim[0], x->dim[1], 4 * (int64_t)p->num_output}}; /* the largest value */
    LS_TRY(ls_layer_check_shape(layer, error, "the values of its gates", &all));
    return add_products(layer, names, error);
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* A value of the layer, [steps, sequences, numbers] (steps 0: [sequences, numbers]). */
static struct ls_value *make_value(struct ls_layer *layer, const char *suffix, int64_t steps,
                                   int64_t numbers, const struct ls_value *like)
{
    const struct ls_recurrent *state = layer->state;
    struct ls_shape shape = {.rank = 3, .dim = {steps, state->attr.rows, numbers}};
    struct ls_text name = {0};
    struct ls_value *value = NULL;
    if (steps == 0)
        shape = (struct ls_shape){.rank = 2, .dim = {state->attr.rows, numbers}};
    ls_text_format(&name, "%s.%s", layer->name, suffix);
    if (name.failed)
        layer->graph->failed = true;
    else
        value = ls_graph_value(layer->graph, name.data, &shape, like);
    ls_text_free(&name);
    return value;
}

/* What there is in front of the first step. */
static void set_start(struct ls_layer *layer)
{
    static const char *const names[LS_RECURRENT_STATES] = {"hidden", "cell"};
    struct ls_recurrent *state = layer->state;
    const struct ls_shape shape = {.rank = 3, .dim = {1, state->attr.rows, state->attr.hidden}};
    for (int i = 0; i < state->states && i < LS_RECURRENT_STATES; i++)
        state->start[i] = state->first >= 0 ? layer->bottom[state->first + i]
                                            : ls_graph_recall(layer->graph, names[i], &shape,
                                                              LS_F32, layer->bottom[0]);
}

/* The values that the op writes: what the backward pass reads is there for training only. */
static void make_outputs(struct ls_layer *layer)
{
    static const char *const names[LS_RECURRENT_STATES] = {"hidden", "cell"};
    struct ls_recurrent *state = layer->state;
    const struct ls_value *x = layer->bottom[0];
    const int64_t steps = state->attr.steps, hidden = state->attr.hidden;
    const enum ls_cell cell = state->attr.cell;
    const struct ls_shape top = {.rank = 3, .dim = {steps, state->attr.rows, hidden}};
    const struct ls_shape last = {.rank = 3, .dim = {1, state->attr.rows, hidden}};
    state->hidden = cell == LS_CELL_RNN ? make_value(layer, "h", steps, hidden, x)
                                        : ls_layer_make_top(layer, 0, &top, x);
    if (layer->graph->training) {
        if (cell != LS_CELL_RNN)
            state->gates = make_value(layer, "gates", steps, 4 * hidden, x);
        state->before = make_value(layer, "before", steps, hidden, x);
        if (cell == LS_CELL_LSTM)
            state->c = make_value(layer, "c", steps, hidden, x);
    }
    for (int i = 0; i < state->states && i < LS_RECURRENT_STATES; i++)
        state->last[i] = state->first >= 0 ? ls_layer_make_top(layer, 1 + i, &last, x)
                                           : make_value(layer, names[i], 1, hidden, x);
}

static void emit_cells(struct ls_layer *layer)
{
    struct ls_recurrent *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *w = ls_graph_parameter(graph, layer, state->h.weight);
    struct ls_value *b =
        state->h.bias >= 0 ? ls_graph_parameter(graph, layer, state->h.bias) : NULL;
    struct ls_value *in[] = {state->z, layer->bottom[1], state->s,       w,
                             b,        state->start[0],  state->start[1]};
    struct ls_value *out[] = {state->hidden, state->gates,   state->before,
                              state->c,      state->last[0], state->last[1]};
    struct ls_op *op = ls_graph_op(graph, LS_OP_RECURRENT);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        ls_op_in(graph, op, in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ls_op_out(graph, op, out[i]);
    if (op != NULL)
        op->attr.recurrent = state->attr;
    if (op != NULL)
        op->attr.recurrent.bf16 = layer->bf16;
}

/* RNN: o = tanh(W_ho h + b_o). */
static void emit_output(struct ls_layer *layer)
{
    struct ls_recurrent *state = layer->state;
    struct ls_graph *graph = layer->graph;
    if (state->hidden == NULL)
        return;
    state->logit = make_value(layer, "o", state->attr.steps, state->attr.hidden, layer->bottom[0]);
    ls_layer_product_forward(layer, &state->o, state->hidden, state->logit);
    struct ls_value *o = ls_layer_make_top(layer, 0, &state->hidden->shape, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ACTIVATION);
    ls_op_in(graph, op, state->logit);
    ls_op_out(graph, op, o);
    if (op != NULL)
        op->attr.activation = (struct ls_activation_attr){.function = LS_TANH};
}

int ls_recurrent_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_recurrent *state = layer->state;
    struct ls_graph *graph = layer->graph;
    const int64_t outputs = ls_cell_parts(state->attr.cell) * state->attr.hidden;
    state->z = make_value(layer, "x", state->attr.steps, outputs, layer->bottom[0]);
    ls_layer_product_forward(layer, &state->x, layer->bottom[0], state->z);
    if (state->fixed >= 0) {
        struct ls_value *fixed = layer->bottom[state->fixed];
        state->s = make_value(layer, "static", 0, outputs, fixed);
        ls_layer_product_forward(layer, &state->still, fixed, state->s);
    }
    set_start(layer);
    make_outputs(layer);
    emit_cells(layer);
    for (int i = 0; state->first < 0 && i < state->states && !graph->failed; i++)
        ls_graph_keep(graph, state->start[i], state->last[i]);
    if (state->attr.cell == LS_CELL_RNN)
        emit_output(layer);
    return 0;
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* The gradient of h of all steps; NULL: none reaches it. */
static struct ls_value *hidden_gradient(struct ls_layer *layer)
{
    struct ls_recurrent *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]);
    if (state->attr.cell != LS_CELL_RNN || dy == NULL)
        return dy;
    struct ls_value *dlogit = ls_graph_gradient_value(graph, state->logit);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ACTIVATION_BACKWARD);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, layer->top[0]);
    ls_op_out(graph, op, dlogit);
    if (op != NULL)
        op->attr.activation = (struct ls_activation_attr){.function = LS_TANH};
    ls_layer_product_backward_weights(layer, &state->o, state->hidden, dlogit);
    ls_layer_product_backward_data(layer, &state->o, state->hidden, dlogit);
    return ls_graph_gradient(graph, state->hidden);
}

/* A gradient of bottom h0 or c0, where it is wanted. */
static struct ls_value *start_gradient(struct ls_layer *layer, int which)
{
    const struct ls_recurrent *state = layer->state;
    if (state->first < 0 || which >= state->states || !layer->propagate[state->first + which])
        return NULL;
    return ls_graph_gradient_value(layer->graph, state->start[which]);
}

/* What the op of the backward pass writes. */
struct gradients {
    struct ls_value *z, *h, *s, *start[LS_RECURRENT_STATES];
};

static void emit_backward(struct ls_layer *layer, struct ls_value *dh,
                          const struct gradients *gradients)
{
    const struct ls_recurrent *state = layer->state;
    struct ls_graph *graph = layer->graph;
    const bool rnn = state->attr.cell == LS_CELL_RNN, gru = state->attr.cell == LS_CELL_GRU;
    struct ls_value *in[] = {dh,
                             ls_graph_gradient(graph, state->last[0]),
                             ls_graph_gradient(graph, state->last[1]),
                             state->gates,
                             rnn ? state->hidden : NULL,
                             gru ? state->before : NULL,
                             state->c,
                             state->start[1],
                             layer->bottom[1],
                             ls_graph_parameter(graph, layer, state->h.weight)};
    struct ls_value *out[] = {gradients->z, gradients->h, gradients->s, gradients->start[0],
                              gradients->start[1]};
    struct ls_op *op = ls_graph_op(graph, LS_OP_RECURRENT_BACKWARD);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        ls_op_in(graph, op, in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ls_op_out(graph, op, out[i]);
    if (op != NULL)
        op->attr.recurrent = state->attr;
    if (op != NULL)
        op->attr.recurrent.bf16 = layer->bf16;
    for (int i = 0; i < state->states; i++)
        ls_graph_add_gradient(graph, state->start[i], gradients->start[i]);
}

int ls_recurrent_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_recurrent *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dh = hidden_gradient(layer);
    const int64_t outputs = ls_cell_parts(state->attr.cell) * state->attr.hidden;
    struct gradients gradients = {.z = ls_graph_gradient_value(graph, state->z),
                                  .s = ls_graph_gradient_value(graph, state->s),
                                  .start = {start_gradient(layer, 0), start_gradient(layer, 1)}};
    if (state->attr.cell == LS_CELL_GRU)
        gradients.h = make_value(layer, "grad(u)", state->attr.steps, outputs, layer->bottom[0]);
    if (graph->failed)
        return 0;
    emit_backward(layer, dh, &gradients);
    ls_layer_product_backward_weights(layer, &state->h, state->before,
                                      gradients.h != NULL ? gradients.h : gradients.z);
    ls_layer_product_backward_weights(layer, &state->x, layer->bottom[0], gradients.z);
    if (layer->propagate[0])
        ls_layer_product_backward_data(layer, &state->x, layer->bottom[0], gradients.z);
    if (state->fixed >= 0) {
        struct ls_value *fixed = layer->bottom[state->fixed];
        ls_layer_product_backward_weights(layer, &state->still, fixed, gradients.s);
        if (layer->propagate[state->fixed])
            ls_layer_product_backward_data(layer, &state->still, fixed, gradients.s);
    }
    return 0;
}

void ls_recurrent_cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_recurrent *state = layer->state;
    const bool back = ls_layer_trains_blob(layer, state->x.weight) ||
                      ls_layer_trains_blob(layer, state->h.weight) ||
                      ls_layer_has_gradient(layer, 0);
    ls_layer_product_cost(layer, &state->x, ls_layer_has_gradient(layer, 0), cost);
    ls_layer_product_cost(layer, &state->h, back, cost);
    if (state->fixed >= 0)
        ls_layer_product_cost(layer, &state->still, ls_layer_has_gradient(layer, state->fixed),
                              cost);
    if (state->attr.cell == LS_CELL_RNN)
        ls_layer_product_cost(layer, &state->o, back, cost);
}
