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
 * With softmax_param.metric (Lockstep's own) the tops behind the loss are the figures of
 * layers/loss_metrics.h instead, of the p of the loss; BITS_PER_BYTE reads a third bottom.
 *
 * The gradient of a loss that is computed from the second top flows back, too; Caffe drops it
 * silently.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"
#include "layers/loss_metrics.h"

enum { PLAIN_TOPS = 3 }; /* where no metric is asked for */

struct softmax_loss {
    struct ls_loss loss;
    struct ls_value *prob;
};

static struct ls_loss_metrics metrics_of(const struct ls_layer *layer)
{
    const Lockstep__SoftmaxParameter *param = layer->definition->softmax_param;
    return (struct ls_loss_metrics){.message = param,
                                    .metric = param != NULL ? param->metric : NULL,
                                    .count = param != NULL ? param->n_metric : 0,
                                    .other_tops = true};
}

/* The sum of the loss is that of -log p; there is a number of bytes for each label. */
static int check_metrics(const struct ls_layer *layer, const struct ls_loss_metrics *metrics,
                         struct ls_error *error)
{
    const struct ls_loss_attr *attr = &((const struct softmax_loss *)layer->state)->loss.attr;
    LS_TRY(ls_loss_check_metrics(layer, metrics, error));
    if (metrics->count == 0 && layer->tops > PLAIN_TOPS)
        return ls_layer_fail(layer, error, NULL, "top", NULL,
                             "it has %d tops; without softmax_param.metric there are the loss, the "
                             "probabilities and the losses of positions",
                             layer->tops);
    if (metrics->count > 0 && (attr->smoothing > 0 || attr->class_weight != NULL))
        return ls_layer_fail(layer, error, metrics->message, "metric",
                             "a second layer with loss_weight: 0 and without them can measure",
                             "metric is of the plain loss, without label_smoothing and "
                             "class_weight");
    if (layer->bottoms < 3)
        return 0;
    LS_TRY(ls_layer_check_belongs(layer, error, 2));
    const struct ls_value *label = layer->bottom[1], *bytes = layer->bottom[2];
    if (ls_shape_size(&label->shape) == ls_shape_size(&bytes->shape) &&
        ls_shape_count(&label->shape, 0, label->sample_axis) ==
            ls_shape_count(&bytes->shape, 0, bytes->sample_axis))
        return 0;
    char a[160], b[160];
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "there must be a number of bytes for each label, but '%s' is %s, and "
                         "'%s' is %s",
                         label->name, ls_shape_text(&label->shape, a, sizeof a), bytes->name,
                         ls_shape_text(&bytes->shape, b, sizeof b));
}

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
    LS_TRY(ls_layer_check_positions(layer, error, axis));
    const struct ls_loss_metrics metrics = metrics_of(layer);
    return check_metrics(layer, &metrics, error);
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

/* Emits the sum of `numbers`, one for each label, over labels that count; NULL: of ones. Returns
 * where it is in the record. */
static int emit_count(struct ls_layer *layer, struct ls_value *numbers)
{
    const struct softmax_loss *state = layer->state;
    const int offset = ls_graph_record(layer->graph, 1);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_COUNT_LABELS);
    ls_op_in(layer->graph, op, state->loss.in[1]);
    if (numbers != NULL)
        ls_op_in(layer->graph, op, numbers);
    if (op != NULL) {
        op->attr.loss = state->loss.attr;
        op->attr.loss.normalization = LS_NORM_VALID;
        op->attr.loss.metric_offset = offset;
    }
    return offset;
}

/* Emits the number of labels with the highest score. Returns where it is in the record. */
static int emit_hits(struct ls_layer *layer)
{
    const struct softmax_loss *state = layer->state;
    const struct ls_loss_attr *attr = &state->loss.attr;
    const int offset = ls_graph_record(layer->graph, 2);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_ACCURACY);
    ls_op_in(layer->graph, op, layer->bottom[0]);
    ls_op_in(layer->graph, op, state->loss.in[1]);
    if (op != NULL)
        op->attr.accuracy = (struct ls_accuracy_attr){.axis = attr->axis,
                                                      .top_k = 1,
                                                      .has_ignore = attr->has_ignore,
                                                      .ignore_label = attr->ignore_label,
                                                      .classes = attr->classes,
                                                      .metric_offset = offset,
                                                      .class_offset = -1,
                                                      .confusion_offset = -1};
    return offset;
}

static void make_metrics(struct ls_layer *layer, const struct ls_loss_metrics *metrics)
{
    const struct ls_loss_attr *attr = &((const struct softmax_loss *)layer->state)->loss.attr;
    struct ls_metric_sums sums = {.nats = attr->metric_offset, .count = attr->metric_offset + 1};
    if (attr->normalization != LS_NORM_VALID)
        sums.count = emit_count(layer, NULL);
    if (ls_loss_has_metric(metrics, LOCKSTEP__LOSS_PARAMETER__METRIC__BITS_PER_BYTE))
        sums.bytes = emit_count(layer, layer->bottom[2]);
    if (ls_loss_has_metric(metrics, LOCKSTEP__LOSS_PARAMETER__METRIC__ACCURACY))
        sums.hits = emit_hits(layer);
    ls_loss_make_metrics(layer, metrics, &sums);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct softmax_loss *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    const struct ls_loss_metrics metrics = metrics_of(layer);
    const int tops = metrics.count > 0 ? 1 : layer->tops; /* those of Caffe and R-FCN */
    (void)error;
    ls_loss_begin(layer, &state->loss);
    state->prob =
        tops > 1 ? ls_layer_make_top(layer, 1, &x->shape, x) : ls_layer_make_side(layer, "prob", x);
    struct ls_op *op = ls_graph_op(graph, LS_OP_SOFTMAX_LOSS);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, state->loss.in[1]);
    ls_op_out(graph, op, state->prob);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
    if (tops > 2)
        emit_each(layer);
    if (metrics.count > 0)
        make_metrics(layer, &metrics);
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
    const bool measures = metrics_of(layer).count > 0;
    if (layer->bottoms > 2)
        LS_TRY(ls_loss_check_unlearned(layer, error, 2));
    if (!measures)
        LS_TRY(ls_loss_check_each(layer, error, 2));
    if (!layer->propagate[0])
        return 0;
    if (layer->loss_weight[0] != 0)
        ls_loss_emit_backward(layer, &state->loss, LS_OP_SOFTMAX_LOSS_BACKWARD, state->prob,
                              state->loss.in[1], 0);
    struct ls_value *dprob =
        !measures && layer->tops > 1 ? ls_graph_gradient(layer->graph, layer->top[1]) : NULL;
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
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = LS_LOSS_METRICS_MAX + 1,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
