/* The plans of a net: made as they are wanted, kept, forgotten; each size of samples is tried
 * before anything is trained. See engine/net.h and engine/plans.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/plans.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/reader.h"
#include "data/samples.h"
#include "engine/binding.h"
#include "engine/sources.h"
#include "ir/layer.h"

enum {
    PLANS_KEPT = 64,  /* of a net whose samples differ in size */
    SIZES_TRIED = 256 /* of its data, at the start */
};

/* Fillers are resolved when parameters are filled; what is wrong with them is said here, where the
 * definition is at hand. */
static int plans_check_filler(const struct ls_layer *layer, const Lockstep__FillerParameter *filler,
                              const struct ls_shape *shape, const char *what,
                              struct ls_error *error)
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

static int plans_check_fillers(const struct ls_graph *graph, struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        for (int b = 0; b < layer->blobs; b++) {
            const struct ls_blob_request *request = &layer->request[b];
            if (layer->blob[b] != NULL &&
                plans_check_filler(layer, request->filler, &request->shape, request->name, error) !=
                    0)
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
        if (plans_check_filler(op->layer, op->attr.fill.filler, &sample, "data", error) != 0)
            status = LOCKSTEP_DEFINITION;
    }
    return status;
}

int ls_plans_batch_sizes(const struct ls_batching *batching, int64_t sizes[2])
{
    int count = 0;
    bool short_data = batching->batch >= batching->samples && batching->last != LS_LAST_WRAP;
    sizes[count++] = short_data ? batching->samples : batching->batch;
    if (!short_data && batching->last == LS_LAST_PARTIAL &&
        batching->samples % batching->batch != 0)
        sizes[count++] = batching->samples % batching->batch;
    return count;
}

/* Whether every group of a batch of `count` samples lies within one of its micro-batches; `micro`
 * has room for these. (What needs no memory cannot be answered in two ways.) */
static bool plans_groups_fit(const struct ls_batching *batching, int64_t count, int64_t group,
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

bool ls_plans_local(const void *user, int64_t group)
{
    const struct ls_net *net = user;
    int64_t sizes[2];
    bool unknown = net->cut == NULL; /* there is something wrong with the batch, or there is none */
    if (unknown || net->options.from_outside || group == 1)
        return true;
    if (net->batching.size_of != NULL)
        return net->batching.batch == 1;
    int count = ls_plans_batch_sizes(&net->batching, sizes);
    for (int i = 0; i < count; i++)
        if (!plans_groups_fit(&net->batching, sizes[i], group, net->cut))
            return false;
    return true;
}

int ls_plans_slots(const struct ls_net *net, int workers)
{
    int64_t slots =
        ls_share_most(&net->options.share, ls_batching_most(&net->batching, net->batching.batch));
    if (net->counts_on_the_way)
        slots *= net->batching.iter_size;
    return slots > workers ? (int)slots : workers;
}

struct ls_graph_options ls_plans_graph_options(const struct ls_net *net, int64_t samples)
{
    const struct ls_net_options *options = &net->options;
    int64_t batches = options->iter_size > 0 ? options->iter_size : 1;
    return (struct ls_graph_options){
        .net = options->definition,
        .update_samples = options->training ? net->batching.batch * batches : 0,
        .phase = options->phase,
        .samples = samples,
        .whole = net->mixer != NULL,
        .seed = options->seed,
        .training = options->training,
        /* Predictions are of numbers that a caller has. */
        .round_inputs = !options->from_outside && options->output == NULL,
        .parameters = options->parameters,
        .sources = &net->sources,
        .check = plans_check_fillers};
}

void ls_plans_free(struct ls_net_plan *plan)
{
    if (plan == NULL)
        return;
    ls_binding_unbind(plan);
    ls_plan_free(plan->plan);
    ls_free(plan->position);
    ls_free(plan);
}

/* Micro-batches of one batch must all be gathered or none of them: the first plan decides. */
static enum ls_gathering plans_gathering(const struct ls_net *net, bool first)
{
    if (net->options.from_outside || net->varying >= 0 || net->cut == NULL ||
        ls_batching_most(&net->batching, net->batching.batch) < 2)
        return LS_GATHER_NEVER;
    if (first)
        return LS_GATHER_WHERE_IT_PAYS;
    return net->gathers ? LS_GATHER_ALWAYS : LS_GATHER_NEVER;
}

/* What goes on from one window to the next has one size, whatever sizes samples have; a state of
 * the batch, however many samples it has. */
static int plans_check_states(const struct ls_net *net, const struct ls_graph *graph,
                              struct ls_error *error)
{
    const struct ls_graph *first = net->plan_count > 0 ? ls_net_graph(net) : graph;
    int status = 0;
    for (size_t i = 0; i < graph->sample_state_count; i++) {
        const struct ls_sample_state *state = &graph->sample_states[i];
        const struct ls_value *known = first->sample_states[i].value;
        struct ls_shape shape = state->value->shape;
        char is[160], was[160];
        if (!ls_layer_is_mixed(state->layer, state->value))
            shape.dim[known->sample_axis] = known->shape.dim[known->sample_axis];
        if (ls_shape_equal(&shape, &known->shape))
            continue;
        status = ls_layer_fail(state->layer, error, NULL, NULL,
                               "its size must not depend on the sizes of samples: transform_param "
                               "{ crop_size } makes them alike",
                               "the state '%s', which goes on from one window to the next, would "
                               "be %s here and %s before",
                               state->name, ls_shape_text(&shape, is, sizeof is),
                               ls_shape_text(&known->shape, was, sizeof was));
    }
    return status;
}

/* What is ranked has one number of rows a sample, whatever sizes samples have. */
static int plans_check_rankings(const struct ls_net *net, const struct ls_graph *graph,
                                struct ls_error *error)
{
    const struct ls_graph *first = net->plan_count > 0 ? ls_net_graph(net) : graph;
    if ((int64_t)graph->list_size * first->samples == (int64_t)first->list_size * graph->samples)
        return 0;
    return ls_layer_fail(graph->rankings[0].layer, error, NULL, NULL,
                         "keep_top_k of DetectionOutput gives all samples one number of rows",
                         "how many boxes a sample can have must not depend on its size");
}

/* Builds the plan for micro-batches like `micro`; the net's first one or another. */
static int plans_build_plan(struct ls_net *net, const struct ls_micro *micro, bool first,
                            struct ls_net_plan *plan, struct ls_error *error)
{
    const struct ls_net_options *options = &net->options;
    struct ls_graph_options graph_options = ls_plans_graph_options(net, micro->count);
    struct ls_graph *graph = NULL;
    plan->samples = micro->count;
    memcpy(plan->shape, micro->shape, sizeof plan->shape);
    if (net->varying >= 0 && micro->shape[0] > 0)
        ls_sources_set_size(net, micro->shape);
    LS_TRY(ls_graph_build(&graph_options, &graph, error));
    int status = plans_check_states(net, graph, error);
    if (status == 0)
        status = plans_check_rankings(net, graph, error);
    if (status != 0) {
        ls_graph_free(graph);
        return status;
    }
    for (size_t i = 0; i < graph->sync_count; i++)
        net->counts_on_the_way |= graph->syncs[i].kind == LS_SYNC_COUNT && options->training;
    plan->output = options->output != NULL ? options->output(graph, options->blob) : NULL;
    int workers = options->workers > 0 ? options->workers : 1;
    struct ls_plan_options plan_options = {.device = options->device,
                                           .views = options->views,
                                           .keep = &plan->output,
                                           .keep_count = 1,
                                           .local = ls_plans_local,
                                           .user = net,
                                           .gather = plans_gathering(net, first),
                                           .gather_samples =
                                               first ? micro->count : net->plans[0]->samples,
                                           .budget = {.bytes = options->activation_bytes,
                                                      .workers = workers,
                                                      .slots = ls_plans_slots(net, workers)}};
    LS_TRY(ls_plan_build(graph, &plan_options, &plan->plan, error));
    if (first) {
        net->gathers = ls_plan_gathers(plan->plan);
        net->may_gather = plan->plan->may_gather;
    }
    plan->position = ls_alloc(plan->plan->step_count + 1, sizeof *plan->position);
    if (plan->position == NULL)
        return ls_fail_memory(error, "a plan");
    for (size_t i = 0; i < plan->plan->step_count; i++) {
        const struct ls_op *op = plan->plan->steps[i].prepared.op;
        plan->position[i + 1] = plan->position[i] + (size_t)(op->inputs + op->outputs);
    }
    return 0;
}

static struct ls_net_plan *plans_find_plan(const struct ls_net *net, const struct ls_micro *micro)
{
    for (size_t i = 0; i < net->plan_count; i++)
        if (net->plans[i]->samples == micro->count &&
            memcmp(net->plans[i]->shape, micro->shape, sizeof micro->shape) == 0)
            return net->plans[i];
    return NULL;
}

/* Makes room for another plan: the one that was not wanted for longest goes, but none that the pass
 * at hand needs, however many those are. The first one stays; it says what all have in common. */
static void plans_forget_plans(struct ls_net *net)
{
    while (net->plan_count >= PLANS_KEPT) {
        size_t oldest = 0;
        for (size_t i = 1; i < net->plan_count; i++)
            if (net->plans[i]->used <= net->wanted_before && !net->plans[i]->kept &&
                (oldest == 0 || net->plans[i]->used < net->plans[oldest]->used))
                oldest = i;
        if (oldest == 0)
            return;
        ls_plans_free(net->plans[oldest]);
        net->plans[oldest] = net->plans[--net->plan_count];
    }
}

void ls_plans_begin_pass(struct ls_net *net)
{
    net->wanted_before = net->wanted;
}

/* Where sizes vary a problem may concern some of them only: says which, and a record that has it.
 * `before`: how many problems there were. */
static int plans_name_size(const struct ls_net *net, const struct ls_micro *micro, int before,
                           int status, struct ls_error *error)
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
    struct ls_problem which;
    ls_problem_set(&which, LOCKSTEP_DATA,
                   "samples differ in size, and not all layers work on each size: data_param { "
                   "new_height new_width } resizes pictures, transform_param { crop_size } crops "
                   "them",
                   "has this size, %lld x %lld x %lld", (long long)size[0], (long long)size[1],
                   (long long)size[2]);
    if (ls_reader_open(net->datasets[net->varying], &reader, NULL) == 0)
        ls_reader_fail(reader, micro->ordinal, &which, error);
    ls_reader_close(reader);
    return status;
}

int ls_plans_require(struct ls_net *net, const struct ls_micro *micro, struct ls_net_plan **out,
                     struct ls_error *error)
{
    int problems = error != NULL ? error->count : 0;
    net->wanted++;
    *out = plans_find_plan(net, micro);
    if (*out == NULL) {
        plans_forget_plans(net);
        struct ls_net_plan *plan = ls_alloc(1, sizeof *plan);
        if (plan == NULL || !LS_GROW(net->plans, net->plan_count, net->plan_capacity)) {
            ls_free(plan);
            return ls_fail_memory(error, "a plan");
        }
        int status = plans_build_plan(net, micro, net->plan_count == 0, plan, error);
        if (status != 0) {
            ls_plans_free(plan);
            return net->plan_count > 0 ? plans_name_size(net, micro, problems, status, error)
                                       : status;
        }
        net->plans[net->plan_count++] = *out = plan;
    }
    (*out)->used = net->wanted;
    return 0;
}

int ls_plans_limit(struct ls_net *net, size_t activation_bytes, struct ls_error *error)
{
    net->options.activation_bytes = activation_bytes;
    for (size_t i = 0; i < net->plan_count; i++) {
        struct ls_micro micro = {.count = net->plans[i]->samples};
        memcpy(micro.shape, net->plans[i]->shape, sizeof micro.shape);
        struct ls_net_plan *plan = ls_alloc(1, sizeof *plan);
        int status = plan == NULL ? ls_fail_memory(error, "a plan")
                                  : plans_build_plan(net, &micro, i == 0, plan, error);
        if (status != 0) {
            ls_plans_free(plan);
            return status;
        }
        plan->used = net->plans[i]->used;
        plan->kept = net->plans[i]->kept;
        ls_plans_free(net->plans[i]);
        net->plans[i] = plan;
    }
    return 0;
}

int ls_plans_largest(struct ls_net *net, int workers, struct ls_room *room, struct ls_error *error)
{
    if (net->varying < 0)
        return 0;
    struct ls_net_plan *plan = ls_alloc(1, sizeof *plan);
    if (plan == NULL)
        return ls_fail_memory(error, "a plan");
    int64_t before[3];
    memcpy(before, net->size, sizeof before);
    struct ls_micro micro = {.count = ls_batching_largest(&net->batching)};
    memcpy(micro.shape, ls_dataset_largest_shape(net->datasets[net->varying]), sizeof micro.shape);
    int status = plans_build_plan(net, &micro, false, plan, NULL);
    if (status == 0)
        ls_room_add(room, plan->plan, ls_plans_slots(net, workers));
    ls_plans_free(plan);
    ls_sources_set_size(net, before);
    /* No sample need have this size, which is the largest height with the largest width: a net that
     * cannot take it is none the worse for it. */
    return status == LOCKSTEP_RESOURCE ? ls_fail_memory(error, "a plan") : 0;
}

/* Whether `shape` is new among `count` of them; if so it is added. */
static bool plans_is_new_size(int64_t (*seen)[3], size_t *count, const int64_t shape[3])
{
    for (size_t i = 0; i < *count; i++)
        if (memcmp(seen[i], shape, sizeof seen[i]) == 0)
            return false;
    memcpy(seen[(*count)++], shape, sizeof *seen);
    return true;
}

static int plans_check_size(struct ls_net *net, const struct ls_micro *micro,
                            struct ls_error *error)
{
    struct ls_graph_options options = ls_plans_graph_options(net, micro->count);
    struct ls_graph *graph = NULL;
    int problems = error != NULL ? error->count : 0;
    ls_sources_set_size(net, micro->shape);
    int status = ls_graph_build(&options, &graph, error);
    if (status == 0)
        status = plans_check_states(net, graph, error);
    ls_graph_free(graph);
    return plans_name_size(net, micro, problems, status, error);
}

int ls_plans_check_sizes(struct ls_net *net, bool all, struct ls_error *error)
{
    struct ls_dataset *dataset = net->datasets[net->varying];
    int64_t before[3];
    memcpy(before, net->size, sizeof before);
    int64_t(*seen)[3] = ls_alloc(SIZES_TRIED, sizeof *seen);
    int status = seen == NULL ? ls_fail_memory(error, "sizes of samples") : 0;
    size_t count = 0;
    bool goes_on = status == 0;
    for (int64_t i = 0; i < net->batching.samples && count < SIZES_TRIED && goes_on; i++) {
        struct ls_micro micro = {.ordinal = i, .count = 1};
        int found = ls_dataset_sample_shape(dataset, i, micro.shape, error);
        if (found == 0 && plans_is_new_size(seen, &count, micro.shape))
            found = plans_check_size(net, &micro, error);
        status = status != 0 ? status : found;
        goes_on = status == 0 || (all && found != LOCKSTEP_RESOURCE);
    }
    ls_sources_set_size(net, before);
    ls_free(seen);
    return status;
}
