/* Opening nets: data sets, batches, plans. See engine/net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/labels.h"
#include "ir/layer.h"
#include "ops/cpu/filler.h"

static bool is_type(const Lockstep__LayerParameter *layer, const char *type)
{
    return layer->type != NULL && strcmp(layer->type, type) == 0;
}

/* Reports a problem of a source layer, at its batch_size where it has one. */
static int batch_fail(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                      struct ls_error *error, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static int batch_fail(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                      struct ls_error *error, const char *hint, const char *format, ...)
{
    char place[LS_PLACE_MAX], message[300];
    const Lockstep__DataParameter *data = layer->data_param;
    const void *at = is_type(layer, "Data") && data != NULL ? (const void *)data : layer;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    ls_place(net->options.definition->definition, at,
             at == data && data->has_batch_size ? "batch_size" : NULL, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s: %s",
                   layer->name != NULL ? layer->name : "(unnamed)", message);
}

/* The batch of one source layer. What is wrong is said in the words of the layer itself
 * (layers/source.c), which would say it later if its data could be opened. */
static int check_batch(struct ls_net *net, const Lockstep__LayerParameter *layer,
                       struct ls_error *error)
{
    int64_t batch = ls_source_batch(layer);
    static const char hint[] = "batch_size is the global batch, on any number of workers";
    if (is_type(layer, "Data") && layer->data_param == NULL)
        return batch_fail(net, layer, error, NULL, "data_param is missing");
    if (is_type(layer, "Data") && !layer->data_param->has_batch_size)
        return batch_fail(net, layer, error, hint, "batch_size is missing");
    if (batch <= 0)
        return batch_fail(net, layer, error, hint, "a batch of 0 samples is not possible");
    if (batch > INT32_MAX)
        return batch_fail(net, layer, error, hint, "a batch of %lld samples is too large",
                          (long long)batch);
    if (net->batching.batch != 0 && net->batching.batch != batch)
        return batch_fail(net, layer, error, "give all sources of a phase one batch size",
                          "has batches of %lld samples, but the net's first source has batches of "
                          "%lld; all must be equal",
                          (long long)batch, (long long)net->batching.batch);
    net->batching.batch = batch;
    return 0;
}

/* All sources of a net must hand out batches of one size. */
static int find_batch(struct ls_net *net, struct ls_error *error)
{
    const Lockstep__NetParameter *definition = net->options.definition->net;
    int status = 0;
    for (size_t i = 0; i < definition->n_layer; i++) {
        const Lockstep__LayerParameter *layer = definition->layer[i];
        bool outside = is_type(layer, "Input");
        if (!is_type(layer, "Data") && !is_type(layer, "DummyData") && !outside)
            continue;
        if (check_batch(net, layer, error) != 0)
            status = LOCKSTEP_DEFINITION;
        if (outside && !net->options.from_outside)
            status = batch_fail(net, layer, error, "use a Data layer for this phase",
                                "an Input layer gets its data from the calling program; there is "
                                "none here");
    }
    if (status == 0 && net->batching.batch == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, net->options.definition->definition->file,
                       "does an include rule leave out the Data layer of this phase?",
                       "the %s net has no layer that brings data",
                       net->options.phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test");
    return status;
}

static int open_dataset(struct ls_net *net, const Lockstep__LayerParameter *layer,
                        struct ls_error *error)
{
    struct ls_dataset **dataset = &net->datasets[net->dataset_count];
    LS_TRY(ls_dataset_open(layer, net->options.definition->definition,
                           (Lockstep__Phase)net->options.phase, net->options.seed,
                           net->options.augment, dataset, error));
    net->data_layers[net->dataset_count] = layer;
    struct ls_source_shape *shape = &net->shapes[net->dataset_count++];
    shape->layer = layer->name;
    memcpy(shape->sample, ls_dataset_shape(*dataset), sizeof shape->sample);
    int64_t samples = ls_dataset_size(*dataset);
    if (net->dataset_count > 1 && net->batching.samples != samples)
        return batch_fail(net, layer, error, "data layers of one phase are read in step",
                          "its data set and that of the layer above have different numbers of "
                          "samples");
    if (net->options.samples > 0 && net->options.samples < samples)
        samples = net->options.samples;
    net->batching.samples = samples;
    net->batching.last = ls_dataset_last_batch(*dataset);
    return 0;
}

static int open_datasets(struct ls_net *net, struct ls_error *error)
{
    const Lockstep__NetParameter *definition = net->options.definition->net;
    size_t room = definition->n_layer + 1;
    net->datasets = ls_alloc(room, sizeof *net->datasets);
    net->data_layers = ls_alloc(room, sizeof *net->data_layers);
    net->shapes = ls_alloc(room, sizeof *net->shapes);
    if (net->datasets == NULL || net->data_layers == NULL || net->shapes == NULL)
        return ls_fail_memory(error, "data sets");
    net->batching.samples = INT64_MAX;
    net->batching.last = LS_LAST_WRAP;
    int status = 0;
    for (size_t i = 0; i < definition->n_layer; i++)
        if (is_type(definition->layer[i], "Data")) {
            int result = open_dataset(net, definition->layer[i], error);
            status = status != 0 ? status : result;
        }
    net->sources = (struct ls_source_shapes){
        .item = net->shapes, .count = (size_t)net->dataset_count, .batch = net->batching.batch};
    return status;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Fillers are resolved when parameters are filled; what is wrong with them is said here, where the
 * definition is at hand. */
static int check_filler(const struct ls_layer *layer, const Lockstep__FillerParameter *filler,
                        const struct ls_shape *shape, const char *what, struct ls_error *error)
{
    static _Thread_local struct ls_error found;
    struct ls_filler resolved;
    ls_error_clear(&found);
    if (filler == NULL || ls_filler_resolve(&resolved, filler, shape, &found) == 0)
        return 0;
    const struct ls_problem *problem = &found.problems[0];
    return ls_layer_fail(layer, error, filler, NULL,
                         problem->hint[0] != '\0' ? problem->hint : NULL, "%s filler: %s", what,
                         problem->message);
}

static int check_fillers(const struct ls_graph *graph, struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        for (int b = 0; b < layer->blobs; b++) {
            const struct ls_blob_request *request = &layer->request[b];
            if (layer->blob[b] != NULL &&
                check_filler(layer, request->filler, &request->shape, request->name, error) != 0)
                status = LOCKSTEP_DEFINITION;
        }
    }
    for (size_t i = 0; i < graph->op_count; i++) { /* of DummyData: the shape is a sample's */
        const struct ls_op *op = graph->ops[i];
        if (op->kind != LS_OP_FILL || op->layer == NULL || op->output[0] == NULL)
            continue;
        struct ls_shape sample = op->output[0]->shape;
        if (op->output[0]->sample_axis == 0)
            sample.dim[0] = op->output[0]->rows;
        if (check_filler(op->layer, op->attr.fill.filler, &sample, "data", error) != 0)
            status = LOCKSTEP_DEFINITION;
    }
    return status;
}

int ls_net_add_plan(struct ls_net *net, int64_t samples, struct ls_error *error)
{
    if (ls_net_plan_for(net, samples) != NULL)
        return 0;
    const struct ls_net_options *options = &net->options;
    struct ls_graph_options graph_options = {.net = options->definition,
                                             .phase = options->phase,
                                             .samples = samples,
                                             .seed = options->seed,
                                             .training = options->training,
                                             .parameters = options->parameters,
                                             .sources = &net->sources,
                                             .check = check_fillers};
    struct ls_graph *graph = NULL;
    LS_TRY(ls_graph_build(&graph_options, &graph, error));
    if (!LS_GROW(net->plans, net->plan_count, net->plan_capacity)) {
        ls_graph_free(graph);
        return ls_fail_memory(error, "a plan");
    }
    struct ls_net_plan *plan = &net->plans[net->plan_count];
    *plan = (struct ls_net_plan){.samples = samples};
    plan->output = options->output != NULL ? options->output(graph) : NULL;
    LS_TRY(ls_plan_build(graph, options->backend, options->views, &plan->output, 1, &plan->plan,
                         error));
    net->plan_count++;
    return 0;
}

struct ls_net_plan *ls_net_plan_for(struct ls_net *net, int64_t samples)
{
    for (size_t i = 0; i < net->plan_count; i++)
        if (net->plans[i].samples == samples)
            return &net->plans[i];
    return NULL;
}

/* Plans for the sizes of micro-batches that a batch of `count` samples is cut into. */
static int add_plans_for_batch(struct ls_net *net, int64_t count, struct ls_error *error)
{
    int64_t n = ls_micro_batch_count(count, net->batching.micro_batch);
    LS_TRY(ls_net_add_plan(net, (count + n - 1) / n, error));
    return ls_net_add_plan(net, count / n, error);
}

static int add_plans(struct ls_net *net, struct ls_error *error)
{
    const struct ls_batching *batching = &net->batching;
    int64_t full = batching->batch < batching->samples || batching->last == LS_LAST_WRAP
                       ? batching->batch
                       : batching->samples;
    LS_TRY(add_plans_for_batch(net, full, error));
    if (batching->last == LS_LAST_PARTIAL && batching->samples % batching->batch != 0)
        LS_TRY(add_plans_for_batch(net, batching->samples % batching->batch, error));
    return 0;
}

/* Which data set and which of its tops each input of the graph is. */
static int map_inputs(struct ls_net *net, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    net->input_count = (int)graph->input_count;
    net->inputs = ls_alloc(graph->input_count + 1, sizeof *net->inputs);
    if (net->inputs == NULL)
        return ls_fail_memory(error, "inputs");
    for (size_t i = 0; i < graph->input_count; i++) {
        net->inputs[i][0] = -1;
        net->inputs[i][1] = graph->inputs[i].top;
        for (int d = 0; d < net->dataset_count; d++)
            if (net->data_layers[d] == graph->inputs[i].layer->definition)
                net->inputs[i][0] = d;
    }
    return 0;
}

static int check_batching(struct ls_net *net, struct ls_error *error)
{
    struct ls_batching *batching = &net->batching;
    batching->iter_size = net->options.iter_size > 0 ? net->options.iter_size : 1;
    batching->micro_batch = net->options.micro_batch > 0 ? net->options.micro_batch
                                                         : ls_micro_batch_default(batching->batch);
    if (batching->micro_batch > batching->batch)
        batching->micro_batch = batching->batch;
    if (batching->last == LS_LAST_DROP && batching->samples < batching->batch)
        return ls_fail(error, LOCKSTEP_DEFINITION, net->options.definition->definition->file,
                       "use a smaller batch_size, or another last_batch",
                       "last_batch: DROP leaves nothing of %lld samples in batches of %lld",
                       (long long)batching->samples, (long long)batching->batch);
    return 0;
}

static int open(struct ls_net *net, struct ls_error *error)
{
    int status = find_batch(net, error);
    if (status != 0) /* any will do to find what else is wrong */
        net->batching.batch = 1;
    int data_status = open_datasets(net, error);
    if (status != 0 && data_status == 0) {
        net->sources.batch = -1;
        ls_net_add_plan(net, 1, error);
    }
    LS_TRY(status);
    LS_TRY(data_status);
    LS_TRY(check_batching(net, error));
    if (net->options.from_outside)
        LS_TRY(ls_net_add_plan(net, 1, error));
    else
        LS_TRY(add_plans(net, error));
    LS_TRY(map_inputs(net, error));
    return net->options.from_outside ? 0 : ls_net_check_labels(net, error);
}

int ls_net_open(const struct ls_net_options *options, struct ls_net **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_net *net = ls_alloc(1, sizeof *net);
    if (net == NULL)
        return ls_fail_memory(error, "a net");
    net->options = *options;
    int status = open(net, error);
    if (status != 0)
        ls_net_close(net);
    else
        *out = net;
    return status;
}

size_t ls_net_arena_bytes(const struct ls_net *net)
{
    size_t largest = 0;
    for (size_t i = 0; i < net->plan_count; i++)
        if (net->plans[i].plan->arena_bytes > largest)
            largest = net->plans[i].plan->arena_bytes;
    return largest;
}

const struct ls_graph *ls_net_graph(const struct ls_net *net)
{
    return net->plans[0].plan->graph;
}

int ls_net_feed(const struct ls_net *net, int64_t updates_end, struct ls_feed **feed,
                struct ls_error *error)
{
    struct ls_feed_options options = {.datasets = net->datasets,
                                      .dataset_count = net->dataset_count,
                                      .inputs = (const int(*)[2])net->inputs,
                                      .input_count = net->input_count,
                                      .batching = net->batching,
                                      .updates_end = updates_end};
    return ls_feed_open(&options, feed, error);
}
