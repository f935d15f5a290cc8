/* Batch norm takes in what follows it: a learned scale and bias for each channel (the layers Scale
 * and Bias), then a ReLU. In between nothing is stored or read.
 *
 * Forward and backward ops are rewritten together, or not at all. What stood between must have no
 * other reader. Of the backward ops
 *
 *   dz = relu'(dy, y);  dscale, dbias = sums(dz, a);  da = dz scale;  partials = SUMS(da, x);
 *   sync point;  dx = BACKWARD(da, x)
 *
 * two passes remain: dscale, dbias and partials = SUMS(dy, x); sync point; dx = BACKWARD(dy, x).
 * The sums stand where those of the scale stood, in front of what reads their results.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/rewrite.h"

/* Inputs of the ops, as ir/op.h has them. */
enum { NORM_X = 0, NORM_AVERAGES = 1, NORM_SCALE = 4, NORM_BIAS = 5 };
enum { GRAD_DY = 0, GRAD_X = 1, GRAD_Y = 2, GRAD_AVERAGES = 3, GRAD_SCALE = 6, GRAD_BIAS = 7 };

/* Of a kind and direction a layer has at most one op. */
static struct ls_op *find_op(const struct ls_links *links, enum ls_op_kind kind,
                             const struct ls_layer *layer, bool backward)
{
    return ls_links_of_layer(links, layer, kind, backward);
}

/* The forward op of a kind that reads `value` as its first input, or NULL. */
static struct ls_op *find_reader(const struct ls_links *links, enum ls_op_kind kind,
                                 const struct ls_value *value)
{
    struct ls_op *op = ls_links_reader(links, value, kind, false);
    return op != NULL && op->input[0] == value ? op : NULL;
}

/* For ops that may be absent. */
static void detach(struct ls_links *links, struct ls_op *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i] != NULL)
            ls_links_detach(links, ops[i]);
}

static void attach(struct ls_links *links, struct ls_op *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i] != NULL)
            ls_links_attach(links, ops[i]);
}

static bool is_parameter_or_absent(const struct ls_value *value)
{
    return value == NULL || value->storage == LS_STORE_PARAMETER;
}

/* Whether the only readers of gradient `dy` are the backward ops of a batch norm. */
static bool read_by(const struct ls_links *links, const struct ls_value *dy,
                    const struct ls_op *sums, const struct ls_op *data)
{
    int readers =
        (sums != NULL && sums->input[GRAD_DY] == dy) + (data != NULL && data->input[GRAD_DY] == dy);
    int all = (sums != NULL) + (data != NULL);
    return readers == all && ls_links_readers(links, dy) == all;
}

/* ---- Scale and bias -------------------------------------------------------------------------- */

/* The forward op that can be taken in, or NULL. */
static struct ls_op *find_scale(const struct ls_links *links, const struct ls_op *norm)
{
    const struct ls_value *between = norm->output[0];
    struct ls_op *scale = find_reader(links, LS_OP_SCALE, between);
    if (scale == NULL || norm->input[NORM_SCALE] != NULL || norm->input[NORM_BIAS] != NULL ||
        norm->attr.batch_norm.relu)
        return NULL;
    bool channels = scale->attr.scale.axis == 1 && scale->attr.scale.axes == 1;
    if (!channels || !is_parameter_or_absent(scale->input[1]) ||
        !is_parameter_or_absent(scale->input[2]))
        return NULL;
    const struct ls_op *sums = find_op(links, LS_OP_SCALE_SUMS, scale->layer, true);
    int readers = 1 + (sums != NULL && sums->input[1] == between);
    return ls_links_readers(links, between) == readers ? scale : NULL;
}

/* The sums for the scale become the sums of the batch norm, and those for its sync point, too. */
static void turn_sums(struct ls_links *links, struct ls_op *sums, const struct ls_op *norm,
                      const struct ls_op *old)
{
    while (sums->inputs < GRAD_SCALE && !links->graph->failed)
        ls_op_in(links->graph, sums, NULL);
    if (links->graph->failed)
        return;
    sums->kind = LS_OP_BATCH_NORM_SUMS;
    sums->layer = norm->layer;
    sums->input[GRAD_X] = norm->input[NORM_X];
    sums->input[GRAD_Y] = NULL;
    for (int i = 0; i < 3; i++)
        sums->input[GRAD_AVERAGES + i] = norm->input[NORM_AVERAGES + i];
    sums->attr.batch_norm = norm->attr.batch_norm;
    sums->attr.batch_norm.sums = old != NULL ? old->attr.batch_norm.sums : -1;
}

static void fuse_scale(struct ls_links *links, struct ls_op *norm)
{
    struct ls_op *scale = find_scale(links, norm);
    if (scale == NULL)
        return;
    struct ls_op *scale_sums = find_op(links, LS_OP_SCALE_SUMS, scale->layer, true);
    struct ls_op *scale_data = find_op(links, LS_OP_SCALE, scale->layer, true);
    struct ls_op *sums = find_op(links, LS_OP_BATCH_NORM_SUMS, norm->layer, true);
    struct ls_op *data = find_op(links, LS_OP_BATCH_NORM_BACKWARD, norm->layer, true);
    if (scale_data != NULL && !read_by(links, scale_data->output[0], sums, data))
        return;
    struct ls_op *changed[] = {norm, data, scale_sums == NULL ? sums : NULL, scale_sums};
    detach(links, changed, 4);
    if (scale_data != NULL && sums != NULL)
        sums->input[GRAD_DY] = scale_data->input[0];
    if (scale_data != NULL && data != NULL)
        data->input[GRAD_DY] = scale_data->input[0];
    if (data != NULL)
        data->input[GRAD_SCALE] = scale->input[1];
    if (scale_sums != NULL) {
        turn_sums(links, scale_sums, norm, sums);
        if (links->graph->failed)
            return;
        ls_links_remove(links, sums);
    }
    ls_links_remove(links, scale_data);
    norm->input[NORM_SCALE] = scale->input[1];
    norm->input[NORM_BIAS] = scale->input[2];
    norm->output[0] = scale->output[0];
    ls_links_remove(links, scale);
    attach(links, changed, 4);
}

/* ---- ReLU ------------------------------------------------------------------------------------ */

/* A backward op that saw the gradient behind the ReLU sees that in front of it, and y. */
static void see_through(struct ls_op *op, const struct ls_op *relu_backward,
                        const struct ls_op *norm)
{
    if (op == NULL)
        return;
    op->input[GRAD_DY] = relu_backward->input[0];
    op->input[GRAD_Y] = norm->output[0];
    op->attr.batch_norm.relu = true;
    op->attr.batch_norm.relu_slope = norm->attr.batch_norm.relu_slope;
}

static void fuse_relu(struct ls_links *links, struct ls_op *norm)
{
    const struct ls_value *between = norm->output[0];
    struct ls_op *relu = find_reader(links, LS_OP_ACTIVATION, between);
    if (relu == NULL || norm->attr.batch_norm.relu || relu->attr.activation.function != LS_RELU ||
        !(relu->attr.activation.slope >= 0) || ls_links_readers(links, between) != 1)
        return;
    struct ls_op *back = find_op(links, LS_OP_ACTIVATION_BACKWARD, relu->layer, true);
    struct ls_op *sums = find_op(links, LS_OP_BATCH_NORM_SUMS, norm->layer, true);
    struct ls_op *data = find_op(links, LS_OP_BATCH_NORM_BACKWARD, norm->layer, true);
    if (back == NULL ? sums != NULL || data != NULL : !read_by(links, back->output[0], sums, data))
        return;
    struct ls_op *changed[] = {norm, sums, data};
    detach(links, changed, 3);
    norm->attr.batch_norm.relu = true;
    norm->attr.batch_norm.relu_slope = relu->attr.activation.slope;
    norm->output[0] = relu->output[0];
    if (back != NULL) {
        see_through(sums, back, norm);
        see_through(data, back, norm);
        ls_links_remove(links, back);
    }
    ls_links_remove(links, relu);
    attach(links, changed, 3);
}

/* Whether y was positive is worked out again from x, which these ops read anyway: y is one stream
 * from memory less. By saved averages BACKWARD does not read x. */
static void forget_output(struct ls_links *links, const struct ls_op *norm, enum ls_op_kind kind)
{
    struct ls_op *op = find_op(links, kind, norm->layer, true);
    if (op == NULL || !op->attr.batch_norm.relu || op->attr.batch_norm.moments < 0)
        return;
    ls_links_detach(links, op);
    while (op->inputs <= GRAD_BIAS && !links->graph->failed)
        ls_op_in(links->graph, op, NULL);
    if (links->graph->failed)
        return;
    op->input[GRAD_Y] = NULL;
    op->input[GRAD_SCALE] = norm->input[NORM_SCALE];
    op->input[GRAD_BIAS] = norm->input[NORM_BIAS];
    ls_links_attach(links, op);
}

void ls_graph_fuse_batch_norm(struct ls_links *links)
{
    for (size_t i = 0; i < links->graph->op_count && !links->graph->failed; i++) {
        struct ls_op *norm = links->graph->ops[i];
        if (norm == NULL || norm->kind != LS_OP_BATCH_NORM)
            continue;
        fuse_scale(links, norm); /* removes ops behind this one only */
        if (!links->graph->failed)
            fuse_relu(links, norm);
        forget_output(links, norm, LS_OP_BATCH_NORM_SUMS);
        forget_output(links, norm, LS_OP_BATCH_NORM_BACKWARD);
    }
}
