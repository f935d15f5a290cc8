/* SoftmaxWithLoss: softmax along an axis, and the mean of the negative logarithm of what it gives
 * to the true class:
 *
 *   p = softmax(x);  loss = sum over positions of -log max(p[label], FLT_MIN) / divisor
 *
 * or, with loss_param.label_smoothing s and class_weight w (Lockstep's own; 0 and 1 if not given),
 *
 *   loss = sum over positions of -sum_k w[k] q[k] log max(p[k], FLT_MIN) / divisor,
 *   q[k] = (1 - s) [k = label] + s / C
 *
 * as Szegedy et al., Rethinking the Inception Architecture (2016), section 7, and PyTorch have it.
 * x [N, ..., C, ...] with the C classes along softmax_param.axis (default 1); the label has a
 * number 0 .. C-1 for each position of the other axes, in their order; samples may lie along any
 * axis in front of the classes. Positions whose label is
 * loss_param.ignore_label count nowhere. Divisor: see layers/loss.h; VALID is the default. An
 * optional second top is p; a third one, R-FCN's, has the terms of the sum, in the shape of the
 * labels, and no gradient goes back from it. SoftmaxWithLossOHEM is R-FCN's other name.
 *
 * The gradient of a loss that is computed from the second top flows back, too; Caffe drops it
 * silently.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"

struct softmax_loss {
    struct ls_loss loss;
    struct ls_value *prob;
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct softmax_loss *state = layer->state;
    struct ls_loss *loss = &state->loss;
    const Lockstep__SoftmaxParameter *param = layer->definition->softmax_param;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, "loss_param"));
    int axis =
        ls_layer_axis(layer, error, param, "axis", param != NULL ? param->axis : 1, x, false);
    LS_TRY(axis < 0 ? LOCKSTEP_DEFINITION : 0);
    LS_TRY(ls_loss_check_bottoms(layer, error));
    const struct ls_loss_rules rules = {
        .missing = LS_NORM_VALID, .classes = x->shape.dim[axis], .smoothing = true};
    LS_TRY(ls_loss_read(layer, &rules, loss, error));
    loss->attr.axis = axis;
    int64_t outer = ls_shape_count(&x->shape, 0, axis) / ls_value_sample_rows(x) * x->rows;
    int64_t inner = ls_shape_count(&x->shape, axis + 1, x->shape.rank);
    ls_loss_set_positions(loss, outer, inner);
    return ls_layer_check_positions(layer, error, axis);
}

/* Emits the terms of the sum. */
static void emit_each(struct ls_layer *layer)
{
    const struct softmax_loss *state = layer->state;
    struct ls_value *label = layer->bottom[1];
    struct ls_value *each = ls_layer_make_top(layer, 2, &label->shape, label);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_SOFTMAX_EACH);
    ls_op_in(layer->graph, op, state->prob);
    ls_op_in(layer->graph, op, state->loss.in[1]);
    ls_op_out(layer->graph, op, each);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct softmax_loss *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    (void)error;
    ls_loss_begin(layer, &state->loss);
    state->prob = layer->tops > 1 ? ls_layer_make_top(layer, 1, &x->shape, x)
                                  : ls_layer_make_side(layer, "prob", x);
    struct ls_op *op = ls_graph_op(graph, LS_OP_SOFTMAX_LOSS);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, state->loss.in[1]);
    ls_op_out(graph, op, state->prob);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
    if (layer->tops > 2)
        emit_each(layer);
    return 0;
}

/* The gradient through the second top. */
static void backward_prob(struct ls_layer *layer, struct ls_value *dprob)
{
    const struct softmax_loss *state = layer->state;
    struct ls_value *inputs[] = {state->prob, dprob};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_SOFTMAX_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.axis = state->loss.attr.axis;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct softmax_loss *state = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    LS_TRY(ls_loss_check_each(layer, error, 2));
    if (!layer->propagate[0])
        return 0;
    if (layer->loss_weight[0] != 0)
        ls_loss_emit_backward(layer, &state->loss, LS_OP_SOFTMAX_LOSS_BACKWARD, state->prob,
                              state->loss.in[1], 0);
    struct ls_value *dprob =
        layer->tops > 1 ? ls_graph_gradient(layer->graph, layer->top[1]) : NULL;
    if (dprob != NULL)
        backward_prob(layer, dprob);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 5, 2, 0);
    cost->forward_bytes += ls_layer_bytes(layer->bottom[1]);
    if (ls_layer_has_gradient(layer, 0))
        cost->backward_bytes += ls_layer_bytes(layer->bottom[1]);
}

const struct ls_layer_type ls_layer_softmax_loss = {
    .type = "SoftmaxWithLoss",
    .parameter = "softmax_param",
    .state_size = sizeof(struct softmax_loss),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 3,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
