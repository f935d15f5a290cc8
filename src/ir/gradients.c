/* Building graphs: gradients and what becomes of them. See ir/graph.h.
 *
 * The layers build the backward pass themselves, in reverse order; this file tracks gradients and
 * fan-out: which value has which gradient, and the sum of the contributions of several readers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ir/graph.h"
#include "ir/layer.h"

/* The slot for the gradient of `value`, or NULL after a failed allocation. */
static struct ls_value **gradient_slot(struct ls_graph *graph, const struct ls_value *value)
{
    while (graph->gradient_capacity <= (size_t)value->index) {
        size_t old = graph->gradient_capacity;
        size_t wanted = graph->value_count * 2 + 64;
        struct ls_value **longer = ls_resize(graph->gradients, wanted, sizeof *longer);
        if (longer == NULL) {
            graph->failed = true;
            return NULL;
        }
        memset(longer + old, 0, (wanted - old) * sizeof *longer);
        graph->gradients = longer;
        graph->gradient_capacity = wanted;
    }
    return &graph->gradients[value->index];
}

struct ls_value *ls_graph_gradient(struct ls_graph *graph, const struct ls_value *value)
{
    if (value == NULL || (size_t)value->index >= graph->gradient_capacity)
        return NULL;
    return graph->gradients[value->index];
}

static struct ls_value *gradient_named(struct ls_graph *graph, const char *name,
                                       const struct ls_shape *shape, const struct ls_value *like)
{
    struct ls_text text = {0};
    ls_text_format(&text, "grad(%s)", name);
    struct ls_value *gradient = NULL;
    if (text.failed)
        graph->failed = true;
    else
        gradient = ls_graph_value(graph, text.data, shape, like);
    ls_text_free(&text);
    return gradient;
}

struct ls_value *ls_graph_gradient_value(struct ls_graph *graph, const struct ls_value *value)
{
    if (value == NULL)
        return NULL;
    struct ls_value *gradient = gradient_named(graph, value->name, &value->shape, value);
    if (gradient != NULL) {
        gradient->gradient_of = value;
        gradient->type = value->type;
    }
    return gradient;
}

void ls_graph_add_gradient(struct ls_graph *graph, struct ls_value *value,
                           struct ls_value *gradient)
{
    if (value == NULL || gradient == NULL)
        return;
    struct ls_value **slot = gradient_slot(graph, value);
    if (slot == NULL)
        return;
    if (*slot == NULL) {
        *slot = gradient;
        return;
    }
    struct ls_value *sum = ls_graph_gradient_value(graph, value);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ELTWISE);
    ls_op_in(graph, op, *slot);
    ls_op_in(graph, op, gradient);
    ls_op_out(graph, op, sum);
    if (op != NULL)
        op->attr.eltwise.method = LS_ELTWISE_SUM;
    *slot = sum;
}

struct ls_value *ls_graph_parameter_gradient(struct ls_graph *graph, struct ls_layer *layer,
                                             int index)
{
    if (layer->blob[index] == NULL)
        return NULL;
    return gradient_named(graph, layer->blob[index]->name, &layer->request[index].shape, NULL);
}

void ls_graph_accumulate(struct ls_graph *graph, struct ls_layer *layer, int index,
                         struct ls_value *gradient)
{
    if (gradient == NULL)
        return;
    struct ls_op *op = ls_graph_op(graph, LS_OP_ACCUMULATE);
    ls_op_in(graph, op, gradient);
    if (op != NULL)
        op->attr.parameter = layer->blob[index];
}

void ls_graph_accumulate_rows(struct ls_graph *graph, struct ls_layer *layer, int index,
                              struct ls_value *rows, struct ls_value *number)
{
    struct ls_op *op = ls_graph_op(graph, LS_OP_ACCUMULATE);
    ls_op_in(graph, op, rows);
    ls_op_in(graph, op, number);
    if (op != NULL)
        op->attr.parameter = layer->blob[index];
}

void ls_graph_factors(struct ls_graph *graph, const struct ls_factoring *factoring, int64_t rows,
                      struct ls_value *x, struct ls_value *dy)
{
    struct ls_value *factor[LS_FACTOR_SIDES] = {x, dy};
    factoring->weight->factoring = *factoring;
    if (factoring->bias != NULL)
        factoring->bias->factoring = *factoring;
    for (int side = 0; side < LS_FACTOR_SIDES; side++) {
        struct ls_op *op = ls_graph_op(graph, LS_OP_RECORD);
        ls_op_in(graph, op, factor[side]);
        if (op != NULL)
            op->attr.record = (struct ls_record_attr){.parameter = factoring->weight,
                                                      .side = (enum ls_factor_side)side,
                                                      .rows = rows,
                                                      .columns = factoring->size[side]};
    }
}
