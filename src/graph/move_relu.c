/* Where a gradient goes back through a ReLU. What the ReLU made of its input is needed for that,
 * and would be kept from the forward pass to the backward pass for nothing else, where what follows
 * it says as much:
 *
 *   z = concat(relu(a), relu(b));   da = relu'(slice(dz), relu(a)), ...
 *                          becomes  da, db = slice(relu'(dz, z))
 *   z = max pooling(relu(a));       da = relu'(back(dz), relu(a))
 *                          becomes  da = back(relu'(dz, z))
 *   z = dropout(relu(a));           da = relu'(drop(dz), relu(a))
 *                          becomes  da = z > 0 ? dz / (1 - ratio) : 0
 *
 * z is what the layers behind read and keep. All of it has the same bits: a sum of what windows
 * send to one place is sent there whole, or not at all, because the largest number of each of them
 * is that place's. With a slope that holds for joins only. The ReLU's gradient is also one pass
 * over less memory (pooling), or none (dropout; and behind a join it meets the sum of gradients
 * that may take it in, graph/fuse_eltwise.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/rewrite.h"

/* The gradient of a ReLU that is the only reader of `dy`, or NULL; `y` is what the ReLU wrote. */
static struct ls_op *find_relu(const struct ls_links *links, const struct ls_value *dy,
                               const struct ls_value *y)
{
    if (dy == NULL || ls_links_readers(links, dy) != 1)
        return NULL;
    struct ls_op *relu = ls_links_reader(links, dy, LS_OP_ACTIVATION_BACKWARD, true);
    bool found = relu != NULL && relu->attr.activation.function == LS_RELU &&
                 relu->attr.activation.slope >= 0 && relu->input[0] == dy && relu->input[1] == y;
    return found ? relu : NULL;
}

/* ---- Joins ----------------------------------------------------------------------------------- */

/* The forward op of a kind that belongs to the layer of a backward op. */
static struct ls_op *find_forward(const struct ls_links *links, const struct ls_op *backward,
                                  enum ls_op_kind kind)
{
    return ls_links_of_layer(links, backward->layer, kind, false);
}

/* The gradients of ReLUs behind a slice's outputs; false, if one of them goes elsewhere. */
static bool find_relus(const struct ls_links *links, const struct ls_op *slice,
                       const struct ls_op *concat, int outputs,
                       struct ls_op *relus[LS_OP_VALUES_MAX])
{
    for (int i = 0; i < outputs; i++) {
        relus[i] = find_relu(links, slice->output[i], concat->input[i]);
        if (relus[i] == NULL || relus[i]->attr.activation.slope != relus[0]->attr.activation.slope)
            return false;
    }
    return outputs > 0;
}

/* The first of the ReLUs' gradients becomes that of z; it and the slice change places. */
static void move_before_slice(struct ls_links *links, struct ls_op *slice)
{
    struct ls_op *relus[LS_OP_VALUES_MAX], *concat = find_forward(links, slice, LS_OP_CONCAT);
    const int outputs = slice->outputs;
    if (concat == NULL || concat->inputs != outputs || concat->attr.axis != slice->attr.axis ||
        !find_relus(links, slice, concat, outputs, relus))
        return;
    struct ls_value *gated = ls_graph_gradient_value(links->graph, concat->output[0]);
    struct ls_op *first = relus[0];
    if (gated == NULL)
        return;
    for (int i = 1; i < outputs; i++)
        first = relus[i]->place < first->place ? relus[i] : first;
    ls_links_swap(links, slice, first);
    ls_links_detach(links, slice);
    ls_links_detach(links, first);
    struct ls_value *dz = slice->input[0];
    slice->input[0] = gated;
    for (int i = 0; i < outputs; i++)
        slice->output[i] = relus[i]->output[0];
    for (int i = 0; i < outputs; i++)
        if (relus[i] != first)
            ls_links_remove(links, relus[i]);
    first->input[0] = dz;
    first->input[1] = concat->output[0];
    first->output[0] = gated;
    ls_links_attach(links, first);
    ls_links_attach(links, slice);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

static void move_before_pooling(struct ls_links *links, struct ls_op *back)
{
    struct ls_op *pooling = find_forward(links, back, LS_OP_POOLING);
    if (pooling == NULL || back->attr.pooling.method != LS_POOL_MAX)
        return;
    struct ls_op *relu = find_relu(links, back->output[0], pooling->input[0]);
    if (relu == NULL || relu->attr.activation.slope != 0)
        return;
    struct ls_value *gated = ls_graph_gradient_value(links->graph, pooling->output[0]);
    if (gated == NULL)
        return;
    ls_links_swap(links, back, relu);
    ls_links_detach(links, back);
    ls_links_detach(links, relu);
    relu->input[0] = back->input[0];
    relu->input[1] = pooling->output[0];
    back->input[0] = gated;
    back->output[0] = relu->output[0];
    relu->output[0] = gated;
    ls_links_attach(links, relu);
    ls_links_attach(links, back);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

static void join_dropout(struct ls_links *links, struct ls_op *back)
{
    struct ls_op *dropout = find_forward(links, back, LS_OP_DROPOUT);
    if (dropout == NULL || back->inputs > 1)
        return;
    struct ls_op *relu = find_relu(links, back->output[0], dropout->input[0]);
    if (relu == NULL || relu->attr.activation.slope != 0)
        return;
    ls_links_detach(links, back);
    ls_op_in(links->graph, back, dropout->output[0]);
    back->output[0] = relu->output[0];
    ls_links_remove(links, relu);
    ls_links_attach(links, back);
}

/* From the last op to the first: a ReLU that has moved may move again. */
void ls_graph_move_relu(struct ls_links *links)
{
    for (size_t i = links->graph->op_count; i-- > 0 && !links->graph->failed;) {
        struct ls_op *op = links->graph->ops[i];
        if (op == NULL || !op->backward)
            continue;
        if (op->kind == LS_OP_SLICE)
            move_before_slice(links, op);
        else if (op->kind == LS_OP_POOLING_BACKWARD)
            move_before_pooling(links, op);
        else if (op->kind == LS_OP_DROPOUT)
            join_dropout(links, op);
    }
}
