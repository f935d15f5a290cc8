/* One layer by itself, in a graph of its own: what `graph/` does around a layer, reduced to the
 * least, so that a layer type can be tested before any net exists.
 *
 * Bottoms are given as text, one shape each: "10x3x32x32 10". Behind a shape stand, in any order:
 *   !    it depends on learned parameters, and its gradient is wanted
 *   /R   each sample has R rows (default 1)
 *   @A   its samples lie along axis A (default 0)
 *   ?    it has no axis of samples
 *   %T   its elements are of type T, "%I32" (default F32)
 * The graph has as many samples as the first bottom, or 10.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_ONE_LAYER_H
#define LS_TESTS_ONE_LAYER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "layers/layers.h"
#include "layers/source.h"
#include "schema/data_layers.h"
#include "schema/text_format.h"

enum { BOTTOMS_MAX = 64 };

struct one_layer {
    struct ls_definition *definition;
    struct ls_parameter_set *parameters;
    struct ls_graph *graph;
    struct ls_layer *layer;
    struct ls_error error;
};

/* Reads one bottom; returns what follows it. */
static inline const char *add_bottom(struct one_layer *one, int index, const char *text)
{
    struct ls_layer *layer = one->layer;
    struct ls_shape shape = {0};
    int64_t rows = 1;
    bool samples = true, learned = false;
    int axis = 0;
    enum ls_dtype type = LS_F32;
    for (;;) {
        char *end;
        shape.dim[shape.rank++] = strtoll(text, &end, 10);
        text = end;
        if (*text != 'x')
            break;
        text++;
    }
    for (; *text != '\0' && *text != ' '; text++) {
        learned |= *text == '!';
        samples &= *text != '?';
        if (*text == '/')
            rows = strtoll(text + 1, NULL, 10);
        if (*text == '@')
            axis = (int)strtol(text + 1, NULL, 10);
        if (*text == '%') {
            char name[16];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 1, " !?/@"), text + 1);
            assert_true(ls_dtype_find(name, &type));
        }
    }
    struct ls_value *value =
        ls_graph_value(one->graph, layer->definition->bottom[index], &shape, NULL);
    assert_non_null(value);
    value->sample_axis = samples ? axis : -1;
    value->rows = samples ? rows : 0;
    value->learned = learned;
    value->needs_grad = learned;
    value->type = type;
    layer->bottom[index] = value;
    if (index == 0)
        one->graph->samples = shape.dim[axis] / rows;
    return *text == ' ' ? text + 1 : text;
}

static inline void resolve_loss_weights(struct ls_layer *layer)
{
    if (layer->type->is_loss)
        layer->loss_weight[0] = 1;
    for (size_t i = 0; i < layer->definition->n_loss_weight; i++)
        layer->loss_weight[i] = layer->definition->loss_weight[i];
}

/* Layers that judge a whole test are no part of trainings. */
static inline bool is_for_tests(const char *text)
{
    return strstr(text, "DetectionEvaluate") != NULL || strstr(text, "EvalDetection") != NULL;
}

/* Reads `text`, a LayerParameter, and prepares the layer; nothing of the layer's type runs yet. */
static inline void open_layer(struct one_layer *one, const char *text, const char *bottoms,
                              bool training)
{
    *one = (struct one_layer){0};
    struct ls_text net = {0};
    ls_text_format(&net, "layer { %s }", text);
    assert_false(net.failed);
    int status = ls_text_read("net.prototxt", net.data, net.length,
                              &lockstep__net_parameter__descriptor, &one->definition, &one->error);
    ls_text_free(&net);
    if (status != 0)
        fail_msg("%s: %s", text, one->error.problems[0].message);
    Lockstep__LayerParameter *said = ((Lockstep__NetParameter *)one->definition->message)->layer[0];
    assert_int_equal(ls_data_layer_complete(one->definition, said, &one->error), 0);
    one->graph = ls_graph_new();
    one->parameters = ls_parameter_set_new();
    struct ls_layer *layer = ls_alloc(1, sizeof *layer);
    assert_true(LS_GROW(one->graph->layers, one->graph->layer_count, one->graph->layer_capacity));
    one->graph->layers[one->graph->layer_count++] = layer;
    one->graph->definition = one->definition;
    one->graph->parameters = one->parameters;
    one->graph->training = training;
    one->graph->phase = training ? LOCKSTEP__PHASE__TRAIN : LOCKSTEP__PHASE__TEST;
    one->graph->seed = 1;
    one->graph->samples = 10;
    one->graph->emitting = layer;
    one->layer = layer;
    layer->definition = ((const Lockstep__NetParameter *)one->definition->message)->layer[0];
    layer->name = layer->definition->name;
    layer->graph = one->graph;
    layer->type = ls_layer_type_find(layer->definition->type);
    assert_non_null(layer->type);
    layer->bottoms = (int)layer->definition->n_bottom;
    layer->tops = (int)layer->definition->n_top;
    if (layer->tops < layer->type->auto_tops)
        layer->tops = layer->type->auto_tops;
    layer->bottom = ls_alloc((size_t)layer->bottoms + 1, sizeof *layer->bottom);
    layer->propagate = ls_alloc((size_t)layer->bottoms + 1, sizeof *layer->propagate);
    layer->top = ls_alloc((size_t)layer->tops + 1, sizeof *layer->top);
    layer->loss_weight = ls_alloc((size_t)layer->tops + 1, sizeof *layer->loss_weight);
    layer->top_used = ls_alloc((size_t)layer->tops + 1, sizeof *layer->top_used);
    layer->state = ls_alloc(1, layer->type->state_size + 1);
    resolve_loss_weights(layer);
    for (int i = 0; i < layer->bottoms; i++)
        bottoms = add_bottom(one, i, bottoms);
    assert_string_equal(bottoms, "");
}

static inline void close_layer(struct one_layer *one)
{
    ls_graph_free(one->graph);
    ls_parameter_set_free(one->parameters);
    ls_definition_free(one->definition);
}

/* A parameter for each blob that the layer asks for; lr_mult as the definition has it. */
static inline int make_blobs(struct one_layer *one)
{
    struct ls_parameter_set *set = one->parameters;
    struct ls_layer *layer = one->layer;
    for (int i = 0; i < layer->blobs; i++) {
        const Lockstep__LayerParameter *definition = layer->definition;
        struct ls_text name = {0};
        ls_text_format(&name, "%s.%s", layer->name, layer->request[i].name);
        struct ls_parameter *blob = ls_alloc(1, sizeof *blob);
        if (blob == NULL || name.failed || !LS_GROW(set->items, set->count, set->capacity)) {
            ls_text_free(&name);
            ls_free(blob);
            return LOCKSTEP_RESOURCE;
        }
        blob->name = name.data;
        blob->shape = layer->request[i].shape;
        blob->lr_mult = (size_t)i < definition->n_param ? definition->param[i]->lr_mult : 1;
        blob->average = layer->request[i].average;
        if (blob->average || layer->request[i].fixed)
            blob->lr_mult = 0;
        set->items[set->count++] = blob;
        layer->blob[i] = blob;
        layer->train_blob[i] = blob->lr_mult != 0;
    }
    return 0;
}

/* Runs `setup` and `forward`; the status of the first that fails. */
static inline int run_forward(struct one_layer *one)
{
    LS_TRY(one->layer->type->setup(one->layer, &one->error));
    LS_TRY(make_blobs(one));
    LS_TRY(one->layer->type->forward(one->layer, &one->error));
    LS_TRY(ls_layer_check_types(one->layer, 0, &one->error));
    return one->graph->failed ? LOCKSTEP_RESOURCE : 0;
}

/* Gives every top that has bytes a gradient and runs `backward`. */
static inline int run_backward(struct one_layer *one)
{
    struct ls_layer *layer = one->layer;
    one->graph->backward = true;
    for (int i = 0; i < layer->tops; i++) {
        if (layer->top[i]->storage == LS_STORE_NONE || layer->type->is_loss ||
            ls_graph_gradient(one->graph, layer->top[i]) != NULL)
            continue;
        ls_graph_add_gradient(one->graph, layer->top[i],
                              ls_graph_gradient_value(one->graph, layer->top[i]));
    }
    for (int i = 0; i < layer->bottoms; i++) {
        bool stopped = layer->definition->n_propagate_down > (size_t)i &&
                       !layer->definition->propagate_down[i];
        layer->propagate[i] = layer->bottom[i]->needs_grad && !stopped;
    }
    if (layer->type->backward != NULL)
        LS_TRY(layer->type->backward(layer, &one->error));
    return one->graph->failed ? LOCKSTEP_RESOURCE : 0;
}

/* ---- What came out, as text ------------------------------------------------------------------ */

static inline void describe_shape(struct ls_text *text, const struct ls_value *value)
{
    const struct ls_shape *shape = &value->shape;
    for (int i = 0; i < shape->rank; i++)
        ls_text_format(text, "%s%lld", i > 0 ? "x" : "", (long long)shape->dim[i]);
    if (value->storage == LS_STORE_NONE)
        ls_text_add(text, shape->rank > 0 ? " figures" : "figure");
    else if (value->sample_axis < 0)
        ls_text_add(text, "?");
    else if (value->sample_axis > 0)
        ls_text_format(text, "@%d", value->sample_axis);
    if (value->storage != LS_STORE_NONE && value->rows > 1)
        ls_text_format(text, "/%lld", (long long)value->rows);
    if (value->type != LS_F32)
        ls_text_format(text, "%%%s", ls_dtype_name(value->type));
    if (value->needs_grad)
        ls_text_add(text, "!");
}

/* The tops in the form of the bottoms ("10x20x24x24"); figures are marked. */
static inline void describe_tops(struct ls_text *text, const struct one_layer *one)
{
    for (int i = 0; i < one->layer->tops; i++) {
        ls_text_add(text, i > 0 ? ", " : "");
        describe_shape(text, one->layer->top[i]);
    }
}

static inline void describe_values(struct ls_text *text, struct ls_value *const *values, int count)
{
    for (int i = 0; i < count; i++)
        ls_text_format(text, "%s%s", i > 0 ? " " : "", values[i] != NULL ? values[i]->name : "-");
}

/* The ops from number `from` on: "inner product(x ip.weight ip.bias > y)", absent values as "-". */
static inline void describe_ops(struct ls_text *text, const struct ls_graph *graph, size_t from)
{
    for (size_t i = from; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        ls_text_format(text, "%s%s(", i > from ? "; " : "", ls_op_kind_name(op->kind));
        describe_values(text, op->input, op->inputs);
        ls_text_add(text, op->outputs > 0 ? " > " : "");
        describe_values(text, op->output, op->outputs);
        ls_text_add(text, ")");
    }
}

#endif
