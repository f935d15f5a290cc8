/* The backward pass: layers in reverse order, each given the gradients of its tops.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "graph/build.h"
#include "ir/filter.h"

/* The gradient of a value that is a loss by itself: its weight, in every row that is there. */
static void start_from_loss_weight(struct ls_graph *graph, struct ls_layer *layer, int top)
{
    struct ls_value *value = layer->top[top];
    struct ls_value *gradient = ls_graph_gradient_value(graph, value);
    struct ls_op *op = ls_graph_op(graph, LS_OP_SUM_LOSS_BACKWARD);
    ls_op_out(graph, op, gradient);
    if (op != NULL)
        op->attr.loss.loss_weight = layer->loss_weight[top];
    ls_graph_add_gradient(graph, value, ls_filter_fill_gradient(graph, value, gradient));
}

/* Whether a loss reaches one of the layer's tops, so that it has a backward pass at all. */
static bool loss_reaches(struct ls_graph *graph, const struct ls_layer *layer)
{
    if (ls_layer_is_loss(layer))
        return true;
    for (int i = 0; i < layer->tops; i++)
        if (ls_graph_gradient(graph, layer->top[i]) != NULL)
            return true;
    return false;
}

/* Decides which of the layer's gradients are wanted; false: none. */
static bool choose_targets(struct ls_layer *layer)
{
    bool any = false;
    for (int i = 0; i < layer->bottoms; i++) {
        bool stopped = layer->definition->n_propagate_down > (size_t)i &&
                       !layer->definition->propagate_down[i];
        layer->propagate[i] = layer->bottom[i]->needs_grad && !stopped;
        any |= layer->propagate[i];
    }
    for (int i = 0; i < layer->blobs; i++) {
        layer->train_blob[i] = layer->blob[i]->lr_mult != 0;
        any |= layer->train_blob[i];
    }
    return any;
}

/* A micro-batch contributes once to each parameter whose gradient is exchanged as these factors. */
static void count_factors(const struct ls_record_attr *record)
{
    const struct ls_factoring *factoring = &record->parameter->factoring;
    if (record->side != LS_FACTOR_OUTPUT)
        return;
    factoring->weight->uses++;
    if (factoring->bias != NULL)
        factoring->bias->uses++;
}

/* How many contributions one micro-batch makes to each parameter; none: no loss reaches it. */
static void count_uses(struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->parameters->count; i++)
        graph->parameters->items[i]->uses = 0;
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->kind == LS_OP_ACCUMULATE)
            graph->ops[i]->attr.parameter->uses++;
        else if (graph->ops[i]->kind == LS_OP_RECORD)
            count_factors(&graph->ops[i]->attr.record);
    for (size_t i = 0; i < graph->parameters->count; i++)
        graph->parameters->items[i]->trained = graph->parameters->items[i]->uses > 0;
}

int ls_graph_build_backward(struct ls_graph *graph, struct ls_error *error)
{
    graph->backward = true;
    for (size_t i = graph->layer_count; i-- > 0;) {
        struct ls_layer *layer = graph->layers[i];
        graph->emitting = layer;
        for (int t = 0; t < layer->tops; t++)
            if (layer->loss_weight[t] != 0 && layer->top[t]->storage != LS_STORE_NONE &&
                layer->top[t]->needs_grad)
                start_from_loss_weight(graph, layer, t);
        if (layer->type->backward == NULL || !loss_reaches(graph, layer) || !choose_targets(layer))
            continue;
        LS_TRY(layer->type->backward(layer, error));
        if (graph->failed)
            return ls_fail_memory(error, "the backward pass");
    }
    graph->emitting = NULL;
    graph->backward = false;
    count_uses(graph);
    return 0;
}
