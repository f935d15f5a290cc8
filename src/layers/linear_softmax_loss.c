/* LinearSoftmaxLoss: an inner product and SoftmaxWithLoss behind it, without the scores in between.
 *
 *   loss = sum over positions of -log p[label] / divisor,  p = softmax(w x + b)
 *
 * The axes of x from `axis` (default -1) on are the K inputs, those in front of it positions, each
 * with a label 0 .. C-1: x [N, T, K], label [N, T], w [C, K], b [C] (bias_term, default false).
 * Blobs: weight w, bias b, as InnerProduct and, without b, Embed have them, so that a `param` name
 * ties the weights to those of either. For many classes: scores of a block of positions are made
 * and used up at once, so that memory does not grow with positions times classes. What it gives is
 * what the two layers would, but for the logarithm: it is taken of the sum, not of p, so that a
 * small p is not cut off. loss_param: as SoftmaxWithLoss (layers/softmax_loss.c), with
 * label_smoothing and class_weight. Tops behind the loss are what `metric` says, one after the
 * other, of layers/loss_metrics.h, without weights and smoothing.
 *
 * Lockstep's own linear_softmax_loss_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/assert.h"
#include "layers/loss.h"
#include "layers/loss_metrics.h"

struct linear_loss {
    struct ls_loss loss;
    struct ls_linear_loss_attr attr;
};

static const Lockstep__LinearSoftmaxLossParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__LinearSoftmaxLossParameter defaults =
        LOCKSTEP__LINEAR_SOFTMAX_LOSS_PARAMETER__INIT;
    const Lockstep__LinearSoftmaxLossParameter *param =
        layer->definition->linear_softmax_loss_param;
    return param != NULL ? param : &defaults;
}

static struct ls_loss_metrics metrics_of(const struct ls_layer *layer)
{
    const Lockstep__LinearSoftmaxLossParameter *p = param_of(layer);
    return (struct ls_loss_metrics){.message = layer->definition->linear_softmax_loss_param,
                                    .metric = p->metric,
                                    .count = p->n_metric};
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Bottom `bottom` must have a number for each position. */
static int check_positions(const struct ls_layer *layer, struct ls_error *error, int axis,
                           int bottom)
{
    const struct ls_value *x = layer->bottom[0], *label = layer->bottom[bottom];
    const int64_t positions = ls_shape_count(&x->shape, 0, axis);
    LS_TRY(ls_layer_check_belongs(layer, error, bottom));
    if (positions == ls_shape_size(&label->shape) &&
        (ls_shape_count(&x->shape, 0, x->sample_axis) ==
             ls_shape_count(&label->shape, 0, label->sample_axis) ||
         ls_layer_is_mixed(layer, x) || ls_layer_is_mixed(layer, label)))
        return 0;
    char a[160], b[160];
    return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                         "its bottoms must have as many positions, in the same order, but '%s' is "
                         "%s (all axes in front of axis %d), and '%s' is %s",
                         x->name, ls_shape_text(&x->shape, a, sizeof a), axis, label->name,
                         ls_shape_text(&label->shape, b, sizeof b));
}

static int request_blobs(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_linear_loss_attr *attr = &((struct linear_loss *)layer->state)->attr;
    const Lockstep__LinearSoftmaxLossParameter *p = param_of(layer);
    const struct ls_shape weight = {.rank = 2, .dim = {attr->classes, attr->inputs}};
    LS_TRY(ls_layer_check_shape(layer, error, "the weight", &weight));
    layer->request[0] =
        (struct ls_blob_request){.name = "weight", .shape = weight, .filler = p->weight_filler};
    layer->request[1] = (struct ls_blob_request){
        .name = "bias", .shape = {.rank = 1, .dim = {attr->classes}}, .filler = p->bias_filler};
    layer->blobs = attr->bias ? 2 : 1;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct linear_loss *state = layer->state;
    const Lockstep__LinearSoftmaxLossParameter *p = param_of(layer);
    const void *message = layer->definition->linear_softmax_loss_param;
    const struct ls_value *x = layer->bottom[0];
    const struct ls_loss_metrics metrics = metrics_of(layer);
    int status = ls_layer_begin(layer, error, "loss_param"), failed;
    const int axis = ls_layer_axis(layer, error, message, "axis", p->axis, x, false);
    if (axis < 0)
        status = LOCKSTEP_DEFINITION;
    if (p->num_output == 0 || p->num_output > 1U << 24) /* labels are floats */
        status = ls_layer_fail(layer, error, message, p->has_num_output ? "num_output" : NULL, NULL,
                               p->has_num_output ? "num_output must be 1 to 16777216"
                                                 : "num_output is missing");
    if ((failed = ls_loss_check_metrics(layer, &metrics, error)))
        status = failed;
    LS_TRY(status);
    LS_ASSERT(p->num_output > 0);
    LS_TRY(ls_loss_check_bottoms(layer, error));
    for (int i = 1; i < layer->bottoms; i++)
        LS_TRY(check_positions(layer, error, axis, i));
    const struct ls_loss_rules rules = {
        .missing = LS_NORM_VALID, .classes = p->num_output, .smoothing = true};
    LS_TRY(ls_loss_read(layer, &rules, &state->loss, error));
    state->loss.attr.axis = axis;
    ls_loss_set_positions(
        &state->loss, ls_shape_count(&x->shape, 0, axis) / ls_value_sample_rows(x) * x->rows, 1);
    state->attr = (struct ls_linear_loss_attr){
        .rows = ls_shape_count(&x->shape, 0, axis),
        .inputs = ls_shape_count(&x->shape, axis, x->shape.rank),
        .classes = p->num_output,
        .bias = p->bias_term,
        .bytes = layer->bottoms > 2,
        .hits = ls_loss_has_metric(&metrics, LOCKSTEP__LOSS_PARAMETER__METRIC__ACCURACY),
        .figures = -1};
    return request_blobs(layer, error);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static struct ls_op *emit(struct ls_layer *layer, enum ls_op_kind kind)
{
    struct linear_loss *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_op *op = ls_graph_op(graph, kind);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, state->loss.in[1]);
    ls_op_in(graph, op, ls_graph_parameter(graph, layer, 0));
    ls_op_in(graph, op, layer->blobs > 1 ? ls_graph_parameter(graph, layer, 1) : NULL);
    ls_op_in(graph, op, layer->bottoms > 2 ? layer->bottom[2] : NULL);
    state->attr.loss = state->loss.attr;
    if (op != NULL)
        op->attr.linear_loss = state->attr;
    return op;
}

static void make_metrics(struct ls_layer *layer)
{
    struct linear_loss *state = layer->state;
    const struct ls_loss_metrics metrics = metrics_of(layer);
    if (layer->tops == 1)
        return;
    const int first = ls_graph_record(layer->graph, LS_LINEAR_FIGURES);
    const struct ls_metric_sums sums = {.nats = first + LS_LINEAR_NATS,
                                        .count = first + LS_LINEAR_COUNT,
                                        .bytes = first + LS_LINEAR_BYTES,
                                        .hits = first + LS_LINEAR_HITS};
    state->attr.figures = first;
    ls_loss_make_metrics(layer, &metrics, &sums);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    struct linear_loss *state = layer->state;
    (void)error;
    ls_loss_begin(layer, &state->loss);
    make_metrics(layer);
    emit(layer, LS_OP_LINEAR_LOSS); /* it goes where `backward` is called (graph/rewrite.h) */
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_loss_check_labels(layer, error));
    if (layer->bottoms > 2)
        LS_TRY(ls_loss_check_unlearned(layer, error, 2));
    struct ls_op *op = emit(layer, LS_OP_LINEAR_LOSS_GRADIENT);
    struct ls_value *dx = layer->propagate[0] ? ls_graph_gradient_value(graph, x) : NULL;
    struct ls_value *dw =
        layer->train_blob[0] ? ls_graph_parameter_gradient(graph, layer, 0) : NULL;
    struct ls_value *db = layer->blobs > 1 && layer->train_blob[1]
                              ? ls_graph_parameter_gradient(graph, layer, 1)
                              : NULL;
    ls_op_out(graph, op, dx);
    ls_op_out(graph, op, dw);
    ls_op_out(graph, op, db);
    if (dx != NULL)
        ls_graph_add_gradient(graph, x, dx);
    ls_graph_accumulate(graph, layer, 0, dw);
    ls_graph_accumulate(graph, layer, 1, db);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_linear_loss_attr *attr = &((struct linear_loss *)layer->state)->attr;
    const double m = (double)attr->rows, k = (double)attr->inputs, n = (double)attr->classes;
    const double flops = 2 * m * k * n, bytes = 4 * (m * k + k * n);
    cost->forward_flops = flops + 25 * m * n;
    cost->forward_bytes = bytes;
    if (ls_layer_trains_blob(layer, 0)) {
        cost->backward_weights_flops = flops;
        cost->backward_bytes += bytes;
    }
    if (ls_layer_has_gradient(layer, 0)) {
        cost->backward_data_flops = flops;
        cost->backward_bytes += bytes;
    }
}

const struct ls_layer_type ls_layer_linear_softmax_loss = {
    .type = "LinearSoftmaxLoss",
    .parameter = "linear_softmax_loss_param",
    .state_size = sizeof(struct linear_loss),
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
