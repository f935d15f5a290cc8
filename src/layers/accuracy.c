/* Accuracy: how often the true class is among the top_k with the highest scores.
 *
 * Scores x [N, ..., C, ...] with the C classes along `axis` (default 1); the label has a number
 * 0 .. C-1 for each position of the other axes. A position is a hit if at most top_k classes,
 * itself included, score at least as high as the true one: ties count against it, as in Caffe.
 * Positions with ignore_label count nowhere. Tops, all figures over every sample of the test or
 * the update; 0 where nothing counts:
 *
 *   accuracy          hits / positions
 *   per class [C]     the same for the positions of each class
 *   confusion [C, C]  with confusion_matrix: true, the last top: row the label, column the class
 *                     with the highest score; counts (Lockstep's own)
 *
 * No gradient: it cannot be a loss. SPDX-License-Identifier: BSD-2-Clause */
#include "ir/filter.h"
#include "layers/common.h"

enum {
    PER_CLASS_MAX = 1 << 20, /* classes; the record of a micro-batch holds two numbers for each */
    CONFUSION_MAX = 2048     /* classes; here it holds their square */
};

struct accuracy {
    struct ls_accuracy_attr attr;
    int class_top, confusion_top; /* which tops; 0: none */
};

static const Lockstep__AccuracyParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__AccuracyParameter defaults = LOCKSTEP__ACCURACY_PARAMETER__INIT;
    const Lockstep__AccuracyParameter *param = layer->definition->accuracy_param;
    return param != NULL ? param : &defaults;
}

/* Which top is what. */
static int assign_tops(const struct ls_layer *layer, struct ls_error *error)
{
    struct accuracy *state = layer->state;
    const void *message = layer->definition->accuracy_param;
    bool confusion = param_of(layer)->confusion_matrix;
    int64_t classes = state->attr.classes;
    if (confusion && layer->tops < 2)
        return ls_layer_fail(layer, error, message, "confusion_matrix", "add one at the end",
                             "there is no top for the confusion matrix");
    if (!confusion && layer->tops > 2)
        return ls_layer_fail(layer, error, NULL, "top", NULL,
                             "has %d tops; without confusion_matrix: true there are only the "
                             "accuracy and that of each class",
                             layer->tops);
    state->confusion_top = confusion ? layer->tops - 1 : 0;
    state->class_top = layer->tops - (confusion ? 1 : 0) > 1 ? 1 : 0;
    if (state->class_top != 0 && classes > PER_CLASS_MAX)
        return ls_layer_fail(layer, error, NULL, "top", NULL,
                             "the accuracy of each of %lld classes was asked for; the limit is %d",
                             (long long)classes, (int)PER_CLASS_MAX);
    if (confusion && classes > CONFUSION_MAX)
        return ls_layer_fail(layer, error, message, "confusion_matrix", NULL,
                             "a confusion matrix of %lld classes was asked for; the limit is %d",
                             (long long)classes, (int)CONFUSION_MAX);
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct accuracy *state = layer->state;
    const Lockstep__AccuracyParameter *p = param_of(layer);
    const void *message = layer->definition->accuracy_param;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int axis = ls_layer_axis(layer, error, message, "axis", p->axis, x, false);
    LS_TRY(axis < 0 ? LOCKSTEP_DEFINITION : 0);
    int status = ls_layer_check_positions(layer, error, axis);
    int64_t classes = x->shape.dim[axis];
    if (p->top_k < 1 || p->top_k > classes)
        status = ls_layer_fail(layer, error, message, "top_k", NULL,
                               "top_k %u must be 1 to %lld, the number of classes", p->top_k,
                               (long long)classes);
    for (int i = 0; i < layer->tops; i++)
        if (layer->loss_weight[i] != 0)
            status = ls_layer_fail(layer, error, NULL, "loss_weight", "set it to 0",
                                   "an Accuracy layer has no gradient and cannot be a loss");
    state->attr = (struct ls_accuracy_attr){
        .axis = axis,
        .top_k = (int)p->top_k,
        .has_ignore = p->has_ignore_label,
        .ignore_label = p->ignore_label,
        .classes = classes,
        .class_offset = -1,
        .confusion_offset = -1,
    };
    int tops = assign_tops(layer, error);
    return status != 0 ? status : tops;
}

static void make_class_top(struct ls_layer *layer)
{
    struct accuracy *state = layer->state;
    int classes = (int)state->attr.classes;
    state->attr.class_offset = ls_graph_record(layer->graph, 2 * classes);
    ls_layer_make_metric(layer, state->class_top, classes);
    ls_graph_metric(layer->graph, layer, state->class_top,
                    (struct ls_metric){.entries = classes,
                                       .offset = state->attr.class_offset,
                                       .count_offset = state->attr.class_offset + classes,
                                       .count_each = true});
}

static void make_confusion_top(struct ls_layer *layer)
{
    struct accuracy *state = layer->state;
    int entries = (int)(state->attr.classes * state->attr.classes);
    state->attr.confusion_offset = ls_graph_record(layer->graph, entries);
    ls_layer_make_metric(layer, state->confusion_top, entries);
    ls_graph_metric(layer->graph, layer, state->confusion_top,
                    (struct ls_metric){.entries = entries,
                                       .offset = state->attr.confusion_offset,
                                       .count_offset = -1,
                                       .is_count = true});
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct accuracy *state = layer->state;
    struct ls_graph *graph = layer->graph;
    state->attr.metric_offset = ls_graph_record(graph, 2);
    ls_layer_make_metric(layer, 0, 0);
    ls_graph_metric(graph, layer, 0,
                    (struct ls_metric){.entries = 1,
                                       .offset = state->attr.metric_offset,
                                       .count_offset = state->attr.metric_offset + 1});
    if (state->class_top != 0)
        make_class_top(layer);
    if (state->confusion_top != 0)
        make_confusion_top(layer);
    struct ls_value *label = ls_filter_fill_labels(graph, layer->bottom[1], &state->attr.has_ignore,
                                                   &state->attr.ignore_label);
    struct ls_op *op = ls_graph_op(graph, LS_OP_ACCURACY);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, label);
    if (op != NULL)
        op->attr.accuracy = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_flops = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
}

const struct ls_layer_type ls_layer_accuracy = {
    .type = "Accuracy",
    .parameter = "accuracy_param",
    .state_size = sizeof(struct accuracy),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 3,
    .filtered = LS_FILTERED_COUNTED,
    .better = LS_BETTER_LARGER,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
