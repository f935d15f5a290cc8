/* What all layer types share: places, failures, axes. See ir/layer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/layer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/op_type.h"

void ls_graph_cost(const struct ls_graph *graph, struct ls_cost *cost)
{
    *cost = (struct ls_cost){0};
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        struct ls_cost one = {0};
        if (layer->type->cost == NULL)
            continue;
        layer->type->cost(layer, &one);
        cost->forward_flops += one.forward_flops;
        cost->backward_data_flops += one.backward_data_flops;
        cost->backward_weights_flops += one.backward_weights_flops;
        cost->forward_bytes += one.forward_bytes;
        cost->backward_bytes += one.backward_bytes;
    }
}

struct ls_precision_counts ls_graph_count_precisions(const struct ls_graph *graph)
{
    struct ls_precision_counts counts = {0};
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        counts.computing += layer->rounds;
        counts.bf16 += layer->rounds && layer->bf16;
        counts.tf32 += layer->rounds && layer->tf32;
    }
    return counts;
}

const char *ls_layer_top_name(const struct ls_layer *layer, int top)
{
    bool named = (size_t)top < layer->definition->n_top;
    return named ? layer->definition->top[top] : layer->name;
}

const char *ls_layer_place(const struct ls_layer *layer, const void *message, const char *field,
                           char buffer[LS_PLACE_SIZE])
{
    const struct ls_definition *definition = layer->graph != NULL ? layer->graph->definition : NULL;
    if (definition == NULL) {
        snprintf(buffer, LS_PLACE_SIZE, "layer '%s'", layer->name);
        return buffer;
    }
    ls_place(definition, message != NULL ? message : layer->definition, field, buffer,
             LS_PLACE_SIZE);
    if (message != NULL && strcmp(buffer, definition->file) == 0) /* defaults stand nowhere */
        ls_place(definition, layer->definition, NULL, buffer, LS_PLACE_SIZE);
    return buffer;
}

int ls_layer_fail(const struct ls_layer *layer, struct ls_error *error, const void *message,
                  const char *field, const char *hint, const char *format, ...)
{
    char place[LS_PLACE_SIZE];
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_layer_place(layer, message, field, place);
    const struct ls_definition *definition = layer->graph != NULL ? layer->graph->definition : NULL;
    const char *copy =
        definition != NULL ? ls_definition_copy_of(definition, layer->definition) : NULL;
    if (copy != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s (%s): %s", layer->name, copy,
                       text);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s: %s", layer->name, text);
}

/* The first type of a set, for messages. */
static enum ls_dtype first_type(unsigned types)
{
    int type = 0;
    while (type + 1 < LS_DTYPES && (types >> type & 1) == 0)
        type++;
    return (enum ls_dtype)type;
}

int ls_layer_check_types(const struct ls_layer *layer, size_t first, struct ls_error *error)
{
    for (size_t o = first; o < layer->graph->op_count; o++) {
        const struct ls_op *op = layer->graph->ops[o];
        for (int i = 0; i < op->inputs; i++) {
            const struct ls_value *value = op->input[i];
            unsigned types = ls_op_input_types(op->kind, i);
            if (value == NULL || (types >> value->type & 1) != 0)
                continue;
            const char *wanted = ls_dtype_name(first_type(types));
            char hint[120];
            snprintf(hint, sizeof hint, "declare it as %s where it is handed in", wanted);
            return ls_layer_fail(layer, error, NULL, "bottom", hint,
                                 "'%s' has elements of type %s, but the %s of a %s layer takes %s",
                                 value->name, ls_dtype_name(value->type), ls_op_kind_name(op->kind),
                                 layer->type->type, wanted);
        }
    }
    return 0;
}

int ls_layer_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                  const char *field, int axis, const struct ls_value *value, bool samples_ok)
{
    int resolved = ls_shape_axis(&value->shape, axis);
    char shape[160];
    if (resolved < 0) {
        ls_layer_fail(layer, error, message, field, NULL,
                      "axis %d is out of range for '%s' with shape %s", axis, value->name,
                      ls_shape_text(&value->shape, shape, sizeof shape));
        return -1;
    }
    if (!samples_ok && value->sample_axis >= 0 && resolved <= value->sample_axis) {
        ls_layer_fail(layer, error, message, field, "use an axis behind the one of the samples",
                      "axis %d of '%s' %s over the samples of a batch; a result that mixes "
                      "samples would depend on how the batch is cut into micro-batches",
                      axis, value->name,
                      resolved == value->sample_axis ? "runs" : "and those behind it run");
        return -1;
    }
    return resolved;
}

bool ls_layer_mix(const struct ls_layer *layer)
{
    struct ls_graph *graph = layer->graph;
    if (graph->mixer == NULL || graph->mixer->bottoms == 0) /* a source says less */
        graph->mixer = layer;
    graph->mixing = layer;
    return graph->whole;
}

bool ls_layer_is_mixed(const struct ls_layer *layer, const struct ls_value *value)
{
    return layer->graph->whole && value->sample_axis == 0 && value->rows == value->shape.dim[0];
}

int ls_layer_mixing_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                         const char *field, int axis, const struct ls_value *value)
{
    int resolved = ls_layer_axis(layer, error, message, field, axis, value, true);
    bool mixes = resolved >= 0 && value->sample_axis >= 0 && resolved <= value->sample_axis;
    if (mixes && !ls_layer_mix(layer))
        return ls_layer_axis(layer, error, message, field, axis, value, false);
    return resolved;
}

int ls_layer_one_axis(const struct ls_layer *layer, struct ls_error *error, const void *message,
                      const char *field, int axis, const struct ls_value *value)
{
    int resolved = ls_layer_axis(layer, error, message, field, axis, value, true);
    if (resolved < 0 || resolved != value->sample_axis)
        return resolved;
    return ls_layer_mixing_axis(layer, error, message, field, axis, value);
}

bool ls_layer_is_loss(const struct ls_layer *layer)
{
    return (layer->type->is_loss || layer->figure_loss) && layer->loss_weight[0] != 0;
}
