/* Rewrites of a graph that keep the numerical contract: each is one small function.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "graph/build.h"

void ls_graph_delete_op(struct ls_graph *graph, size_t index)
{
    struct ls_op *op = graph->ops[index];
    ls_free(op->input);
    ls_free(op->output);
    ls_free(op);
    for (size_t i = index; i + 1 < graph->op_count; i++)
        graph->ops[i] = graph->ops[i + 1];
    graph->op_count--;
}

int ls_graph_count_readers(const struct ls_graph *graph, const struct ls_value *value)
{
    int readers = 0;
    for (size_t i = 0; i < graph->op_count; i++)
        for (int j = 0; j < graph->ops[i]->inputs; j++)
            readers += graph->ops[i]->input[j] == value;
    return readers;
}

/* The op that writes `value` and could apply a ReLU to it on the way out. */
static struct ls_op *fusible_producer(const struct ls_graph *graph, const struct ls_value *value)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        struct ls_op *op = graph->ops[i];
        bool kind = op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_INNER_PRODUCT;
        /* The backend applies it together with the bias. */
        bool transposed = op->kind == LS_OP_DECONVOLUTION && op->inputs > 2 && op->input[2] != NULL;
        if ((kind || transposed) && op->output[0] == value)
            return op;
    }
    return NULL;
}

/* Convolution, deconvolution with a bias, or inner product, then ReLU, becomes one op. The backward
 * pass of ReLU needs only y, so nothing else changes; with a negative slope below zero it needs x,
 * and stays. */
void ls_graph_fuse_relu(struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        struct ls_op *relu = graph->ops[i];
        if (relu->kind != LS_OP_ACTIVATION || relu->attr.activation.function != LS_RELU ||
            relu->attr.activation.slope < 0 || ls_graph_count_readers(graph, relu->input[0]) != 1)
            continue;
        struct ls_op *producer = fusible_producer(graph, relu->input[0]);
        if (producer == NULL)
            continue;
        if (producer->kind != LS_OP_INNER_PRODUCT) {
            /* Winograd's kernels know no slope but 0. */
            if (producer->attr.convolution.relu ||
                (producer->attr.convolution.algorithm == LS_CONVOLUTION_WINOGRAD &&
                 relu->attr.activation.slope != 0))
                continue;
            producer->attr.convolution.relu = true;
            producer->attr.convolution.relu_slope = relu->attr.activation.slope;
        } else {
            if (producer->attr.inner_product.relu)
                continue;
            producer->attr.inner_product.relu = true;
            producer->attr.inner_product.relu_slope = relu->attr.activation.slope;
        }
        producer->output[0] = relu->output[0];
        ls_graph_delete_op(graph, i--);
    }
}

void ls_graph_remove_dead(struct ls_graph *graph)
{
    for (size_t i = graph->op_count; i-- > 0;) {
        struct ls_op *op = graph->ops[i];
        if (ls_op_has_effect(op->kind) || !op->backward)
            continue; /* forward results can be asked for: outputs, predictions */
        bool read = false;
        for (int j = 0; j < op->outputs; j++)
            read |= op->output[j] != NULL && ls_graph_count_readers(graph, op->output[j]) > 0;
        if (!read)
            ls_graph_delete_op(graph, i);
    }
}
