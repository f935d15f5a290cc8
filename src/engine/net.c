/* Opening nets: batches, groups of samples, inputs. See engine/net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/net.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/samples.h"
#include "engine/labels.h"
#include "engine/plans.h"
#include "engine/residents.h"
#include "engine/sources.h"
#include "engine/uploader.h"
#include "ir/layer.h"

int ls_net_assume_batch(struct ls_net *net, int64_t batch, struct ls_error *error)
{
    size_t most = (size_t)ls_batching_most(&net->batching, batch);
    struct ls_micro *cut = ls_alloc(most, sizeof *cut);
    if (cut == NULL)
        return ls_fail_memory(error, "the micro-batches of a batch");
    ls_free(net->cut);
    net->cut = cut;
    net->batching.batch = batch;
    return 0;
}

/* Plans for all micro-batches of a batch. Where sizes vary they are made as they come. */
static int net_add_plans_for_batch(struct ls_net *net, int64_t count, struct ls_error *error)
{
    struct ls_batch batch = {.count = count};
    struct ls_net_plan *plan;
    int64_t n = 0;
    struct ls_micro *micro =
        ls_alloc((size_t)ls_batching_most(&net->batching, count), sizeof *micro);
    if (micro == NULL)
        return ls_fail_memory(error, "a plan");
    int status = ls_batching_cut(&net->batching, &batch, micro, &n, error);
    for (int64_t i = 0; i < n && status == 0; i++)
        status = ls_plans_require(net, &micro[i], &plan, error);
    ls_free(micro);
    return status;
}

/* Shapes behind layers that mix samples may depend on how many there are. */
static void net_say_last_batch(const struct ls_net *net, int64_t count, struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    ls_place(net->options.definition->definition, net->mixer, NULL, place, sizeof place);
    ls_fail(error, LOCKSTEP_DEFINITION, place,
            "data_param { last_batch: DROP } leaves it out, WRAP fills it",
            "%s: mixes the samples of a batch, and the last batch of an epoch has %lld sample%s "
            "instead of %lld, which the net's shapes do not fit",
            ls_net_mixer_name(net), (long long)count, count == 1 ? "" : "s",
            (long long)net->batching.batch);
}

static int net_add_plans(struct ls_net *net, struct ls_error *error)
{
    int64_t sizes[2];
    int count = ls_plans_batch_sizes(&net->batching, sizes);
    if (net->varying >= 0) { /* whatever comes first, parameters get the layouts of this one */
        struct ls_net_plan *plan;
        struct ls_micro micro = {.count = net->batching.micro_batch};
        memcpy(micro.shape, net->size, sizeof micro.shape);
        return ls_plans_require(net, &micro, &plan, error);
    }
    for (int i = 0; i < count; i++) {
        int status = net_add_plans_for_batch(net, sizes[i], error);
        if (status == LOCKSTEP_DEFINITION && i > 0 && net->mixer != NULL)
            net_say_last_batch(net, sizes[i], error);
        LS_TRY(status);
    }
    return 0;
}

/* ---- Groups of samples ----------------------------------------------------------------------- */

size_t ls_net_memory_bytes(const struct ls_net *net, int workers)
{
    struct ls_room room = {0};
    for (size_t i = 0; i < net->plan_count; i++)
        ls_room_add(&room, net->plans[i]->plan, ls_plans_slots(net, workers));
    return ls_room_bytes(&room, workers);
}

/* Which data set and which of its tops each input of the graph is. */
static int net_map_inputs(struct ls_net *net, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(net);
    net->input_count = (int)graph->input_count;
    net->inputs = ls_alloc(graph->input_count + 1, sizeof *net->inputs);
    net->runs = ls_alloc(graph->input_count + 1, sizeof *net->runs);
    net->rounded = ls_alloc(graph->input_count + 1, sizeof *net->rounded);
    if (net->inputs == NULL || net->runs == NULL || net->rounded == NULL)
        return ls_fail_memory(error, "inputs");
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct ls_value *value = graph->inputs[i].value;
        const int axis = ls_source_axis(graph->inputs[i].layer->definition, graph->inputs[i].top);
        net->runs[i] = (size_t)ls_shape_count(&value->shape, 0, axis);
        net->rounded[i] = value->type == LS_BF16;
        net->inputs[i][0] = -1;
        net->inputs[i][1] = graph->inputs[i].top;
        for (int d = 0; d < net->dataset_count; d++)
            if (net->data_layers[d] == graph->inputs[i].layer->definition)
                net->inputs[i][0] = d;
    }
    return 0;
}

/* "layer 'a' has groups of 4", of the first layer with this grouping. */
static void net_say_group(const struct ls_graph *graph, int grouping, char *text, size_t size)
{
    const char *name = "";
    for (size_t s = 0; s < graph->sync_count && name[0] == '\0'; s++)
        if (graph->syncs[s].grouping == grouping)
            name = graph->syncs[s].layer->name;
    if (graph->groupings[grouping] == 0)
        snprintf(text, size, "the group of layer '%.100s' is the whole batch", name);
    else
        snprintf(text, size, "layer '%.100s' has groups of %lld", name,
                 (long long)graph->groupings[grouping]);
}

/* That the groups of a net are none that micro-batches can follow. */
static int net_check_groups(const struct ls_graph *graph, const char *place, struct ls_error *error)
{
    char one[200], other[200];
    if (graph->grouping_count == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       "follow_groups: no layer of the train net normalises by the batch");
    net_say_group(graph, 0, one, sizeof one);
    if (graph->grouping_count > 1) {
        net_say_group(graph, 1, other, sizeof other);
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "give them all the same group",
                       "follow_groups: the net's layers have groups of different sizes: %s, %s",
                       one, other);
    }
    if (graph->groupings[0] == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "give batch_norm_param a group",
                       "follow_groups: %s, which would be one micro-batch", one);
    return 0;
}

/* The size of groups that micro-batches follow: all of the net must have one. */
static int net_find_group(struct ls_net *net, struct ls_error *error)
{
    struct ls_graph_options options = ls_plans_graph_options(net, 1);
    const char *place = net->options.follow_groups_place;
    struct ls_graph *graph = NULL;
    LS_TRY(ls_graph_build(&options, &graph, error));
    int status = net_check_groups(graph, place, error);
    int64_t group = status == 0 ? graph->groupings[0] : 0;
    ls_graph_free(graph);
    LS_TRY(status);
    if (net->batching.size_of != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, place,
                       "crop or resize the samples, or leave follow_groups out",
                       "follow_groups: needs samples of one size, but those of layer '%s' differ",
                       net->shapes[net->varying].layer);
    net->batching.group = group;
    return 0;
}

/* Finds the layer that mixes samples, if there is one. */
static int net_find_mixer(struct ls_net *net, struct ls_error *error)
{
    const int64_t batch = net->batching.batch;
    struct ls_graph_options options = ls_plans_graph_options(net, batch);
    options.check = NULL;
    return ls_graph_find_mixer(&options, &net->mixer, error);
}

/* A net that mixes samples has one micro-batch a batch, and nothing can ask for others. */
static int net_check_mixer(const struct ls_net *net, struct ls_error *error)
{
    char place[LS_PLACE_MAX];
    const struct ls_net_options *options = &net->options;
    const int64_t batch = net->batching.batch, micro_batch = options->micro_batch;
    const char *name = ls_net_mixer_name(net);
    ls_place(options->definition->definition, net->mixer, NULL, place, sizeof place);
    if (net->batching.size_of != NULL && batch > 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, place,
                       "use batch_size: 1, or crop or resize the samples",
                       "%s: mixes the samples of a batch, which differ in size", name);
    if (options->follow_groups)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "leave follow_groups out",
                       "%s: mixes the samples of a batch, so that each batch is one micro-batch, "
                       "but follow_groups cuts it along groups",
                       name);
    if (options->training && micro_batch > 0 && micro_batch != batch)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "leave micro_batch out of the solver",
                       "%s: mixes the samples of a batch, so that each batch of %lld is one "
                       "micro-batch, but micro_batch is %lld",
                       name, (long long)batch, (long long)micro_batch);
    return 0;
}

static int net_check_batching(struct ls_net *net, struct ls_error *error)
{
    struct ls_batching *batching = &net->batching;
    if (net->mixer != NULL)
        LS_TRY(net_check_mixer(net, error));
    batching->iter_size = net->options.iter_size > 0 ? net->options.iter_size : 1;
    batching->micro_batch = net->options.micro_batch > 0 ? net->options.micro_batch
                                                         : ls_micro_batch_default(batching->batch);
    if (batching->micro_batch > batching->batch || net->mixer != NULL)
        batching->micro_batch = batching->batch;
    if (batching->last == LS_LAST_DROP && batching->samples < batching->batch)
        return ls_fail(error, LOCKSTEP_DEFINITION, net->options.definition->definition->file,
                       "use a smaller batch_size, or another last_batch",
                       "last_batch: DROP leaves nothing of %lld samples in batches of %lld",
                       (long long)batching->samples, (long long)batching->batch);
    return 0;
}

/* Looks at the batch first: the list would be as long as it says. */
static int net_make_cut(struct ls_net *net, struct ls_error *error)
{
    const char *file = net->options.definition->definition->file;
    LS_TRY(ls_batching_check(&net->batching, file, error));
    size_t most = (size_t)ls_batching_most(&net->batching, net->batching.batch);
    net->cut = ls_alloc(most, sizeof *net->cut);
    return net->cut != NULL ? 0 : ls_fail_memory(error, "the micro-batches of a batch");
}

static int net_open(struct ls_net *net, struct ls_error *error)
{
    int damage = net->options.definition->status;
    int types = ls_graph_check_types(net->options.definition, error);
    int status = ls_sources_find_batch(net, error);
    if (status != 0) /* any will do to find what else is wrong */
        net->batching.batch = net->batching.micro_batch = 1;
    status = damage != 0 ? damage : types != 0 ? types : status;
    int data_status = ls_sources_open(net, error);
    struct ls_net_plan *plan;
    struct ls_micro one = {.count = 1};
    if (data_status == 0)
        LS_TRY(net_find_mixer(net, error));
    if (status != 0 && data_status == 0) {
        net->sources.batch = -1;
        ls_plans_require(net, &one, &plan, error);
    }
    LS_TRY(status);
    LS_TRY(data_status);
    one.count = ls_net_sample_count(net);
    LS_TRY(net_check_batching(net, error));
    if (net->options.follow_groups)
        LS_TRY(net_find_group(net, error));
    if (!net->options.from_outside)
        LS_TRY(net_make_cut(net, error));
    if (net->options.from_outside)
        LS_TRY(ls_plans_require(net, &one, &plan, error));
    else
        LS_TRY(net_add_plans(net, error));
    LS_TRY(net_map_inputs(net, error));
    LS_TRY(ls_labels_tell(net, error));
    if (net->varying >= 0 && !net->options.from_outside && !net->options.forgiving)
        LS_TRY(ls_plans_check_sizes(net, false, error));
    return net->options.from_outside || net->options.forgiving ? 0 : ls_labels_check(net, error);
}

int ls_net_open(const struct ls_net_options *options, struct ls_net **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_net *net = ls_alloc(1, sizeof *net);
    if (net == NULL)
        return ls_fail_memory(error, "a net");
    net->options = *options;
    net->varying = -1;
    int status = net_open(net, error);
    net->options.follow_groups_place = NULL; /* the caller's memory */
    if (status != 0)
        ls_net_close(net);
    else
        *out = net;
    return status;
}

void ls_net_close(struct ls_net *net)
{
    if (net == NULL)
        return;
    for (size_t i = 0; i < net->plan_count; i++)
        ls_plans_free(net->plans[i]);
    ls_residents_free(net);
    for (int i = 0; i < net->dataset_count; i++)
        ls_dataset_close(net->datasets[i]);
    for (int i = 0; net->shapes != NULL && i < net->dataset_count; i++)
        ls_free(net->shapes[i].tensor);
    ls_free(net->datasets);
    ls_free(net->data_layers);
    ls_free(net->shapes);
    ls_free(net->inputs);
    ls_free(net->runs);
    ls_free(net->rounded);
    ls_free(net->cut);
    ls_free(net->own);
    ls_free(net->plans);
    ls_free(net);
}

size_t ls_net_input_bytes(const struct ls_net *net, int input)
{
    const struct ls_value *value = ls_net_graph(net)->inputs[input].value;
    int dataset = net->inputs[input][0];
    const struct ls_own_batch *own = dataset >= 0 ? net->batching.own : NULL;
    if (own != NULL && own[dataset].batch != net->batching.batch)
        return ls_value_bytes(value);
    size_t sample = (size_t)ls_value_sample_size(value) * ls_dtype_size(value->type);
    if (net->varying >= 0 && dataset == net->varying)
        sample = ls_dataset_tensor_bytes(net->datasets[dataset], net->inputs[input][1],
                                         ls_dataset_largest_shape(net->datasets[dataset])) /
                 (net->rounded[input] ? 2 : 1);
    return sample * (size_t)ls_batching_largest(&net->batching);
}

static struct ls_prefetcher_options net_prefetcher_options(const struct ls_net *net,
                                                           int64_t updates_end)
{
    const struct ls_device_memory *memory = net->options.device->memory;
    return (struct ls_prefetcher_options){
        .datasets = net->datasets,
        .dataset_count = net->dataset_count,
        .inputs = (const int(*)[2])net->inputs,
        .input_count = net->input_count,
        .runs = net->runs,
        .rounded = net->rounded,
        .batching = net->batching,
        .share = net->options.share,
        .held = memory->host_memory ? 0 : net->options.workers * LS_UPLOADS_HELD,
        .pinning = memory->pinning,
        .updates_end = updates_end};
}

int ls_net_prefetcher(const struct ls_net *net, int64_t updates_end,
                      struct ls_prefetch_memory *room, struct ls_prefetcher **prefetcher,
                      struct ls_error *error)
{
    struct ls_prefetcher_options options = net_prefetcher_options(net, updates_end);
    LS_TRY(ls_residents_load(net, error));
    options.hashes = ls_residents_hashes(net, false);
    options.room = room;
    return ls_prefetcher_open(&options, prefetcher, error);
}

int ls_net_prefetcher_bytes(const struct ls_net *net, size_t *samples, size_t *threads,
                            struct ls_error *error)
{
    struct ls_prefetcher_options options = net_prefetcher_options(net, INT64_MAX);
    options.hashes = ls_residents_hashes(net, true);
    return ls_prefetcher_bytes(&options, samples, threads, error);
}
