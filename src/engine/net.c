/* Opening nets: plans, groups of samples, inputs. See engine/net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/net.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/labels.h"
#include "ir/layer.h"
#include "ops/cpu/filler.h"

enum {
    PLANS_KEPT = 64,  /* of a net whose samples differ in size */
    SIZES_TRIED = 256 /* of its data, at the start */
};

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

static struct ls_graph_options graph_options_of(const struct ls_net *net, int64_t samples)
{
    const struct ls_net_options *options = &net->options;
    int64_t batches = options->iter_size > 0 ? options->iter_size : 1;
    return (struct ls_graph_options){.net = options->definition,
                                     .update_samples =
                                         options->training ? net->batching.batch * batches : 0,
                                     .phase = options->phase,
                                     .samples = samples,
                                     .seed = options->seed,
                                     .training = options->training,
                                     .parameters = options->parameters,
                                     .sources = &net->sources,
                                     .check = check_fillers};
}

static void free_plan(struct ls_net_plan *plan)
{
    if (plan == NULL)
        return;
    ls_net_unbind(plan);
    ls_plan_free(plan->plan);
    ls_free(plan->position);
    ls_free(plan);
}

/* Micro-batches of one batch must all be gathered or none of them: the first plan decides. */
static enum ls_gathering gathering(const struct ls_net *net, bool first)
{
    if (net->options.from_outside || net->varying >= 0 || net->cut == NULL ||
        ls_batching_most(&net->batching, net->batching.batch) < 2)
        return LS_GATHER_NEVER;
    if (first)
        return LS_GATHER_WHERE_IT_PAYS;
    return net->gathers ? LS_GATHER_ALWAYS : LS_GATHER_NEVER;
}

/* Builds the plan for micro-batches like `micro`; the net's first one or another. */
static int build_plan(struct ls_net *net, const struct ls_micro *micro, bool first,
                      struct ls_net_plan *plan, struct ls_error *error)
{
    const struct ls_net_options *options = &net->options;
    struct ls_graph_options graph_options = graph_options_of(net, micro->count);
    struct ls_graph *graph = NULL;
    plan->samples = micro->count;
    memcpy(plan->shape, micro->shape, sizeof plan->shape);
    if (net->varying >= 0 && micro->shape[0] > 0)
        memcpy(net->shapes[net->varying].sample, micro->shape, sizeof micro->shape);
    LS_TRY(ls_graph_build(&graph_options, &graph, error));
    for (size_t i = 0; i < graph->sync_count; i++)
        net->counts_on_the_way |= graph->syncs[i].kind == LS_SYNC_COUNT && options->training;
    plan->output = options->output != NULL ? options->output(graph) : NULL;
    int workers = options->workers > 0 ? options->workers : 1;
    struct ls_plan_options plan_options = {.backend = options->backend,
                                           .views = options->views,
                                           .keep = &plan->output,
                                           .keep_count = 1,
                                           .local = ls_net_local,
                                           .user = net,
                                           .gather = gathering(net, first),
                                           .budget = {.bytes = options->activation_bytes,
                                                      .workers = workers,
                                                      .slots = ls_net_slots(net, workers)}};
    LS_TRY(ls_plan_build(graph, &plan_options, &plan->plan, error));
    if (first)
        net->gathers = ls_plan_gathers(plan->plan);
    plan->position = ls_alloc(plan->plan->step_count + 1, sizeof *plan->position);
    if (plan->position == NULL)
        return ls_fail_memory(error, "a plan");
    for (size_t i = 0; i < plan->plan->step_count; i++) {
        const struct ls_op *op = plan->plan->steps[i].prepared.op;
        plan->position[i + 1] = plan->position[i] + (size_t)(op->inputs + op->outputs);
    }
    return 0;
}

static struct ls_net_plan *find_plan(const struct ls_net *net, const struct ls_micro *micro)
{
    for (size_t i = 0; i < net->plan_count; i++)
        if (net->plans[i]->samples == micro->count &&
            memcmp(net->plans[i]->shape, micro->shape, sizeof micro->shape) == 0)
            return net->plans[i];
    return NULL;
}

/* Makes room for another plan: the one that was not wanted for longest goes, but none that the job
 * at hand needs, however many those are. The first one stays; it says what all have in common. */
static void forget_plans(struct ls_net *net)
{
    while (net->plan_count >= PLANS_KEPT) {
        size_t oldest = 0;
        for (size_t i = 1; i < net->plan_count; i++)
            if (net->plans[i]->used <= net->wanted_before && !net->plans[i]->kept &&
                (oldest == 0 || net->plans[i]->used < net->plans[oldest]->used))
                oldest = i;
        if (oldest == 0)
            return;
        free_plan(net->plans[oldest]);
        net->plans[oldest] = net->plans[--net->plan_count];
    }
}

void ls_net_begin_job(struct ls_net *net)
{
    net->wanted_before = net->wanted;
}

/* Where sizes vary a problem may concern some of them only: says which, and a record that has it.
 * `before`: how many problems there were. */
static int name_size(const struct ls_net *net, const struct ls_micro *micro, int before, int status,
                     struct ls_error *error)
{
    struct ls_reader *reader = NULL;
    if (net->varying < 0 || error == NULL || status != LOCKSTEP_DEFINITION)
        return status;
    const int64_t *size = micro->shape;
    for (int i = before; i < error->count; i++) {
        struct ls_problem problem = error->problems[i];
        snprintf(error->problems[i].message, sizeof problem.message,
                 "for samples of %lld x %lld x %lld: %.640s", (long long)size[0],
                 (long long)size[1], (long long)size[2], problem.message);
    }
    if (ls_reader_open(net->datasets[net->varying], &reader, NULL) == 0)
        ls_reader_fail(reader, micro->ordinal,
                       "samples differ in size: a layer must work on each size, or crop or resize "
                       "the samples",
                       "has this size", error);
    ls_reader_close(reader);
    return status;
}

int ls_net_require(struct ls_net *net, const struct ls_micro *micro, struct ls_net_plan **out,
                   struct ls_error *error)
{
    int problems = error != NULL ? error->count : 0;
    net->wanted++;
    *out = find_plan(net, micro);
    if (*out == NULL) {
        forget_plans(net);
        struct ls_net_plan *plan = ls_alloc(1, sizeof *plan);
        if (plan == NULL || !LS_GROW(net->plans, net->plan_count, net->plan_capacity)) {
            ls_free(plan);
            return ls_fail_memory(error, "a plan");
        }
        int status = build_plan(net, micro, net->plan_count == 0, plan, error);
        if (status != 0) {
            free_plan(plan);
            return net->plan_count > 0 ? name_size(net, micro, problems, status, error) : status;
        }
        net->plans[net->plan_count++] = *out = plan;
    }
    (*out)->used = net->wanted;
    return 0;
}

int ls_net_limit(struct ls_net *net, size_t activation_bytes, struct ls_error *error)
{
    net->options.activation_bytes = activation_bytes;
    for (size_t i = 0; i < net->plan_count; i++) {
        struct ls_micro micro = {.count = net->plans[i]->samples};
        memcpy(micro.shape, net->plans[i]->shape, sizeof micro.shape);
        struct ls_net_plan *plan = ls_alloc(1, sizeof *plan);
        int status = plan == NULL ? ls_fail_memory(error, "a plan")
                                  : build_plan(net, &micro, i == 0, plan, error);
        if (status != 0) {
            free_plan(plan);
            return status;
        }
        plan->used = net->plans[i]->used;
        plan->kept = net->plans[i]->kept;
        free_plan(net->plans[i]);
        net->plans[i] = plan;
    }
    return 0;
}

void ls_net_largest_plan(struct ls_net *net, size_t *arena, size_t *held)
{
    *arena = *held = 0;
    struct ls_net_plan *plan = net->varying >= 0 ? ls_alloc(1, sizeof *plan) : NULL;
    if (plan == NULL)
        return;
    struct ls_source_shape before = net->shapes[net->varying];
    struct ls_micro micro = {.count = ls_batching_largest(&net->batching)};
    memcpy(micro.shape, ls_dataset_largest_shape(net->datasets[net->varying]), sizeof micro.shape);
    if (build_plan(net, &micro, false, plan, NULL) == 0) {
        *arena = plan->plan->arena_bytes;
        *held = plan->plan->held_bytes;
    }
    free_plan(plan);
    net->shapes[net->varying] = before;
}

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

/* How many samples batches can have: a full one, and what is left at the end of the data. */
static int batch_sizes(const struct ls_batching *batching, int64_t sizes[2])
{
    int count = 0;
    bool short_data = batching->batch >= batching->samples && batching->last != LS_LAST_WRAP;
    sizes[count++] = short_data ? batching->samples : batching->batch;
    if (!short_data && batching->last == LS_LAST_PARTIAL &&
        batching->samples % batching->batch != 0)
        sizes[count++] = batching->samples % batching->batch;
    return count;
}

/* Plans for all micro-batches of a batch. Where sizes vary they are made as they come. */
static int add_plans_for_batch(struct ls_net *net, int64_t count, struct ls_error *error)
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
        status = ls_net_require(net, &micro[i], &plan, error);
    ls_free(micro);
    return status;
}

static int add_plans(struct ls_net *net, struct ls_error *error)
{
    int64_t sizes[2];
    int count = batch_sizes(&net->batching, sizes);
    if (net->varying >= 0) { /* whatever comes first, parameters get the layouts of this one */
        struct ls_net_plan *plan;
        struct ls_micro micro = {.count = net->batching.micro_batch};
        memcpy(micro.shape, net->shapes[net->varying].sample, sizeof micro.shape);
        return ls_net_require(net, &micro, &plan, error);
    }
    for (int i = 0; i < count; i++)
        LS_TRY(add_plans_for_batch(net, sizes[i], error));
    return 0;
}

/* Whether `shape` is new among `count` of them; if so it is added. */
static bool is_new_size(int64_t (*seen)[3], size_t *count, const int64_t shape[3])
{
    for (size_t i = 0; i < *count; i++)
        if (memcmp(seen[i], shape, sizeof seen[i]) == 0)
            return false;
    memcpy(seen[(*count)++], shape, sizeof *seen);
    return true;
}

static int check_size(struct ls_net *net, const struct ls_micro *micro, struct ls_error *error)
{
    struct ls_graph_options options = graph_options_of(net, micro->count);
    struct ls_graph *graph = NULL;
    int problems = error != NULL ? error->count : 0;
    memcpy(net->shapes[net->varying].sample, micro->shape, sizeof micro->shape);
    int status = ls_graph_build(&options, &graph, error);
    if (status == 0)
        ls_graph_free(graph);
    return name_size(net, micro, problems, status, error);
}

/* A size that the net cannot take is found now and not after hours of training. Of data with
 * very many sizes the first are tried; the others are checked when they come. */
static int check_sizes(struct ls_net *net, struct ls_error *error)
{
    struct ls_dataset *dataset = net->datasets[net->varying];
    struct ls_source_shape before = net->shapes[net->varying];
    int64_t(*seen)[3] = ls_alloc(SIZES_TRIED, sizeof *seen);
    int status = seen == NULL ? ls_fail_memory(error, "sizes of samples") : 0;
    size_t count = 0;
    for (int64_t i = 0; i < net->batching.samples && count < SIZES_TRIED && status == 0; i++) {
        struct ls_micro micro = {.ordinal = i, .count = 1};
        status = ls_dataset_sample_shape(dataset, i, micro.shape, error);
        if (status == 0 && is_new_size(seen, &count, micro.shape))
            status = check_size(net, &micro, error);
    }
    net->shapes[net->varying] = before;
    ls_free(seen);
    return status;
}

/* ---- Groups of samples ----------------------------------------------------------------------- */

/* Whether every group of a batch of `count` samples lies within one of its micro-batches; `micro`
 * has room for these. (What needs no memory cannot be answered in two ways.) */
static bool groups_fit(const struct ls_batching *batching, int64_t count, int64_t group,
                       struct ls_micro *micro)
{
    struct ls_batch batch = {.count = count};
    int64_t groups = ls_batching_groups(count, group), n = 0, j = 0;
    bool fit = ls_batching_cut(batching, &batch, micro, &n, NULL) == 0;
    for (int64_t i = 0; i < n && fit; i++) { /* a micro-batch ends where a group ends */
        while (j < groups && ls_even_cut(count, groups, j) < micro[i].ordinal + micro[i].count)
            j++;
        fit = ls_even_cut(count, groups, j) == micro[i].ordinal + micro[i].count;
    }
    return fit;
}

bool ls_net_local(const void *user, int64_t group)
{
    const struct ls_net *net = user;
    int64_t sizes[2];
    bool unknown = net->cut == NULL; /* there is something wrong with the batch, or there is none */
    if (unknown || net->options.from_outside || group == 1)
        return true;
    if (net->batching.size_of != NULL)
        return net->batching.batch == 1;
    int count = batch_sizes(&net->batching, sizes);
    for (int i = 0; i < count; i++)
        if (!groups_fit(&net->batching, sizes[i], group, net->cut))
            return false;
    return true;
}

int ls_net_slots(const struct ls_net *net, int workers)
{
    int64_t slots = ls_batching_most(&net->batching, net->batching.batch);
    if (net->counts_on_the_way)
        slots *= net->batching.iter_size;
    return slots > workers ? (int)slots : workers;
}

size_t ls_net_memory_bytes(const struct ls_net *net, int workers)
{
    size_t arena = 0, held = 0;
    for (size_t i = 0; i < net->plan_count; i++) {
        const struct ls_plan *plan = net->plans[i]->plan;
        arena = plan->arena_bytes > arena ? plan->arena_bytes : arena;
        held = plan->held_bytes > held ? plan->held_bytes : held;
    }
    return arena * (size_t)workers + held * (size_t)ls_net_slots(net, workers);
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

/* The size of groups that micro-batches follow: all of the net must have one. */
static int find_group(struct ls_net *net, struct ls_error *error)
{
    struct ls_graph_options options = graph_options_of(net, 1);
    const char *place = net->options.follow_groups_place;
    struct ls_graph *graph = NULL;
    LS_TRY(ls_graph_build(&options, &graph, error));
    size_t groupings = graph->grouping_count;
    int64_t group = groupings > 0 ? graph->groupings[0] : 0;
    ls_graph_free(graph);
    if (groupings != 1)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, NULL,
                       groupings == 0 ? "follow_groups: no layer of the train net normalises by "
                                        "the batch"
                                      : "follow_groups: the net's layers have groups of different "
                                        "sizes");
    if (group == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, place, "give batch_norm_param a group",
                       "follow_groups: the group of the net is the whole batch, which would be one "
                       "micro-batch");
    if (net->batching.size_of != NULL)
        return ls_fail(error, LOCKSTEP_DEFINITION, place,
                       "crop or resize the samples, or leave follow_groups out",
                       "follow_groups: needs samples of one size, but those of layer '%s' differ",
                       net->data_layers[net->varying]->name);
    net->batching.group = group;
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

/* Looks at the batch first: the list would be as long as it says. */
static int make_cut(struct ls_net *net, struct ls_error *error)
{
    const char *file = net->options.definition->definition->file;
    LS_TRY(ls_batching_check(&net->batching, file, error));
    size_t most = (size_t)ls_batching_most(&net->batching, net->batching.batch);
    net->cut = ls_alloc(most, sizeof *net->cut);
    return net->cut != NULL ? 0 : ls_fail_memory(error, "the micro-batches of a batch");
}

static int open(struct ls_net *net, struct ls_error *error)
{
    int status = ls_net_find_batch(net, error);
    if (status != 0) /* any will do to find what else is wrong */
        net->batching.batch = net->batching.micro_batch = 1;
    int data_status = ls_net_open_datasets(net, error);
    struct ls_net_plan *plan;
    struct ls_micro one = {.count = 1};
    if (status != 0 && data_status == 0) {
        net->sources.batch = -1;
        ls_net_require(net, &one, &plan, error);
    }
    LS_TRY(status);
    LS_TRY(data_status);
    LS_TRY(check_batching(net, error));
    if (net->options.follow_groups)
        LS_TRY(find_group(net, error));
    if (!net->options.from_outside)
        LS_TRY(make_cut(net, error));
    if (net->options.from_outside)
        LS_TRY(ls_net_require(net, &one, &plan, error));
    else
        LS_TRY(add_plans(net, error));
    if (net->varying >= 0 && !net->options.from_outside)
        LS_TRY(check_sizes(net, error));
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
    net->varying = -1;
    int status = open(net, error);
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
        free_plan(net->plans[i]);
    for (int i = 0; i < net->dataset_count; i++)
        ls_dataset_close(net->datasets[i]);
    ls_free(net->datasets);
    ls_free(net->data_layers);
    ls_free(net->shapes);
    ls_free(net->inputs);
    ls_free(net->cut);
    ls_free(net->plans);
    ls_free(net);
}

const struct ls_graph *ls_net_graph(const struct ls_net *net)
{
    return net->plans[0]->plan->graph;
}

size_t ls_net_input_size(const struct ls_net *net, int input)
{
    const struct ls_shape *shape = &ls_net_graph(net)->inputs[input].value->shape;
    size_t size = (size_t)(ls_shape_size(shape) / shape->dim[0]);
    if (net->varying < 0 || net->inputs[input][0] != net->varying)
        return size;
    const int64_t *most = ls_dataset_largest_shape(net->datasets[net->varying]);
    if (net->inputs[input][1] == 0)
        return (size_t)(most[0] * most[1] * most[2]);
    return ls_dataset_has_maps(net->datasets[net->varying]) ? (size_t)(most[1] * most[2]) : size;
}

static struct ls_feed_options feed_options(const struct ls_net *net, int64_t updates_end)
{
    return (struct ls_feed_options){.datasets = net->datasets,
                                    .dataset_count = net->dataset_count,
                                    .inputs = (const int(*)[2])net->inputs,
                                    .input_count = net->input_count,
                                    .batching = net->batching,
                                    .updates_end = updates_end};
}

int ls_net_feed(const struct ls_net *net, int64_t updates_end, struct ls_feed **feed,
                struct ls_error *error)
{
    struct ls_feed_options options = feed_options(net, updates_end);
    return ls_feed_open(&options, feed, error);
}

int ls_net_feed_bytes(const struct ls_net *net, size_t *bytes, struct ls_error *error)
{
    struct ls_feed_options options = feed_options(net, INT64_MAX);
    return ls_feed_bytes(&options, bytes, error);
}
