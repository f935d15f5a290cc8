/* Softmax, and the logarithmic loss behind it as a layer of its own (MultinomialLogisticLoss):
 *
 *   p = softmax(x);  LOG_LOSS(p, label)            becomes  p = SOFTMAX_LOSS(x, label), clamped
 *   dp = LOG_LOSS_BACKWARD(p, label);
 *   dx = SOFTMAX_BACKWARD(p, dp)                   becomes  dx = SOFTMAX_LOSS_BACKWARD(p, label)
 *
 * The loss has the same bits. The gradient has two roundings less: dp = -1 / p is not formed and
 * then multiplied by p. p stays for all who read it (an Accuracy, predictions). Where its gradient
 * has other parts, from another layer or a loss weight of its own, what goes into the softmax's
 * gradient is their sum and not dp, and both stay two.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/rewrite.h"

/* A label a row, as LOG_LOSS has it: all that is behind the axis of the rows are classes. */
static bool has_rows(const struct ls_value *x, int axis)
{
    return ls_shape_count(&x->shape, 0, axis) == x->shape.dim[0] &&
           ls_shape_count(&x->shape, axis + 1, x->shape.rank) == 1;
}

/* Of a softmax's op, or its gradient's, makes that of the loss. */
static void turn(struct ls_op *softmax, enum ls_op_kind kind, const struct ls_op *log)
{
    int axis = softmax->attr.axis;
    softmax->kind = kind;
    softmax->attr.loss = log->attr.loss;
    softmax->attr.loss.axis = axis;
    softmax->attr.loss.clamped = true;
}

/* The label must be there when the softmax is done. */
static bool is_before(const struct ls_links *links, const struct ls_value *label,
                      const struct ls_op *softmax)
{
    const struct ls_op *producer = ls_links_producer(links, label);
    return producer == NULL || producer->place < softmax->place;
}

/* A softmax with a mask stays one: the op with the loss has none. */
static bool is_masked(const struct ls_op *softmax)
{
    return softmax != NULL && softmax->kind == LS_OP_SOFTMAX && softmax->inputs > 1;
}

static void fuse_forward(struct ls_links *links, struct ls_op *log)
{
    struct ls_value *label = log->input[1];
    struct ls_op *softmax = ls_links_producer(links, log->input[0]);
    if (softmax == NULL || softmax->kind != LS_OP_SOFTMAX || is_masked(softmax) ||
        !log->input[0]->learned || !has_rows(softmax->input[0], softmax->attr.axis) ||
        !is_before(links, label, softmax))
        return;
    ls_links_detach(links, softmax);
    ls_op_in(links->graph, softmax, label);
    turn(softmax, LS_OP_SOFTMAX_LOSS, log);
    ls_links_remove(links, log);
    ls_links_attach(links, softmax);
}

static void fuse_backward(struct ls_links *links, struct ls_op *log)
{
    struct ls_value *p = log->input[0], *label = log->input[1], *dp = log->output[0];
    struct ls_op *softmax = ls_links_reader(links, dp, LS_OP_SOFTMAX_BACKWARD, true);
    if (softmax == NULL || ls_links_readers(links, dp) != 1 || softmax->input[0] != p ||
        softmax->input[1] != dp || !has_rows(p, softmax->attr.axis) ||
        is_masked(ls_links_producer(links, p)))
        return;
    ls_links_detach(links, softmax);
    softmax->input[1] = label;
    turn(softmax, LS_OP_SOFTMAX_LOSS_BACKWARD, log);
    ls_links_remove(links, log);
    ls_links_attach(links, softmax);
}

void ls_graph_fuse_softmax(struct ls_links *links)
{
    for (size_t i = 0; i < links->graph->op_count && !links->graph->failed; i++) {
        struct ls_op *op = links->graph->ops[i];
        if (op != NULL && op->kind == LS_OP_LOG_LOSS)
            fuse_forward(links, op);
        else if (op != NULL && op->kind == LS_OP_LOG_LOSS_BACKWARD)
            fuse_backward(links, op);
    }
}
