/* The forward pass of a graph: one layer after the other, as the definition lists them.
 *
 * Blobs are names for values: a layer that writes a blob which it also reads (in place, as Caffe's
 * nets do) gives the name a new value; the old one stays valid for its readers. Several
 * readers of one value are Caffe's implicit Split; nothing has to be inserted for them.
 *
 * A layer that fails is reported and its tops are marked as unknown, so that all problems of a net
 * are found in one go without reporting their consequences.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "graph/debug.h"
#include "graph/known_numbers.h"
#include "graph/label_fills.h"
#include "graph/sample_states.h"
#include "graph/unknown_bottom.h"
#include "ir/filter.h"
#include "ir/layer.h"
#include "layers/layers.h"

struct blob {
    const char *name;
    struct ls_value *value; /* NULL: its producer failed */
    struct ls_layer *producer;
    int top;
    bool read;
};

struct builder {
    struct ls_graph *graph;
    const struct ls_net_definition *net;
    struct blob *blobs;
    size_t blob_count, blob_capacity;
    struct ls_names names;         /* of blobs: the index of the latest */
    Lockstep__Precision precision; /* of layers that do not say their own */
    bool portable;                 /* the same: their algorithm is PORTABLE */
    bool round_inputs;
    struct ls_error *error;
    int status; /* of the first problem */
};

static struct blob *find_blob(struct builder *builder, const char *name)
{
    size_t index;
    return ls_names_find(&builder->names, name, &index) ? &builder->blobs[index] : NULL;
}

static int note(struct builder *builder, int status)
{
    if (builder->status == 0)
        builder->status = status;
    return status;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static int check_number(const struct ls_layer *layer, const char *what, size_t count, int min,
                        int max, struct ls_error *error)
{
    if (count > LS_LAYER_VALUES_MAX)
        return ls_layer_fail(
            layer, error, NULL, what, "join them in two steps, by layers of fewer of them",
            "a layer has at most %d %ss, not %zu", LS_LAYER_VALUES_MAX, what, count);
    if (count >= (size_t)min && (max < 0 || count <= (size_t)max))
        return 0;
    char bounds[64];
    if (max < 0)
        snprintf(bounds, sizeof bounds, "at least %d", min);
    else if (min == max)
        snprintf(bounds, sizeof bounds, "%d", min);
    else
        snprintf(bounds, sizeof bounds, "%d to %d", min, max);
    return ls_layer_fail(layer, error, NULL, what, NULL, "its type %s takes %s %s%s, not %zu",
                         layer->type->type, bounds, what, max == 1 ? "" : "s", count);
}

/* Allocates the lists of a layer, whose type may be unknown. */
static bool allocate_lists(struct ls_layer *layer)
{
    size_t bottoms = (size_t)layer->bottoms + 1, tops = (size_t)layer->tops + 1;
    layer->bottom = ls_alloc(bottoms, sizeof *layer->bottom);
    layer->propagate = ls_alloc(bottoms, sizeof *layer->propagate);
    layer->top = ls_alloc(tops, sizeof *layer->top);
    layer->loss_weight = ls_alloc(tops, sizeof *layer->loss_weight);
    layer->top_used = ls_alloc(tops, sizeof *layer->top_used);
    layer->state = ls_alloc(1, layer->type != NULL ? layer->type->state_size + 1 : 1);
    return layer->bottom != NULL && layer->propagate != NULL && layer->top != NULL &&
           layer->loss_weight != NULL && layer->top_used != NULL && layer->state != NULL;
}

static int resolve_loss_weights(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__LayerParameter *definition = layer->definition;
    if (definition->n_loss_weight == 0) {
        if (layer->type->is_loss)
            layer->loss_weight[0] = 1;
        return 0;
    }
    if (definition->n_loss_weight != (size_t)layer->tops)
        return ls_layer_fail(layer, error, NULL, "loss_weight", NULL,
                             "loss_weight must be given once for each of the %d tops, not %zu "
                             "times",
                             layer->tops, definition->n_loss_weight);
    for (int i = 0; i < layer->tops; i++) {
        layer->loss_weight[i] = definition->loss_weight[i];
        if (!isfinite(layer->loss_weight[i]))
            return ls_layer_fail(layer, error, NULL, "loss_weight", NULL,
                                 "loss_weight must be a finite number");
    }
    return 0;
}

/* Whether some layer lost the names of its tops when it was read. */
static bool lost_tops(const struct ls_net_definition *net)
{
    for (size_t i = 0; net->status != 0 && i < net->net->n_layer; i++)
        if (net->net->layer[i]->n_top == 0 &&
            ls_definition_is_damaged(net->definition, net->net->layer[i]))
            return true;
    return false;
}

/* Reports a bottom that nothing above makes. */
static int report_bottom(const struct builder *builder, const struct ls_layer *layer, int index)
{
    const char *names[256];
    size_t count = 0;
    LS_ASSERT(builder->blobs != NULL || builder->blob_count == 0);
    for (size_t b = 0; b < builder->blob_count && count < 256; b++)
        names[count++] = builder->blobs[b].name;
    return ls_graph_unknown_bottom(builder->net, layer, index, names, count, builder->error);
}

/* Binds the layer's bottoms to values. Returns 1 (without a report) if one is unknown because its
 * producer failed. */
static int bind_bottoms(struct builder *builder, struct ls_layer *layer)
{
    int result = 0;
    for (int i = 0; i < layer->bottoms; i++) {
        const char *name = layer->definition->bottom[i];
        struct blob *blob = find_blob(builder, name);
        if (blob == NULL) {
            if (!lost_tops(builder->net))
                note(builder, report_bottom(builder, layer, i));
            result = 1;
            continue;
        }
        blob->read = true;
        layer->bottom[i] = blob->value;
        if (blob->value == NULL)
            result = 1;
        else if (blob->value->storage == LS_STORE_NONE && strcmp(layer->type->type, "Silence") != 0)
            result = note(builder,
                          ls_layer_fail(layer, builder->error, NULL, "bottom",
                                        "give the loss layer a loss_weight instead",
                                        "'%s' is a metric of the whole batch, which is not known "
                                        "before all micro-batches are done; no layer can read it",
                                        name));
        if (blob->producer != NULL)
            blob->producer->top_used[blob->top] = true;
    }
    size_t given = layer->definition->n_propagate_down;
    if (given != 0 && given != (size_t)layer->bottoms)
        result = note(builder, ls_layer_fail(layer, builder->error, NULL, "propagate_down", NULL,
                                             "propagate_down must be given once for each of the "
                                             "%d bottoms, or not at all",
                                             layer->bottoms));
    return result;
}

/* Gives the layer's tops their names; a name that exists must be a bottom of this layer. */
static int register_tops(struct builder *builder, struct ls_layer *layer)
{
    for (int i = 0; i < layer->tops; i++) {
        const char *name = ls_layer_top_name(layer, i);
        bool in_place = false;
        for (int b = 0; b < layer->bottoms; b++)
            in_place |= strcmp(layer->definition->bottom[b], name) == 0;
        const struct blob *old = find_blob(builder, name);
        if (old != NULL && !in_place)
            note(builder, ls_layer_fail(layer, builder->error, NULL, "top",
                                        "give one of the two another name",
                                        "its top '%s' is also a top of layer '%s'", name,
                                        old->producer->name));
        if (!LS_GROW(builder->blobs, builder->blob_count, builder->blob_capacity) ||
            !ls_names_set(&builder->names, name, builder->blob_count))
            return note(builder, ls_fail_memory(builder->error, "the table of blobs"));
        builder->blobs[builder->blob_count++] =
            (struct blob){.name = name, .value = layer->top[i], .producer = layer, .top = i};
    }
    return 0;
}

/* A top that is no metric but has a loss weight: the sum of its elements is part of the loss. */
static int emit_loss_weights(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_graph *graph = layer->graph;
    for (int i = 0; i < layer->tops; i++) {
        if (layer->loss_weight[i] == 0 || (ls_layer_is_loss(layer) && i == 0))
            continue;
        if (layer->type->is_loss || layer->top[i]->storage != LS_STORE_ARENA)
            return ls_layer_fail(layer, error, NULL, "loss_weight", "set it to 0",
                                 "top '%s' of a %s layer cannot be a loss",
                                 ls_layer_top_name(layer, i), layer->type->type);
        /* Each micro-batch would count it once more. */
        if (layer->top[i]->sample_axis < 0 && !ls_layer_mix(layer))
            return ls_layer_fail(layer, error, NULL, "loss_weight", "set it to 0",
                                 "top '%s' does not belong to samples and cannot be a loss",
                                 ls_layer_top_name(layer, i));
        struct ls_value *counted = ls_filter_fill(graph, layer->top[i], 0);
        struct ls_op *op = ls_graph_op(graph, LS_OP_SUM_LOSS);
        ls_op_in(graph, op, counted);
        if (op == NULL)
            return ls_fail_memory(error, "an op");
        op->attr.loss.loss_weight = layer->loss_weight[i];
        op->attr.loss.metric_offset = ls_graph_record(graph, 2);
        ls_graph_metric(graph, layer, i,
                        (struct ls_metric){.entries = 1,
                                           .offset = op->attr.loss.metric_offset,
                                           .count_offset = -1});
    }
    return 0;
}

/* The gradient stops at a layer without a backward pass; not where it only hands a bottom on. */
static void stop_gradient(struct ls_layer *layer)
{
    for (int t = 0; t < layer->tops && layer->type->backward == NULL; t++) {
        bool handed_on = false;
        for (int b = 0; b < layer->bottoms; b++)
            handed_on |= layer->top[t] == layer->bottom[b];
        if (!handed_on)
            layer->top[t]->needs_grad = false;
    }
}

/* What a data layer brings first gets a gradient, though nothing learns from it. */
static void begin_gradient(const struct builder *builder, struct ls_layer *layer)
{
    struct ls_value *value = layer->tops > 0 ? layer->top[0] : NULL;
    if (builder->net->data_gradients && builder->graph->training && value != NULL &&
        value->storage == LS_STORE_INPUT && ls_dtype_is_float(value->type))
        value->needs_grad = true;
}

/* Values of the layer that do not have the rows of all samples any more: their one sample is the
 * batch. */
static void mark_mixed(struct ls_graph *graph, size_t first)
{
    for (size_t i = first; i < graph->value_count && graph->whole; i++) {
        struct ls_value *value = graph->values[i];
        int axis = value->sample_axis;
        if (axis < 0 ||
            (axis < value->shape.rank && value->shape.dim[axis] == value->rows * graph->samples))
            continue;
        value->sample_axis = value->shape.rank > 0 ? 0 : -1;
        value->rows = value->shape.rank > 0 ? value->shape.dim[0] : 0;
    }
}

static int set_up(struct builder *builder, struct ls_layer *layer)
{
    struct ls_error *error = builder->error;
    const size_t first = builder->graph->op_count, values = builder->graph->value_count;
    if (layer->type->mixes_samples && !ls_layer_mix(layer))
        return ls_layer_fail(layer, error, NULL, "type", NULL,
                             "a %s layer mixes the samples of a batch, which is cut into "
                             "micro-batches here",
                             layer->type->type);
    LS_TRY(ls_filter_check(layer, error));
    LS_TRY(layer->type->setup(layer, error));
    LS_TRY(ls_graph_attach_parameters(builder->graph, layer, error));
    LS_TRY(layer->type->forward(layer, error));
    if (builder->graph->failed)
        return ls_fail_memory(error, "the graph");
    stop_gradient(layer);
    begin_gradient(builder, layer);
    mark_mixed(builder->graph, values);
    LS_TRY(ls_filter_hand_on(layer, values, error));
    LS_TRY(emit_loss_weights(layer, error));
    return ls_layer_check_types(layer, first, error);
}

static int add_layer(struct builder *builder, const Lockstep__LayerParameter *definition)
{
    struct ls_graph *graph = builder->graph;
    struct ls_layer *layer = ls_alloc(1, sizeof *layer);
    if (layer == NULL || !LS_GROW(graph->layers, graph->layer_count, graph->layer_capacity)) {
        ls_free(layer);
        return note(builder, ls_fail_memory(builder->error, "a layer"));
    }
    layer->index = (int)graph->layer_count;
    graph->layers[graph->layer_count++] = layer;
    layer->definition = definition;
    layer->name = definition->name != NULL ? definition->name : "(unnamed)";
    layer->graph = graph;
    const Lockstep__Precision precision =
        definition->has_precision ? definition->precision : builder->precision;
    layer->bf16 = precision == LOCKSTEP__PRECISION__BF16;
    layer->tf32 = precision == LOCKSTEP__PRECISION__TF32;
    layer->portable = builder->portable;
    bool damaged =
        builder->net->status != 0 && ls_definition_is_damaged(builder->net->definition, definition);
    if (definition->type != NULL && !damaged)
        layer->type = ls_layer_type_find(definition->type);
    const struct ls_layer_type *type = layer->type;
    layer->bottoms = (int)definition->n_bottom;
    layer->tops = (int)definition->n_top;
    if (type != NULL && layer->tops < type->auto_tops)
        layer->tops = type->auto_tops;
    if (!allocate_lists(layer))
        return note(builder, ls_fail_memory(builder->error, "a layer"));
    if (type == NULL) { /* it has been reported */
        note(builder, LOCKSTEP_DEFINITION);
        return register_tops(builder, layer); /* so that their readers are not reported, too */
    }
    int bad = check_number(layer, "bottom", definition->n_bottom, type->bottoms_min,
                           type->bottoms_max, builder->error);
    if (bad == 0)
        bad = check_number(layer, "top", (size_t)layer->tops, type->tops_min, type->tops_max,
                           builder->error);
    if (bad == 0)
        bad = resolve_loss_weights(layer, builder->error);
    if (bad != 0)
        note(builder, bad);
    graph->emitting = layer;
    if (bind_bottoms(builder, layer) == 0 && bad == 0)
        bad = set_up(builder, layer);
    if (bad != 0)
        note(builder, bad);
    return register_tops(builder, layer);
}

/* ---- The whole net --------------------------------------------------------------------------- */

static bool has_state(const struct ls_layer *layer)
{
    for (size_t i = 0; i < layer->graph->sample_state_count; i++)
        if (layer->graph->sample_states[i].layer == layer)
            return true;
    return false;
}

/* Whether something hangs on the layer's name. */
static bool name_matters(const struct ls_layer *layer)
{
    return layer->blobs > 0 || (layer->type != NULL && layer->type->is_random) || has_state(layer);
}

/* Two layers of one name would share weights, states or random numbers by accident. Others may:
 * some of Caffe's own nets have two losses called "loss". */
static void check_names(struct builder *builder)
{
    struct ls_graph *graph = builder->graph;
    struct ls_names names = {0};
    size_t other;
    for (size_t i = 0; i < graph->layer_count; i++) {
        struct ls_layer *layer = graph->layers[i];
        if (!name_matters(layer))
            continue;
        if (ls_names_find(&names, layer->name, &other))
            note(builder, ls_layer_fail(layer, builder->error, NULL, "name",
                                        "weights, states and random numbers go by the layer's "
                                        "name",
                                        "another layer of this phase has the same name"));
        else if (!ls_names_set(&names, layer->name, i))
            note(builder, ls_fail_memory(builder->error, "the table of layers"));
    }
    ls_names_free(&names);
}

static int by_name(const void *a, const void *b)
{
    const struct ls_metric *first = a, *second = b;
    int order = strcmp(first->name, second->name);
    return order != 0 ? order : first->offset - second->offset;
}

/* Metrics that no layer reads are what the net reports, in alphabetical order as in Caffe. */
static void mark_outputs(struct ls_graph *graph)
{
    for (size_t i = 0; i < graph->metric_count; i++) {
        struct ls_metric *metric = &graph->metrics[i];
        metric->is_output = !metric->layer->top_used[metric->top];
    }
    if (graph->metric_count > 1)
        qsort(graph->metrics, graph->metric_count, sizeof *graph->metrics, by_name);
}

static int build(struct builder *builder)
{
    const Lockstep__NetParameter *net = builder->net->net;
    note(builder, builder->net->status);
    note(builder, ls_graph_check_types(builder->net, builder->error));
    for (size_t i = 0; i < net->n_layer; i++)
        if (add_layer(builder, net->layer[i]) == LOCKSTEP_RESOURCE)
            return LOCKSTEP_RESOURCE;
    builder->graph->emitting = NULL;
    check_names(builder);
    LS_TRY(builder->status);
    LS_TRY(ls_graph_check_states(builder->graph, builder->error));
    LS_TRY(ls_graph_check_label_fills(builder->graph, builder->error));
    LS_TRY(ls_graph_check_known_numbers(builder->graph, builder->error));
    mark_outputs(builder->graph);
    if (builder->graph->training)
        LS_TRY(ls_graph_build_backward(builder->graph, builder->error));
    ls_graph_set_precision(builder->graph);
    if (builder->round_inputs)
        ls_graph_round_inputs(builder->graph);
    ls_graph_rewrite(builder->graph);
    if (builder->net->debug_info && builder->graph->training && !builder->graph->failed)
        ls_graph_add_debug(builder->graph);
    return builder->graph->failed ? ls_fail_memory(builder->error, "the graph") : 0;
}

/* A builder with an empty graph; builder.graph is NULL where there is no memory. */
static struct builder begin(const struct ls_graph_options *options, struct ls_error *error)
{
    struct builder builder = {.graph = ls_graph_new(),
                              .net = options->net,
                              .precision = options->net->precision,
                              .portable = options->net->portable,
                              .round_inputs = options->round_inputs,
                              .error = error};
    if (builder.graph == NULL)
        return builder;
    builder.graph->phase = options->phase;
    builder.graph->samples = options->samples;
    builder.graph->update_samples = options->update_samples;
    builder.graph->seed = options->seed;
    builder.graph->average_precision = options->net->average_precision;
    builder.graph->class_figures = options->net->class_figures;
    builder.graph->training = options->training;
    builder.graph->whole = options->whole;
    builder.graph->dummy = options->net->dummy;
    builder.graph->cached = options->net->cached;
    builder.graph->net = options->net->net;
    builder.graph->parameters = options->parameters;
    builder.graph->definition = options->net->definition;
    builder.graph->sources = options->sources;
    return builder;
}

int ls_graph_find_mixer(const struct ls_graph_options *options,
                        const Lockstep__LayerParameter **mixer, struct ls_error *error)
{
    *mixer = NULL;
    struct ls_graph_options forward = *options;
    forward.whole = true;
    forward.training = false;
    forward.parameters = ls_parameter_set_new();
    struct builder builder = begin(&forward, NULL);
    const Lockstep__NetParameter *net = options->net->net;
    bool ready = forward.parameters != NULL && builder.graph != NULL;
    for (size_t i = 0; i < net->n_layer && ready; i++)
        ready = add_layer(&builder, net->layer[i]) != LOCKSTEP_RESOURCE;
    ready = ready && !builder.graph->failed && builder.status != LOCKSTEP_RESOURCE;
    if (ready && builder.graph->mixer != NULL)
        *mixer = builder.graph->mixer->definition;
    ls_graph_free(builder.graph);
    ls_free(builder.blobs);
    ls_names_free(&builder.names);
    ls_parameter_set_free(forward.parameters);
    return ready ? 0 : ls_fail_memory(error, "a net");
}

int ls_graph_build(const struct ls_graph_options *options, struct ls_graph **graph,
                   struct ls_error *error)
{
    *graph = NULL;
    struct builder builder = begin(options, error);
    if (builder.graph == NULL)
        return ls_fail_memory(error, "a graph");
    int status = build(&builder);
    ls_free(builder.blobs);
    ls_names_free(&builder.names);
    if (options->check != NULL && status != LOCKSTEP_RESOURCE) {
        int found = options->check(builder.graph, error);
        status = status != 0 ? status : found;
    }
    if (status != 0) {
        ls_graph_free(builder.graph);
        return status;
    }
    *graph = builder.graph;
    return 0;
}
