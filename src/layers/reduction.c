/* Reduction: one number of all that the axes from `axis` on hold.
 *
 *   SUM  y = coeff sum x     ASUM  y = coeff sum |x|
 *   MEAN y = coeff mean x    SUMSQ y = coeff sum x^2
 *
 * x [A, B, ..., rest...], y [A, B, ...] without the axes from `axis` (default 0) on. Caffe's
 * reduction_param.
 *
 * Where the axis of the samples is among those, the number belongs to the whole batch: the top is
 * then a figure, exact over the batch (MEAN divides by all of its elements), which can be reported
 * and, with a loss_weight, be a loss. Where another layer reads it, or where it is more than one
 * number, it is a value like others, and mixes samples (ls_layer_mix).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "ir/filter.h"
#include "layers/common.h"

struct reduction {
    struct ls_reduction_attr attr;
    struct ls_shape top;
    bool figure;            /* mixes samples */
    struct ls_value *taken; /* figure: the bottom, with zeros where rows are left out */
};

static const Lockstep__ReductionParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__ReductionParameter defaults = LOCKSTEP__REDUCTION_PARAMETER__INIT;
    const Lockstep__ReductionParameter *param = layer->definition->reduction_param;
    return param != NULL ? param : &defaults;
}

static enum ls_reduction method_of(const Lockstep__ReductionParameter *p)
{
    switch (p->operation) {
    case LOCKSTEP__REDUCTION_PARAMETER__REDUCTION_OP__ASUM:
        return LS_REDUCE_ASUM;
    case LOCKSTEP__REDUCTION_PARAMETER__REDUCTION_OP__SUMSQ:
        return LS_REDUCE_SUMSQ;
    case LOCKSTEP__REDUCTION_PARAMETER__REDUCTION_OP__MEAN:
        return LS_REDUCE_MEAN;
    default:
        return LS_REDUCE_SUM;
    }
}

/* Whether a layer behind this one reads its top. */
static bool is_read(const struct ls_layer *layer)
{
    const Lockstep__NetParameter *net = layer->graph->net;
    bool behind = false, read = false;
    for (size_t i = 0; net != NULL && i < net->n_layer; i++) {
        const Lockstep__LayerParameter *other = net->layer[i];
        bool reads = behind && (other->type == NULL || strcmp(other->type, "Silence") != 0);
        for (size_t b = 0; b < other->n_bottom && reads; b++)
            read |= strcmp(other->bottom[b], ls_layer_top_name(layer, 0)) == 0;
        behind |= other == layer->definition;
    }
    return read;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct reduction *state = layer->state;
    const Lockstep__ReductionParameter *p = param_of(layer);
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int axis = ls_layer_axis(layer, error, p, "axis", p->axis, x, true);
    LS_TRY(axis < 0 ? LOCKSTEP_DEFINITION : 0);
    if (!isfinite(p->coeff))
        return ls_layer_fail(layer, error, p, "coeff", NULL, "coeff must be a finite number");
    state->attr = (struct ls_reduction_attr){
        .axis = axis, .method = method_of(p), .coeff = p->coeff, .normalizer = -1};
    state->top = x->shape;
    state->top.rank = axis;
    state->figure = x->sample_axis >= axis;
    bool mixes = state->figure && (ls_shape_size(&state->top) != 1 || is_read(layer));
    if (mixes && ls_layer_mix(layer))
        state->figure = false;
    if (state->figure && ls_shape_size(&state->top) != 1)
        return ls_layer_fail(layer, error, p, "axis", "reduce from axis 0 on",
                             "the axes of '%s' from %d on include that of the samples (%d); one "
                             "number of the whole batch can be made of them, but not %lld",
                             x->name, axis, x->sample_axis, (long long)ls_shape_size(&state->top));
    return 0;
}

/* The op adds [sum, count] to the record; the sum goes unrounded, with coeff. */
static int forward_figure(struct ls_layer *layer)
{
    struct reduction *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    bool mean = state->attr.method == LS_REDUCE_MEAN;
    layer->figure_loss = true;
    state->attr.loss_weight = layer->loss_weight[0];
    state->attr.metric_offset = ls_graph_record(graph, 2);
    if (graph->training && layer->loss_weight[0] != 0)
        state->attr.normalizer = ls_graph_normalizer(
            graph, &(struct ls_loss_attr){.normalization = mean ? LS_NORM_FULL : LS_NORM_NONE}, x,
            ls_value_sample_size(x), NULL);
    struct ls_metric metric = {.entries = 1,
                               .offset = state->attr.metric_offset,
                               .count_offset = mean ? state->attr.metric_offset + 1 : -1};
    /* Sums of magnitudes are errors; what a sum or a mean is of, only its net's author knows. */
    if (state->attr.method == LS_REDUCE_ASUM || state->attr.method == LS_REDUCE_SUMSQ)
        metric.better = state->attr.coeff < 0 ? LS_BETTER_LARGER : LS_BETTER_SMALLER;
    if (mean && x->selected != NULL) {
        metric.count_offset = ls_filter_count(graph, x);
        metric.divisor = (double)(ls_value_sample_size(x) / x->rows);
    }
    state->taken = ls_filter_fill(graph, x, 0);
    ls_layer_make_metric(layer, 0, 0);
    ls_graph_metric(graph, layer, 0, metric);
    struct ls_op *op = ls_graph_op(graph, LS_OP_REDUCE_LOSS);
    ls_op_in(graph, op, state->taken);
    if (op != NULL)
        op->attr.reduction = state->attr;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct reduction *state = layer->state;
    if (state->figure)
        return forward_figure(layer);
    struct ls_op *op = ls_layer_emit_top(layer, LS_OP_REDUCE, &state->top);
    if (op != NULL)
        op->attr.reduction = state->attr;
    return 0;
}

/* The gradient of a figure, which rows that are left out have none of. */
static void backward_figure(struct ls_layer *layer)
{
    const struct reduction *state = layer->state;
    struct ls_graph *graph = layer->graph;
    enum ls_reduction method = state->attr.method;
    struct ls_value *dx = ls_graph_gradient_value(graph, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_REDUCE_LOSS_BACKWARD);
    if (method == LS_REDUCE_ASUM || method == LS_REDUCE_SUMSQ)
        ls_op_in(graph, op, state->taken);
    ls_op_out(graph, op, dx);
    if (op != NULL)
        op->attr.reduction = state->attr;
    ls_graph_add_gradient(graph, layer->bottom[0],
                          ls_filter_fill_gradient(graph, layer->bottom[0], dx));
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct reduction *state = layer->state;
    enum ls_reduction method = state->attr.method;
    if (!layer->propagate[0])
        return 0;
    if (state->figure) {
        backward_figure(layer);
        return 0;
    }
    struct ls_value *inputs[2] = {ls_graph_gradient(layer->graph, layer->top[0])};
    int count = 1;
    if (method == LS_REDUCE_ASUM || method == LS_REDUCE_SUMSQ)
        inputs[count++] = layer->bottom[0];
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_REDUCE_BACKWARD, inputs, count);
    if (op != NULL)
        op->attr.reduction = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct reduction *state = layer->state;
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    bool keeps = state->attr.method == LS_REDUCE_ASUM || state->attr.method == LS_REDUCE_SUMSQ;
    cost->forward_flops = elements * (keeps ? 2 : 1);
    cost->forward_bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = keeps ? elements : 0;
    cost->backward_bytes = cost->forward_bytes + (keeps ? ls_layer_bytes(layer->bottom[0]) : 0);
}

const struct ls_layer_type ls_layer_reduction = {
    .type = "Reduction",
    .parameter = "reduction_param",
    .state_size = sizeof(struct reduction),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
