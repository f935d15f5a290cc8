/* The sources of a net. See engine/sources.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/sources.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/bad_records.h"
#include "data/samples.h"
#include "layers/layers.h"
#include "schema/data_layers.h"

static bool sources_is_type(const Lockstep__LayerParameter *layer, const char *type)
{
    return layer->type != NULL && strcmp(layer->type, type) == 0;
}

/* Reports a problem of a source layer, at its batch_size where it has one. */
static int sources_batch_fail(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                              struct ls_error *error, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static int sources_batch_fail(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                              struct ls_error *error, const char *hint, const char *format, ...)
{
    char place[LS_PLACE_MAX], message[300];
    const Lockstep__DataParameter *data = layer->data_param;
    const void *at = ls_data_layer_reads(layer) && data != NULL ? (const void *)data : layer;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    ls_place(net->options.definition->definition, at,
             at == data && data->has_batch_size ? "batch_size" : NULL, place, sizeof place);
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s: %s",
                   layer->name != NULL ? layer->name : "(unnamed)", message);
}

/* The batch of one source layer; `reads`: there was one that reads data. What is wrong is said in
 * the words of the layer itself (layers/source.c), which would say it later if its data could be
 * opened. */
static int sources_check_batch(struct ls_net *net, const Lockstep__LayerParameter *layer,
                               bool *reads, struct ls_error *error)
{
    int64_t batch = ls_source_batch(layer);
    static const char hint[] = "batch_size is the global batch, on any number of workers";
    if (ls_data_layer_reads(layer) && layer->data_param == NULL)
        return sources_batch_fail(net, layer, error, NULL, "data_param is missing");
    if (ls_data_layer_reads(layer) && !layer->data_param->has_batch_size)
        return sources_batch_fail(net, layer, error, hint, "batch_size is missing");
    if (batch <= 0)
        return sources_batch_fail(net, layer, error, hint, "a batch of 0 samples is not possible");
    if (batch > INT32_MAX)
        return sources_batch_fail(net, layer, error, hint, "a batch of %lld samples is too large",
                                  (long long)batch);
    /* The others may have other rows (layers/source.c). Data say what an epoch is. */
    if (net->batching.batch == 0 || (ls_data_layer_reads(layer) && !*reads))
        net->batching.batch = batch;
    *reads = *reads || ls_data_layer_reads(layer);
    return 0;
}

/* Whether something of a layer could not be read, which has been reported. */
static bool sources_is_damaged(const struct ls_net *net, const Lockstep__LayerParameter *layer)
{
    const struct ls_net_definition *definition = net->options.definition;
    return definition->status != 0 && ls_definition_is_damaged(definition->definition, layer);
}

/* Whether a layer is of no type that there is, or damaged: it may have been meant to bring data,
 * and building the net reports it. */
static bool sources_has_unknown_type(const struct ls_net *net)
{
    const Lockstep__NetParameter *definition = net->options.definition->net;
    for (size_t i = 0; i < definition->n_layer; i++)
        if (definition->layer[i]->type == NULL ||
            ls_layer_type_find(definition->layer[i]->type) == NULL ||
            sources_is_damaged(net, definition->layer[i]))
            return true;
    return false;
}

int ls_sources_find_batch(struct ls_net *net, struct ls_error *error)
{
    const Lockstep__NetParameter *definition = net->options.definition->net;
    int status = 0;
    bool reads = false;
    for (size_t i = 0; i < definition->n_layer; i++) {
        const Lockstep__LayerParameter *layer = definition->layer[i];
        bool outside = ls_data_layer_takes_input(layer);
        if (sources_is_damaged(net, layer))
            continue;
        if (!ls_data_layer_reads(layer) && !sources_is_type(layer, "DummyData") && !outside)
            continue;
        if (sources_check_batch(net, layer, &reads, error) != 0)
            status = LOCKSTEP_DEFINITION;
        if (outside && !net->options.from_outside)
            status = sources_batch_fail(
                net, layer, error,
                "use a Data layer for this phase, or give arrays (Python: data, test_data)",
                "an Input layer gets its data from the calling program; there is "
                "none here");
    }
    if (status == 0 && net->batching.batch == 0 && sources_has_unknown_type(net))
        return LOCKSTEP_DEFINITION;
    if (status == 0 && net->batching.batch == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, net->options.definition->definition->file,
                       "does an include rule leave out the Data layer of this phase?",
                       "the %s net has no layer that brings data",
                       net->options.phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test");
    return status;
}

static int sources_size_of(void *user, int64_t ordinal, int64_t shape[3], struct ls_error *error)
{
    const struct ls_net *net = user;
    return ls_dataset_sample_shape(net->datasets[net->varying], ordinal, shape, error);
}

/* Notes a data set whose samples differ in size. */
static int sources_set_varying(struct ls_net *net, int index, struct ls_error *error)
{
    if (net->varying >= 0)
        return sources_batch_fail(
            net, net->data_layers[index], error, "crop or resize the samples of one of them",
            "its samples differ in size, and so do those of layer '%s'; only one "
            "data layer of a net can have that",
            net->shapes[net->varying].layer);
    net->varying = index;
    memcpy(net->size, ls_dataset_shape(net->datasets[index]), sizeof net->size);
    net->batching.size_of = sources_size_of;
    net->batching.user = net;
    return 0;
}

/* Data layers are read in step: where another record stands in for a bad one in one layer, those of
 * the others would no longer belong to it. */
static int sources_check_skipping(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                                  struct ls_error *error)
{
    bool skips = false;
    for (int d = 0; d < net->dataset_count; d++)
        skips = skips || ls_dataset_skips(net->datasets[d]);
    if (!skips || net->dataset_count < 2)
        return 0;
    return sources_batch_fail(
        net, layer, error, "mend the records that 'lockstep check' lists",
        "on_bad_record: SKIP is for nets with one data layer in a phase: another one "
        "would still bring what belongs to the bad record");
}

/* How many batches an epoch has; -1: the last one is smaller. */
static int64_t sources_count_batches(int64_t samples, int64_t batch, enum ls_last_batch last)
{
    return last == LS_LAST_PARTIAL && samples % batch != 0 ? -1 : samples / batch;
}

/* Where epochs end, those of all data sets must end with the same batch; and where batches of data
 * sets differ in size, the last batch of an epoch must be as large as its others. */
static int sources_check_pace(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                              int index, struct ls_error *error)
{
    const struct ls_batching *b = &net->batching;
    const struct ls_own_batch *own = &net->own[index];
    const char *hint = "last_batch: WRAP goes on with the first samples, DROP leaves the rest out";
    int64_t mine = sources_count_batches(own->samples, own->batch, b->last);
    int64_t batches = sources_count_batches(b->samples, b->batch, b->last);
    if (own->batch == b->batch && own->samples != net->own[0].samples)
        return sources_batch_fail(
            net, layer, error,
            "data layers of one phase are read in step, unless last_batch is WRAP",
            "its data set and that of the layer above have different numbers of samples");
    if (own->batch == b->batch)
        return 0;
    if (mine < 0 || batches < 0)
        return sources_batch_fail(net, layer, error, hint,
                                  "has batches of %lld samples, and those of the net have %lld, "
                                  "but the last one of an epoch is smaller",
                                  (long long)own->batch, (long long)b->batch);
    if (mine < batches || (mine > batches && net->options.samples <= 0))
        return sources_batch_fail(net, layer, error, hint,
                                  "an epoch of its data is %lld batches of %lld samples, and one "
                                  "of the net %lld batches of %lld",
                                  (long long)mine, (long long)own->batch, (long long)batches,
                                  (long long)b->batch);
    return 0;
}

/* A row of an update goes on in the same row of the next one (docs/numerics.md, section 15), and so
 * must its stream. */
static int sources_check_streams(const struct ls_net *net, const Lockstep__LayerParameter *layer,
                                 const struct ls_dataset *dataset, struct ls_error *error)
{
    const int64_t streams = ls_dataset_streams(dataset);
    const int64_t batches = net->options.iter_size > 1 ? net->options.iter_size : 1;
    const int64_t rows = ls_source_batch(layer) * batches;
    const bool computes =
        net->options.training || (Lockstep__Phase)net->options.phase == LOCKSTEP__PHASE__TEST;
    char hint[64];
    if (streams == 0 || streams == rows || !computes)
        return 0;
    snprintf(hint, sizeof hint, "streams: %lld", (long long)rows);
    return sources_batch_fail(net, layer, error, hint,
                              "has %lld streams, and an update has %lld rows: %lld x batch_size",
                              (long long)streams, (long long)rows, (long long)batches);
}

/* The shapes of samples whose image has this one. */
static void sources_set_shapes(struct ls_source_shape *shape, const struct ls_dataset *dataset,
                               const int64_t image[3])
{
    for (int k = 0; k < shape->tensors; k++) {
        shape->tensor[k].type = ls_dataset_tensor(dataset, k)->type;
        ls_dataset_tensor_shape(dataset, k, image, &shape->tensor[k].shape);
    }
}

void ls_sources_set_size(struct ls_net *net, const int64_t size[3])
{
    memmove(net->size, size, sizeof net->size);
    sources_set_shapes(&net->shapes[net->varying], net->datasets[net->varying], size);
}

const struct ls_dataset *ls_sources_named(const struct ls_net *net)
{
    for (int d = 0; d < net->dataset_count; d++)
        if (net->datasets[d] != NULL && ls_dataset_classes(net->datasets[d]) > 0)
            return net->datasets[d];
    return NULL;
}

struct ls_class_names ls_sources_class_names(const struct ls_net *net)
{
    const struct ls_dataset *named = ls_sources_named(net);
    return named != NULL ? ls_dataset_class_names(named) : (struct ls_class_names){.count = 0};
}

/* The data set of the net that is trained which a layer's data are like: that of the layer with the
 * same first top, else the one that has names. */
static const struct ls_dataset *sources_trained(const struct ls_net *trained,
                                                const Lockstep__LayerParameter *layer)
{
    for (int d = 0; d < trained->dataset_count; d++) {
        const Lockstep__LayerParameter *other = trained->data_layers[d];
        if (trained->datasets[d] != NULL && layer->n_top > 0 && other->n_top > 0 &&
            strcmp(other->top[0], layer->top[0]) == 0)
            return trained->datasets[d];
    }
    return ls_sources_named(trained);
}

/* What the classes of a layer's data are called where the net is trained. */
static struct ls_class_names sources_known_names(const struct ls_net *net,
                                                 const Lockstep__LayerParameter *layer)
{
    const struct ls_net_options *options = &net->options;
    const struct ls_dataset *like =
        options->trained != NULL ? sources_trained(options->trained, layer) : NULL;
    if (like != NULL)
        return ls_dataset_class_names(like);
    /* A file has the names of one data set. */
    if (options->classes != NULL && ls_sources_named(net) == NULL)
        return *options->classes;
    return (struct ls_class_names){.count = 0};
}

static int sources_open_dataset(struct ls_net *net, const Lockstep__LayerParameter *layer,
                                struct ls_error *error)
{
    struct ls_dataset **dataset = &net->datasets[net->dataset_count];
    const struct ls_definition *definition = net->options.definition->definition;
    Lockstep__Phase phase = (Lockstep__Phase)net->options.phase;
    uint64_t seed = net->options.seed;
    const struct ls_class_names known = sources_known_names(net, layer);
    const struct ls_dataset_wishes wishes = {
        .augment = net->options.augment, .forgiving = net->options.forgiving, .known = &known};
    LS_TRY(ls_dataset_open(layer, definition, phase, seed, &wishes, dataset, error));
    net->data_layers[net->dataset_count] = layer;
    struct ls_source_shape *shape = &net->shapes[net->dataset_count++];
    shape->layer = layer->name != NULL ? layer->name : "(unnamed)";
    shape->definition = layer;
    shape->tensors = ls_dataset_tensors(*dataset);
    shape->varies = ls_dataset_varies(*dataset);
    shape->tensor = ls_alloc((size_t)shape->tensors, sizeof *shape->tensor);
    if (shape->tensor == NULL)
        return ls_fail_memory(error, "data sets");
    sources_set_shapes(shape, *dataset, ls_dataset_shape(*dataset));
    LS_TRY(sources_check_skipping(net, layer, error));
    LS_TRY(sources_check_streams(net, layer, *dataset, error));
    if (ls_dataset_varies(*dataset))
        LS_TRY(sources_set_varying(net, net->dataset_count - 1, error));
    int64_t samples = ls_dataset_size(net->datasets[0]);
    bool wraps = ls_dataset_last_batch(net->datasets[0]) == LS_LAST_WRAP &&
                 ls_dataset_last_batch(*dataset) == LS_LAST_WRAP && net->varying < 0;
    const int index = net->dataset_count - 1;
    net->own[index] = (struct ls_own_batch){ls_source_batch(layer), ls_dataset_size(*dataset)};
    if (net->own[index].batch != net->batching.batch)
        net->batching.own = net->own;
    if (net->options.samples > 0 && net->options.samples < samples)
        samples = net->options.samples;
    net->batching.samples = samples;
    net->batching.last = ls_dataset_last_batch(*dataset);
    return wraps || net->own[index].batch < 1 ? 0 : sources_check_pace(net, layer, index, error);
}

int ls_sources_open(struct ls_net *net, struct ls_error *error)
{
    const Lockstep__NetParameter *definition = net->options.definition->net;
    size_t room = definition->n_layer + 1;
    net->datasets = ls_alloc(room, sizeof *net->datasets);
    net->data_layers = ls_alloc(room, sizeof *net->data_layers);
    net->shapes = ls_alloc(room, sizeof *net->shapes);
    net->own = ls_alloc(room, sizeof *net->own);
    if (net->datasets == NULL || net->data_layers == NULL || net->shapes == NULL ||
        net->own == NULL)
        return ls_fail_memory(error, "data sets");
    net->batching.samples = INT64_MAX;
    net->batching.last = LS_LAST_WRAP;
    int status = 0;
    for (size_t i = 0; i < definition->n_layer; i++)
        if (ls_data_layer_reads(definition->layer[i]) &&
            !sources_is_damaged(net, definition->layer[i])) {
            int result = sources_open_dataset(net, definition->layer[i], error);
            status = status != 0 ? status : result;
        }
    net->sources = (struct ls_source_shapes){
        .item = net->shapes, .count = (size_t)net->dataset_count, .batch = net->batching.batch};
    return status;
}
