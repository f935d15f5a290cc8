/* Sums, products and maxima take in the ReLU behind them, as residual networks have it; and sums of
 * gradients that of the ReLU which they go back through:
 *
 *   s = a + b;  y = relu(s)              becomes  y = relu(a + b)
 *   ds = dy_1 + dy_2;  dx = relu'(ds, y)  becomes  dx = relu'(dy_1 + dy_2, y)
 *
 * The same numbers, and a pass over memory less. With a slope below zero the gradient of a ReLU
 * needs what stood between, and all stays as it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/build.h"

static bool is_relu(const struct ls_op *op, enum ls_op_kind kind)
{
    return op->kind == kind && op->attr.activation.function == LS_RELU &&
           op->attr.activation.slope >= 0;
}

/* The op of a kind and direction that writes `value` for one reader, and can take in something. */
static struct ls_op *find_producer(const struct ls_graph *graph, const struct ls_value *value,
                                   bool backward)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        struct ls_op *op = graph->ops[i];
        if (op->kind == LS_OP_ELTWISE && op->backward == backward && op->output[0] == value)
            return !op->attr.eltwise.relu && !op->attr.eltwise.gated &&
                           ls_graph_count_readers(graph, value) == 1
                       ? op
                       : NULL;
    }
    return NULL;
}

static bool take_in(const struct ls_graph *graph, const struct ls_op *relu)
{
    struct ls_op *producer = find_producer(graph, relu->input[0], false);
    if (producer == NULL)
        return false;
    producer->attr.eltwise.relu = true;
    producer->attr.eltwise.relu_slope = relu->attr.activation.slope;
    producer->output[0] = relu->output[0];
    return true;
}

static bool take_in_gradient(struct ls_graph *graph, const struct ls_op *relu)
{
    struct ls_op *producer = find_producer(graph, relu->input[0], true);
    if (producer == NULL || producer->inputs >= LS_OP_VALUES_MAX)
        return false;
    ls_op_in(graph, producer, relu->input[1]);
    if (graph->failed)
        return false;
    producer->attr.eltwise.gated = true;
    producer->attr.eltwise.relu_slope = relu->attr.activation.slope;
    producer->output[0] = relu->output[0];
    return true;
}

void ls_graph_fuse_eltwise(struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->op_count && !graph->failed; i++) {
        const struct ls_op *op = graph->ops[i];
        if ((is_relu(op, LS_OP_ACTIVATION) && !op->backward && take_in(graph, op)) ||
            (is_relu(op, LS_OP_ACTIVATION_BACKWARD) && take_in_gradient(graph, op)))
            ls_graph_delete_op(graph, i--);
    }
}
