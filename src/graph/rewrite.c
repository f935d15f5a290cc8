/* The list of rewrites; removal of ops without a reader; products of matrices that take in a ReLU.
 * See graph/rewrite.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/rewrite.h"

#include "graph/build.h"

/* Whether it is the gradient of data, which is shown to the caller (data_gradients). */
static bool is_shown(const struct ls_value *value)
{
    const struct ls_value *of = value->gradient_of;
    return of != NULL && of->storage == LS_STORE_INPUT && of->needs_grad;
}

void ls_graph_remove_dead(struct ls_links *links)
{
    for (size_t i = links->graph->op_count; i-- > 0;) {
        struct ls_op *op = links->graph->ops[i];
        if (op == NULL || ls_op_has_effect(op->kind) || !op->backward)
            continue; /* forward results can be asked for: outputs, predictions */
        bool read = false;
        for (int j = 0; j < op->outputs; j++)
            read |= op->output[j] != NULL &&
                    (ls_links_readers(links, op->output[j]) > 0 || is_shown(op->output[j]));
        if (!read)
            ls_links_remove(links, op);
    }
}

void ls_graph_merge_linear_loss(struct ls_links *links)
{
    for (size_t i = 0; i < links->graph->op_count; i++) {
        struct ls_op *op = links->graph->ops[i];
        if (op != NULL && op->kind == LS_OP_LINEAR_LOSS &&
            ls_links_of_layer(links, op->layer, LS_OP_LINEAR_LOSS_GRADIENT, true) != NULL)
            ls_links_remove(links, op);
    }
}

/* The op that writes `value` and could apply a ReLU to it on the way out. */
static struct ls_op *fusible_producer(const struct ls_links *links, const struct ls_value *value)
{
    struct ls_op *op = ls_links_producer(links, value);
    if (op == NULL || op->output[0] != value)
        return NULL;
    if (op->kind == LS_OP_CONVOLUTION || op->kind == LS_OP_INNER_PRODUCT)
        return op;
    /* The backend applies it together with the bias. */
    return op->kind == LS_OP_DECONVOLUTION && op->inputs > 2 && op->input[2] != NULL ? op : NULL;
}

/* Convolution, deconvolution with a bias, or inner product, then ReLU, becomes one op. The backward
 * pass of ReLU needs only y, so nothing else changes; with a slope below 0 it needs x, and the ReLU
 * stays. False where the op cannot have it. */
static bool take_in_relu(struct ls_op *producer, float slope)
{
    struct ls_convolution_attr *convolution = &producer->attr.convolution;
    struct ls_inner_product_attr *product = &producer->attr.inner_product;
    if (producer->kind == LS_OP_INNER_PRODUCT) {
        if (product->relu)
            return false;
        product->relu = true;
        product->relu_slope = slope;
        return true;
    }
    /* Winograd's kernels know no slope but 0. */
    if (convolution->relu || (convolution->algorithm == LS_CONVOLUTION_WINOGRAD && slope != 0))
        return false;
    convolution->relu = true;
    convolution->relu_slope = slope;
    return true;
}

void ls_graph_fuse_relu(struct ls_links *links)
{
    for (size_t i = 0; i < links->graph->op_count; i++) {
        struct ls_op *relu = links->graph->ops[i];
        if (relu == NULL || relu->kind != LS_OP_ACTIVATION ||
            relu->attr.activation.function != LS_RELU || relu->attr.activation.slope < 0 ||
            ls_links_readers(links, relu->input[0]) != 1)
            continue;
        struct ls_op *producer = fusible_producer(links, relu->input[0]);
        if (producer == NULL || !take_in_relu(producer, relu->attr.activation.slope))
            continue;
        struct ls_value *y = relu->output[0];
        ls_links_remove(links, relu);
        ls_links_detach(links, producer);
        producer->output[0] = y;
        ls_links_attach(links, producer);
    }
}

void ls_graph_rewrite(struct ls_graph *graph)
{
    static void (*const rewrites[])(struct ls_links *) = {
        ls_graph_remove_dead,     ls_graph_merge_linear_loss, ls_graph_fuse_softmax,
        ls_graph_fuse_batch_norm, ls_graph_fuse_relu,         ls_graph_move_relu,
        ls_graph_fuse_eltwise,
    };
    struct ls_links links;
    if (graph->failed || !ls_links_open(&links, graph))
        return;
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites && !graph->failed; i++)
        rewrites[i](&links);
    ls_links_close(&links);
}
