/* Layers with state per sample. See state_layers.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/state_layers.h"

#include <string.h>

#include "layers/common.h"

/* ---- What they share ------------------------------------------------------------------------- */

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    return ls_layer_begin(layer, error, NULL);
}

/* Emits x + s. */
static struct ls_value *emit_sum(struct ls_layer *layer, struct ls_value *s)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    struct ls_value *y = ls_layer_make_top(layer, 0, &x->shape, x);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ELTWISE);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, s);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.eltwise.method = LS_ELTWISE_SUM;
    return y;
}

/* The gradient goes to this window's x, and no further back. */
static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    if (layer->propagate[0])
        ls_graph_add_gradient(layer->graph, layer->bottom[0],
                              ls_graph_gradient(layer->graph, layer->top[0]));
    return 0;
}

/* Of what only hands its bottom on. */
static int no_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)layer;
    (void)error;
    return 0;
}

/* ---- The types ------------------------------------------------------------------------------- */

static int sum_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    struct ls_value *s = ls_graph_recall(layer->graph, "sum", &x->shape, LS_F32, x);
    ls_graph_keep(layer->graph, s, emit_sum(layer, s));
    return 0;
}

static int unpool_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    struct ls_shape half = x->shape;
    half.dim[2] /= 2;
    half.dim[3] /= 2;
    struct ls_value *y = ls_graph_value(graph, layer->name, &half, x);
    struct ls_value *place = ls_graph_value(graph, layer->name, &half, x);
    struct ls_value *before = ls_graph_recall(graph, "place", &half, LS_I32, x);
    const struct ls_pooling_attr attr = {.method = LS_POOL_MAX,
                                         .window = {2, {2, 2, 1}, {2, 2, 1}, {0, 0, 0}, {1, 1, 1}}};
    struct ls_op *pool = ls_graph_op(graph, LS_OP_POOLING);
    if (graph->failed)
        return 0;
    place->type = LS_I32;
    ls_op_in(graph, pool, x);
    ls_op_out(graph, pool, y);
    ls_op_out(graph, pool, place);
    pool->attr.pooling = attr;
    struct ls_op *back = ls_graph_op(graph, LS_OP_POOLING_BACKWARD);
    if (graph->failed)
        return 0;
    ls_op_in(graph, back, y);
    ls_op_in(graph, back, before);
    ls_op_out(graph, back, ls_layer_make_top(layer, 0, &x->shape, x));
    back->attr.pooling = attr;
    ls_graph_keep(graph, before, place);
    return 0;
}

static int idle_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    struct ls_shape bytes = {2, {x->shape.dim[0], 3}};
    struct ls_value *s = ls_graph_recall(layer->graph, "bytes", &bytes, LS_U8, x);
    ls_graph_keep(layer->graph, s, s);
    ls_layer_pass(layer, 0, 0);
    return 0;
}

static int never_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    emit_sum(layer, ls_graph_recall(layer->graph, "sum", &x->shape, LS_F32, x));
    return 0;
}

static int twice_forward(struct ls_layer *layer, struct ls_error *error)
{
    LS_TRY(sum_forward(layer, error));
    struct ls_graph *graph = layer->graph;
    ls_graph_keep(graph, graph->sample_states[graph->sample_state_count - 1].value, layer->top[0]);
    return 0;
}

static int otherwise_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    struct ls_value *s = ls_graph_recall(layer->graph, "sum", &x->shape, LS_I32, x);
    ls_layer_pass(layer, 0, 0);
    ls_graph_keep(layer->graph, s, x);
    return 0;
}

static int unknown_forward(struct ls_layer *layer, struct ls_error *error)
{
    LS_TRY(sum_forward(layer, error));
    ls_graph_keep(layer->graph, layer->bottom[0], layer->top[0]);
    return 0;
}

static int no_samples_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    struct ls_value *s = ls_graph_recall(layer->graph, "sum", &x->shape, LS_F32, NULL);
    emit_sum(layer, s);
    ls_graph_keep(layer->graph, s, s);
    return 0;
}

#define STATE_LAYER(name, emit, back)                                                              \
    {                                                                                              \
        .type = (name), .bottoms_min = 1, .bottoms_max = 1, .tops_min = 1, .tops_max = 1,          \
        .setup = setup, .forward = (emit), .backward = (back)                                      \
    }

static const struct ls_layer_type types[] = {STATE_LAYER("RunningSum", sum_forward, backward),
                                             STATE_LAYER("Unpool", unpool_forward, NULL),
                                             STATE_LAYER("Idle", idle_forward, no_backward),
                                             STATE_LAYER("KeptNever", never_forward, NULL),
                                             STATE_LAYER("KeptTwice", twice_forward, NULL),
                                             STATE_LAYER("KeptOtherwise", otherwise_forward, NULL),
                                             STATE_LAYER("KeptUnknown", unknown_forward, NULL),
                                             STATE_LAYER("NoSamples", no_samples_forward, NULL)};

static bool used;

void use_state_layers(void)
{
    used = true;
}

const struct ls_layer_type *__real_ls_layer_type_find(const char *name);
const struct ls_layer_type *__wrap_ls_layer_type_find(const char *name);

const struct ls_layer_type *__wrap_ls_layer_type_find(const char *name)
{
    for (size_t i = 0; used && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].type, name) == 0)
            return &types[i];
    return __real_ls_layer_type_find(name);
}
