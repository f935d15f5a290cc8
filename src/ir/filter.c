/* Rows that are left out. See ir/filter.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/filter.h"

#include <stdint.h>

/* No label is this number: it names no class, and is no probability. */
enum { NO_LABEL = INT32_MIN };

const struct ls_loss_attr ls_selected_rows = {
    .has_ignore = true, .ignore_label = 0, .normalization = LS_NORM_VALID, .normalizer = -1};

void ls_filter_emit(struct ls_graph *graph, struct ls_value *x, struct ls_value *selected,
                    float left_out, struct ls_value *y)
{
    struct ls_op *op = ls_graph_op(graph, LS_OP_FILTER);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, selected);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.left_out = left_out;
}

struct ls_value *ls_filter_fill(struct ls_graph *graph, struct ls_value *value, float left_out)
{
    if (value == NULL || value->selected == NULL)
        return value;
    struct ls_value *filled = ls_graph_value(graph, value->name, &value->shape, value);
    ls_filter_emit(graph, value, value->selected, left_out, filled);
    return filled;
}

struct ls_value *ls_filter_fill_gradient(struct ls_graph *graph, const struct ls_value *value,
                                         struct ls_value *gradient)
{
    if (value == NULL || value->selected == NULL)
        return gradient;
    struct ls_value *filled = ls_graph_gradient_value(graph, value);
    ls_filter_emit(graph, gradient, value->selected, 0, filled);
    return filled;
}

struct ls_value *ls_filter_fill_labels(struct ls_graph *graph, struct ls_value *label,
                                       bool *has_ignore, int *ignore_label)
{
    if (label->selected == NULL)
        return label;
    /* A number that no fp32 label can be ignores nothing. */
    if (!*has_ignore || (double)(float)*ignore_label != (double)*ignore_label)
        *ignore_label = NO_LABEL;
    *has_ignore = true;
    return ls_filter_fill(graph, label, (float)*ignore_label);
}

int ls_filter_count(struct ls_graph *graph, const struct ls_value *value)
{
    const int offset = ls_graph_record(graph, 1);
    struct ls_op *op = ls_graph_op(graph, LS_OP_COUNT_LABELS);
    ls_op_in(graph, op, value->selected);
    if (op != NULL) {
        op->attr.loss = ls_selected_rows;
        op->attr.loss.metric_offset = offset;
    }
    return offset;
}

struct ls_value *ls_filter_of(const struct ls_layer *layer)
{
    struct ls_value *selected = NULL;
    for (int b = 0; b < layer->bottoms && selected == NULL; b++)
        selected = layer->bottom[b]->selected;
    return selected;
}

int ls_filter_refuse(const struct ls_layer *layer, struct ls_error *error, const char *because)
{
    const struct ls_value *selected = ls_filter_of(layer);
    if (selected == NULL)
        return 0;
    return ls_layer_fail(layer, error, NULL, "bottom",
                         "put the Filter layer behind it, or leave samples out by "
                         "loss_param { ignore_label } (docs/caffe.md)",
                         "a %s layer cannot leave out the samples that a Filter layer does not "
                         "select: %s",
                         layer->type->type, because);
}

int ls_filter_check(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *selected = ls_filter_of(layer);
    if (selected == NULL)
        return 0;
    if (layer->type->filtered == LS_FILTERED_REFUSED)
        return ls_filter_refuse(layer, error, "what it computes needs all of them");
    for (int b = 0; b < layer->bottoms && layer->tops > 0; b++) {
        const struct ls_value *bottom = layer->bottom[b];
        if (bottom->selected != selected && bottom->sample_axis >= 0)
            return ls_layer_fail(layer, error, NULL, "bottom",
                                 "let all of its bottoms be tops of the same Filter layer, or have "
                                 "the same selector",
                                 "its bottoms have not the same samples: a Filter layer leaves out "
                                 "some of the one, and others or none of '%s'",
                                 bottom->name);
    }
    return 0;
}

/* Whether the rows of a value are those that `selected` has numbers for. */
static bool has_rows(const struct ls_value *value, const struct ls_value *selected)
{
    return value->sample_axis == 0 && value->shape.rank > 0 &&
           value->shape.dim[0] == selected->shape.dim[0];
}

int ls_filter_hand_on(struct ls_layer *layer, size_t first, struct ls_error *error)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *selected = ls_filter_of(layer);
    if (selected == NULL)
        return 0;
    if (graph->mixing == layer)
        return ls_filter_refuse(layer, error, "it mixes the samples of a batch");
    for (size_t i = first; i < graph->value_count; i++) {
        struct ls_value *value = graph->values[i];
        if (value->selected == NULL && value->storage == LS_STORE_ARENA &&
            has_rows(value, selected))
            value->selected = selected;
    }
    for (int t = 0; t < layer->tops; t++) {
        const struct ls_value *top = layer->top[t];
        if (top->storage == LS_STORE_NONE ? layer->type->filtered != LS_FILTERED_COUNTED
                                          : !has_rows(top, selected))
            return ls_filter_refuse(layer, error, "its tops do not have the same samples");
    }
    return 0;
}
