/* Measuring blobs and gradients. See graph/debug.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/debug.h"

#include "base/memory.h"
#include "ir/layer.h"

/* What is measured, by value. */
struct measure {
    struct ls_op *op;     /* NULL: it is not */
    struct ls_op *writer; /* the last one; NULL: it comes from outside, or is not there */
};

struct measuring {
    struct ls_graph *graph;
    struct measure *measures;
    size_t count; /* of the values that there were */
};

static void find_writers(struct measuring *measuring)
{
    const struct ls_graph *graph = measuring->graph;
    for (size_t i = 0; i < graph->op_count; i++)
        for (int o = 0; o < graph->ops[i]->outputs; o++)
            if (graph->ops[i]->output[o] != NULL)
                measuring->measures[graph->ops[i]->output[o]->index].writer = graph->ops[i];
}

static bool can_be_measured(const struct measuring *measuring, const struct ls_value *value)
{
    return value != NULL && (size_t)value->index < measuring->count &&
           (value->type == LS_F32 || value->type == LS_BF16) && value->shape.rank > 0 &&
           (value->storage == LS_STORE_INPUT ||
            (value->storage == LS_STORE_ARENA && measuring->measures[value->index].writer != NULL));
}

/* An op behind all others, to be put into its place later. */
static struct ls_op *emit(struct ls_graph *graph, struct ls_layer *layer, struct ls_value *value,
                          bool gradient)
{
    graph->emitting = layer;
    graph->backward = gradient;
    int offset = ls_graph_record(graph, 2);
    struct ls_op *op = ls_graph_op(graph, LS_OP_REDUCE_LOSS);
    ls_op_in(graph, op, value);
    if (op != NULL)
        op->attr.reduction = (struct ls_reduction_attr){
            .method = LS_REDUCE_ASUM, .coeff = 1, .normalizer = -1, .metric_offset = offset};
    graph->emitting = NULL;
    graph->backward = false;
    return op;
}

/* A blob that several layers have is measured once. */
static void measure(struct measuring *measuring, struct ls_layer *layer, struct ls_value *value,
                    int blob, bool gradient)
{
    struct ls_graph *graph = measuring->graph;
    if (!can_be_measured(measuring, value))
        return;
    struct measure *measure = &measuring->measures[value->index];
    if (measure->op == NULL)
        measure->op = emit(graph, layer, value, gradient);
    if (measure->op == NULL || !LS_GROW(graph->debug, graph->debug_count, graph->debug_capacity)) {
        graph->failed = true;
        return;
    }
    graph->debug[graph->debug_count++] =
        (struct ls_debug_figure){.layer = layer,
                                 .blob = blob,
                                 .gradient = gradient,
                                 .offset = measure->op->attr.reduction.metric_offset};
}

/* Puts each op behind the one that writes what it measures; `ops` has room for all. */
static void put_in_order(const struct measuring *measuring, size_t before, struct ls_op **ops)
{
    struct ls_graph *graph = measuring->graph;
    size_t count = 0;
    for (size_t v = 0; v < measuring->count; v++) /* what comes from outside */
        if (measuring->measures[v].op != NULL && measuring->measures[v].writer == NULL)
            ops[count++] = measuring->measures[v].op;
    for (size_t i = 0; i < before; i++) {
        struct ls_op *op = graph->ops[i];
        ops[count++] = op;
        for (int o = 0; o < op->outputs; o++) {
            const struct measure *measure =
                op->output[o] != NULL ? &measuring->measures[op->output[o]->index] : NULL;
            if (measure != NULL && measure->op != NULL && measure->writer == op)
                ops[count++] = measure->op;
        }
    }
    for (size_t i = 0; i < graph->op_count; i++)
        graph->ops[i] = ops[i];
}

void ls_graph_add_debug(struct ls_graph *graph)
{
    size_t before = graph->op_count;
    struct measuring measuring = {.graph = graph, .count = graph->value_count};
    measuring.measures = ls_alloc(graph->value_count + 1, sizeof *measuring.measures);
    if (measuring.measures == NULL) {
        graph->failed = true;
        return;
    }
    find_writers(&measuring);
    for (size_t i = 0; i < graph->layer_count; i++) {
        struct ls_layer *layer = graph->layers[i];
        for (int t = 0; t < layer->tops; t++)
            measure(&measuring, layer, layer->top[t], t, false);
    }
    for (size_t i = graph->layer_count; i-- > 0;) {
        struct ls_layer *layer = graph->layers[i];
        for (int b = 0; b < layer->bottoms; b++)
            if (layer->propagate[b])
                measure(&measuring, layer, ls_graph_gradient(graph, layer->bottom[b]), b, true);
    }
    struct ls_op **ops = ls_alloc(graph->op_count + 1, sizeof *ops);
    if (ops == NULL)
        graph->failed = true;
    else if (!graph->failed)
        put_in_order(&measuring, before, ops);
    ls_free(ops);
    ls_free(measuring.measures);
}
