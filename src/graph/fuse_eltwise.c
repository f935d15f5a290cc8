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
#include "graph/rewrite.h"

static bool is_relu(const struct ls_op *op, enum ls_op_kind kind)
{
    return op->kind == kind && op->attr.activation.function == LS_RELU &&
           op->attr.activation.slope >= 0;
}

/* The op of a direction that writes `value` for one reader, and can take in something. */
static struct ls_op *find_producer(const struct ls_links *links, const struct ls_value *value,
                                   bool backward)
{
    struct ls_op *op = ls_links_producer(links, value);
    if (op == NULL || op->kind != LS_OP_ELTWISE || op->backward != backward)
        return NULL;
    bool taken = op->attr.eltwise.relu || op->attr.eltwise.gated;
    return !taken && ls_links_readers(links, value) == 1 ? op : NULL;
}

static void take_in(struct ls_links *links, struct ls_op *relu)
{
    struct ls_op *producer = find_producer(links, relu->input[0], false);
    if (producer == NULL)
        return;
    ls_links_detach(links, producer);
    producer->attr.eltwise.relu = true;
    producer->attr.eltwise.relu_slope = relu->attr.activation.slope;
    producer->output[0] = relu->output[0];
    ls_links_remove(links, relu);
    ls_links_attach(links, producer);
}

static void take_in_gradient(struct ls_links *links, struct ls_op *relu)
{
    struct ls_op *producer = find_producer(links, relu->input[0], true);
    if (producer == NULL || producer->inputs >= LS_OP_VALUES_MAX)
        return;
    ls_links_detach(links, producer);
    ls_op_in(links->graph, producer, relu->input[1]);
    if (!links->graph->failed) {
        producer->attr.eltwise.gated = true;
        producer->attr.eltwise.relu_slope = relu->attr.activation.slope;
        producer->output[0] = relu->output[0];
        ls_links_remove(links, relu);
    }
    ls_links_attach(links, producer);
}

void ls_graph_fuse_eltwise(struct ls_links *links)
{
    for (size_t i = 0; i < links->graph->op_count && !links->graph->failed; i++) {
        struct ls_op *op = links->graph->ops[i];
        if (op != NULL && is_relu(op, LS_OP_ACTIVATION) && !op->backward)
            take_in(links, op);
        else if (op != NULL && is_relu(op, LS_OP_ACTIVATION_BACKWARD))
            take_in_gradient(links, op);
    }
}
