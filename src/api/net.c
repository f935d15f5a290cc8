/* The public interface: a net's layers and shapes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "base/memory.h"
#include "engine/net.h"
#include "ir/layer.h"
#include "ops/devices.h"
#include "solver/dummy_data.h"

struct lockstep_net {
    struct ls_net_definition definition; /* its file is owned */
    struct ls_parameter_set *parameters;
    struct ls_view_set views;
    struct ls_net *net;
    struct lockstep_net_layer *layers;
    struct lockstep_blob *blobs; /* of all layers */
    const char **names;          /* of all bottoms */
    size_t layer_count;
};

void lockstep_net_options_init(struct lockstep_net_options *options)
{
    *options = (struct lockstep_net_options){.struct_size = sizeof *options};
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static struct lockstep_blob blob_of(const char *name, const struct ls_shape *shape)
{
    struct lockstep_blob blob = {.name = name, .rank = shape->rank};
    for (int i = 0; i < shape->rank; i++)
        blob.extent[i] = shape->dim[i];
    return blob;
}

/* A top as it is for the batch; what is a figure has no shape. */
static struct lockstep_blob top_of(const struct lockstep_net *net, const struct ls_layer *layer,
                                   int top)
{
    const struct ls_value *value = layer->top[top];
    struct ls_shape shape = {0};
    if (value != NULL && value->storage != LS_STORE_NONE) {
        shape = value->shape;
        if (value->sample_axis >= 0 && /* else it is of the batch already */
            shape.dim[value->sample_axis] == value->rows * layer->graph->samples)
            shape.dim[value->sample_axis] =
                shape.dim[value->sample_axis] / layer->graph->samples * net->net->batching.batch;
    }
    return blob_of(ls_layer_top_name(layer, top), &shape);
}

static uint64_t bytes_of(const struct lockstep_blob *blob, enum ls_dtype type)
{
    uint64_t bytes = (uint64_t)ls_dtype_size(type);
    for (int i = 0; i < blob->rank; i++)
        bytes *= (uint64_t)blob->extent[i];
    return bytes;
}

static void describe(const struct lockstep_net *net, const struct ls_layer *layer,
                     struct lockstep_net_layer *row, struct lockstep_blob *blobs,
                     const char **names)
{
    struct ls_cost cost = {0};
    *row = (struct lockstep_net_layer){.name = layer->name,
                                       .type = layer->type->type,
                                       .bottoms = names,
                                       .bottom_count = (size_t)layer->bottoms,
                                       .tops = blobs,
                                       .top_count = (size_t)layer->tops,
                                       .parameters = blobs + layer->tops};
    for (int i = 0; i < layer->bottoms; i++)
        names[i] = layer->definition->bottom[i];
    for (int i = 0; i < layer->tops; i++) {
        blobs[i] = top_of(net, layer, i);
        if (layer->top[i] != NULL && layer->top[i]->storage != LS_STORE_NONE)
            row->bytes += bytes_of(&blobs[i], layer->top[i]->type);
    }
    for (int i = 0; i < layer->blobs; i++) {
        if (layer->blob[i] == NULL)
            continue;
        blobs[layer->tops + (int)row->parameter_count++] =
            blob_of(layer->request[i].name, &layer->request[i].shape);
        row->shares |= strcmp(layer->blob[i]->layer, layer->name) != 0;
    }
    if (layer->type->cost != NULL)
        layer->type->cost(layer, &cost);
    row->flops = cost.forward_flops / (double)layer->graph->samples;
}

static int make_rows(struct lockstep_net *net, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net->net);
    size_t blobs = 1, names = 1;
    for (size_t i = 0; i < graph->layer_count; i++) {
        blobs += (size_t)(graph->layers[i]->tops + graph->layers[i]->blobs);
        names += (size_t)graph->layers[i]->bottoms;
    }
    net->layers = ls_alloc(graph->layer_count + 1, sizeof *net->layers);
    net->blobs = ls_alloc(blobs, sizeof *net->blobs);
    net->names = ls_alloc(names, sizeof *net->names);
    if (net->layers == NULL || net->blobs == NULL || net->names == NULL)
        return ls_fail_memory(error, "a net");
    blobs = names = 0;
    for (net->layer_count = 0; net->layer_count < graph->layer_count; net->layer_count++) {
        const struct ls_layer *layer = graph->layers[net->layer_count];
        describe(net, layer, &net->layers[net->layer_count], net->blobs + blobs,
                 net->names + names);
        blobs += (size_t)(layer->tops + layer->blobs);
        names += (size_t)layer->bottoms;
    }
    return 0;
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* Whether a layer of the net brings data: it reads nothing. */
static bool has_data(const Lockstep__NetParameter *net)
{
    for (size_t i = 0; i < net->n_layer; i++)
        if (net->layer[i]->n_bottom == 0 &&
            (net->layer[i]->type == NULL || strcmp(net->layer[i]->type, "Parameter") != 0))
            return true;
    return false;
}

static bool has_input(const Lockstep__NetParameter *net)
{
    for (size_t i = 0; i < net->n_layer; i++)
        if (net->layer[i]->type != NULL && strcmp(net->layer[i]->type, "Input") == 0)
            return true;
    return false;
}

static int read_phase(struct lockstep_net *net, const char *path, Lockstep__Phase phase,
                      const struct lockstep_net_options *options, struct ls_error *error)
{
    const struct ls_net_state state = {.phase = phase,
                                       .level = options->level,
                                       .stages = options->stages,
                                       .stage_count = options->stage_count};
    return ls_net_read(path, &state, &net->definition, error);
}

static int read_net(struct lockstep_net *net, const char *path,
                    const struct lockstep_net_options *options, struct ls_error *error)
{
    const char *phase = options->phase;
    if (phase != NULL && strcmp(phase, "TRAIN") != 0 && strcmp(phase, "TEST") != 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "the phase is TRAIN or TEST, and '%s' is neither", phase);
    if (phase == NULL || strcmp(phase, "TEST") == 0)
        LS_TRY(read_phase(net, path, LOCKSTEP__PHASE__TEST, options, error));
    if (net->definition.net == NULL || (phase == NULL && !has_data(net->definition.net))) {
        ls_definition_free(net->definition.definition);
        net->definition = (struct ls_net_definition){.net = NULL};
        LS_TRY(read_phase(net, path, LOCKSTEP__PHASE__TRAIN, options, error));
    }
    return options->dummy != NULL ? ls_dummy_data_net(&net->definition, options->dummy, error) : 0;
}

static int load(struct lockstep_net *net, const char *path,
                const struct lockstep_net_options *options, struct ls_error *error)
{
    LS_TRY(read_net(net, path, options, error));
    net->parameters = ls_parameter_set_new();
    if (net->parameters == NULL)
        return ls_fail_memory(error, "a net");
    const struct ls_net_options open = {.definition = &net->definition,
                                        .phase = (int)net->definition.net->state->phase,
                                        .from_outside = has_input(net->definition.net),
                                        .seed = 1,
                                        .workers = 1,
                                        .device = ls_device_default(),
                                        .parameters = net->parameters,
                                        .views = &net->views};
    LS_TRY(ls_net_open(&open, &net->net, error));
    return make_rows(net, error);
}

int lockstep_net_load(const char *path, const struct lockstep_net_options *options,
                      struct lockstep_net **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    *out = NULL;
    struct lockstep_net_options mine;
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_net_options_init", inner));
    LS_TRY(ls_api_select(NULL, NULL, inner));
    struct lockstep_net *net = ls_alloc(1, sizeof *net);
    if (net == NULL)
        return ls_fail_memory(inner, "a net");
    int status = load(net, path, &mine, inner);
    if (status != 0)
        lockstep_net_free(net);
    else
        *out = net;
    return status;
}

void lockstep_net_free(struct lockstep_net *net)
{
    if (net == NULL)
        return;
    ls_net_close(net->net);
    ls_view_set_free(&net->views);
    ls_parameter_set_free(net->parameters);
    ls_definition_free(net->definition.definition);
    ls_free(net->layers);
    ls_free(net->blobs);
    ls_free((void *)net->names);
    ls_free(net);
}

const char *lockstep_net_name(const struct lockstep_net *net)
{
    const char *name = net->definition.net->name;
    return name != NULL ? name : "";
}

const char *lockstep_net_phase(const struct lockstep_net *net)
{
    return net->definition.net->state->phase == LOCKSTEP__PHASE__TRAIN ? "TRAIN" : "TEST";
}

int64_t lockstep_net_batch(const struct lockstep_net *net)
{
    return net->net->batching.batch;
}

const struct lockstep_net_layer *lockstep_net_layers(const struct lockstep_net *net, size_t *count)
{
    *count = net->layer_count;
    return net->layers;
}
