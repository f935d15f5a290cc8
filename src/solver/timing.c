/* Timing a training. See solver/timing.h.
 *
 * The clocks run while updates are done as always: of each step of the plans (engine/binding.c) and
 * of what workers do besides (engine/profiler.h). After each update the steps' clocks are read and
 * begin anew, because a plan may be gone after the next one. Times are added up in nanoseconds of
 * cores, then divided by workers and iterations.
 *
 * FLOPs are those of the layers' definitions (ls_layer_type.cost), bytes those of the steps'
 * operands.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/probe.h"
#include "base/thread.h"
#include "engine/binding.h"
#include "engine/pass.h"
#include "engine/profiler.h"
#include "ir/layer.h"
#include "ir/op_type.h"

enum { WARM_UP = 2, DEFAULT_ITERATIONS = 20 };

struct timer {
    struct ls_trainer *trainer;
    struct lockstep_timing *timing;
    struct ls_profiler *profiler;
    double *seconds; /* by iteration */
};

static enum lockstep_time_kind kind_of(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    if (step->recomputed)
        return LOCKSTEP_TIME_REPLAY;
    switch (ls_op_type(op->kind)->timing) {
    case LS_TIMING_REDUCTION:
        return LOCKSTEP_TIME_REDUCTION;
    case LS_TIMING_WEIGHTS:
        return LOCKSTEP_TIME_BACKWARD_WEIGHTS;
    case LS_TIMING_WEIGHTS_IF_MADE:
        for (int i = 0; i < op->outputs; i++)
            if (op->output[i] != NULL)
                return LOCKSTEP_TIME_BACKWARD_WEIGHTS;
        return LOCKSTEP_TIME_BACKWARD_DATA;
    case LS_TIMING_PASS:
        break;
    }
    return op->backward ? LOCKSTEP_TIME_BACKWARD_DATA : LOCKSTEP_TIME_FORWARD;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static int make_rows(struct timer *timer, struct ls_error *error)
{
    struct lockstep_timing *timing = timer->timing;
    const struct ls_graph *graph = ls_net_graph(timer->trainer->train);
    size_t length = 1;
    for (size_t i = 0; i < graph->layer_count; i++)
        length += strlen(graph->layers[i]->name) + 1;
    timing->layers = ls_alloc(graph->layer_count + 1, sizeof *timing->layers);
    timing->shares = ls_alloc(graph->layer_count + 1, sizeof *timing->shares);
    timing->names = ls_alloc(length, 1);
    if (timing->layers == NULL || timing->shares == NULL || timing->names == NULL)
        return ls_fail_memory(error, "a timing");
    char *name = timing->names;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        size_t size = strlen(layer->name) + 1;
        timing->layers[i].name = memcpy(name, layer->name, size);
        timing->layers[i].type = layer->type->type;
        name += size;
    }
    timing->layer_count = graph->layer_count;
    return 0;
}

/* The row of a layer of one of the net's graphs, which all have the same layers in one order. */
static struct lockstep_time_layer *row_of(const struct timer *timer, const struct ls_layer *layer)
{
    return (size_t)layer->index < timer->timing->layer_count ? &timer->timing->layers[layer->index]
                                                             : NULL;
}

static struct lockstep_time_layer *row_of_parameter(const struct timer *timer, size_t index)
{
    const char *owner = timer->trainer->parameters->items[index]->layer;
    for (size_t i = 0; i < timer->timing->layer_count; i++)
        if (strcmp(timer->timing->layers[i].name, owner) == 0)
            return &timer->timing->layers[i];
    return NULL;
}

static struct ls_timing_share *share_of(const struct timer *timer,
                                        const struct lockstep_time_layer *row)
{
    return &timer->timing->shares[row - timer->timing->layers];
}

/* The step that a step is for: a change of layout is for the one that reads it, which follows. */
static const struct ls_step *purpose_of(const struct ls_plan *plan, size_t index)
{
    size_t i = index;
    while (i + 1 < plan->step_count && plan->steps[i].prepared.op->layer == NULL)
        i++;
    return plan->steps[i].prepared.op->layer != NULL ? &plan->steps[i] : NULL;
}

/* ---- Reading the clocks ---------------------------------------------------------------------- */

static double bytes_of(const struct ls_op *op)
{
    return ls_op_type(op->kind)->traffic * ls_op_operand_bytes(op);
}

/* What a step moves that has run `runs` times. What is gathered reads its weights once for all
 * micro-batches of a batch: `reads` times. */
static double bytes_of_step(const struct ls_step *step, double runs, double reads)
{
    const struct ls_op *op = step->prepared.op;
    double weights = 0;
    for (int i = 0; i < op->inputs && step->gathered; i++)
        if (op->input[i] != NULL && op->input[i]->storage == LS_STORE_PARAMETER)
            weights += (double)ls_value_bytes(op->input[i]);
    return runs * (bytes_of(op) - weights) + reads * weights;
}

/* Steps of a plan that has run `runs` times, for `reads` batches. A step of no layer that is for
 * none is the engine's. */
static void add_steps(struct timer *timer, const struct ls_net_plan *net_plan, double runs,
                      double reads)
{
    const struct ls_plan *plan = net_plan->plan;
    int workers = timer->trainer->workers;
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_step *purpose = purpose_of(plan, s);
        struct lockstep_time_layer *row =
            purpose != NULL ? row_of(timer, purpose->prepared.op->layer) : NULL;
        if (row == NULL)
            continue;
        const struct ls_step *step = &plan->steps[s];
        bool own = step->prepared.op->layer != NULL;
        struct lockstep_time_part *part = &row->part[kind_of(own ? step : purpose)];
        double seconds = 0;
        for (int w = 0; w < workers; w++)
            seconds += (double)ls_binding_step_time(net_plan, s, w, workers) * 1e-9;
        part->seconds += seconds;
        if (step->gathered)
            share_of(timer, row)->gathered[step->prepared.op->backward] += seconds;
        part->bytes += bytes_of_step(step, runs, reads);
        if (step->prepared.op->kind == LS_OP_RECORD) /* read again for the product */
            row->part[LOCKSTEP_TIME_BACKWARD_WEIGHTS].bytes +=
                runs * bytes_of(step->prepared.op) / 2;
    }
}

static void add_flops(struct timer *timer, const struct ls_graph *graph, double runs)
{
    for (size_t i = 0; i < graph->layer_count && i < timer->timing->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        struct lockstep_time_part *part = timer->timing->layers[i].part;
        struct ls_cost cost = {0};
        if (layer->type->cost == NULL)
            continue;
        layer->type->cost(layer, &cost);
        part[LOCKSTEP_TIME_FORWARD].flops += runs * cost.forward_flops;
        part[LOCKSTEP_TIME_BACKWARD_DATA].flops += runs * cost.backward_data_flops;
        part[LOCKSTEP_TIME_BACKWARD_WEIGHTS].flops += runs * cost.backward_weights_flops;
    }
}

/* Starts the clocks of all plans, from zero. */
static int take_time(const struct timer *timer, bool on, struct ls_error *error)
{
    struct ls_net *net = timer->trainer->train;
    for (size_t i = 0; i < net->plan_count; i++)
        LS_TRY(ls_binding_take_time(net->plans[i], on, error));
    return 0;
}

/* After an update: what the steps of its plans took. */
static void read_clocks(struct timer *timer)
{
    const struct ls_pass *pass = timer->trainer->train_pass;
    const struct ls_net *net = timer->trainer->train;
    for (size_t i = 0; i < net->plan_count; i++) {
        double runs = 0;
        for (size_t unit = 0; unit < pass->unit_count; unit++)
            runs += pass->units[unit].plan == net->plans[i];
        if (runs > 0) {
            /* Plans for several sizes of micro-batches share the batches. */
            double share = runs / (double)pass->unit_count;
            add_steps(timer, net->plans[i], runs, share * (double)pass->wave_count);
            add_flops(timer, net->plans[i]->plan->graph, runs);
        }
    }
    timer->timing->total.samples += timer->trainer->figures.totals.samples;
}

/* ---- Totals ---------------------------------------------------------------------------------- */

/* Bytes that the update of a parameter reads and writes: the sum, the weights, what the optimizer
 * remembers, the average of the weights. */
static double update_bytes(const struct ls_parameter_state *slot, bool factors)
{
    double numbers = slot->average != NULL ? 2 : 1;
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        numbers += slot->history[h] != NULL;
    return (double)slot->elements * ((factors ? 0 : 8) + 8 * numbers);
}

static void add_parameters(struct timer *timer)
{
    const struct ls_store *store = timer->trainer->store;
    double iterations = (double)timer->timing->total.iterations;
    for (size_t p = 0; p < store->set->count; p++) {
        struct lockstep_time_layer *row = row_of_parameter(timer, p);
        if (row == NULL)
            continue;
        for (int w = 0; w < timer->profiler->workers; w++) {
            const struct ls_profiler_worker *worker = &timer->profiler->worker[w];
            row->part[LOCKSTEP_TIME_UPDATE].seconds += (double)worker->update[p] * 1e-9;
            row->part[LOCKSTEP_TIME_BACKWARD_WEIGHTS].seconds += (double)worker->product[p] * 1e-9;
            row->part[LOCKSTEP_TIME_REDUCTION].seconds += (double)worker->views[p] * 1e-9;
            share_of(timer, row)->product += (double)worker->product[p] * 1e-9;
            share_of(timer, row)->views += (double)worker->views[p] * 1e-9;
        }
        if (store->set->items[p]->trained)
            row->part[LOCKSTEP_TIME_UPDATE].bytes +=
                iterations * update_bytes(&store->slots[p], ls_store_has_factors(store, (int)p));
        for (size_t v = 0; v < store->views->count; v++)
            if (store->views->items[v].parameter == store->set->items[p])
                row->part[LOCKSTEP_TIME_REDUCTION].bytes +=
                    iterations * (double)(ls_view_bytes(&store->views->items[v]) +
                                          ls_parameter_bytes(store->set->items[p]));
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* From sums over workers and iterations to an iteration; returns the seconds of all layers. */
static double divide(struct timer *timer)
{
    struct lockstep_timing *timing = timer->timing;
    double iterations = (double)timing->total.iterations;
    double cores = iterations * (double)timer->trainer->workers, all = 0;
    for (size_t i = 0; i < timing->layer_count; i++) {
        for (int k = 0; k < LOCKSTEP_TIME_KINDS; k++) {
            struct lockstep_time_part *part = &timing->layers[i].part[k];
            part->seconds /= cores;
            part->flops /= iterations;
            part->bytes /= iterations;
            all += part->seconds;
        }
        struct ls_timing_share *share = &timing->shares[i];
        share->gathered[0] /= cores;
        share->gathered[1] /= cores;
        share->product /= cores;
        share->views /= cores;
    }
    return all;
}

static void find_totals(struct timer *timer)
{
    struct lockstep_time_total *total = &timer->timing->total;
    const struct ls_profiler *profiler = timer->profiler;
    double working = 0, n = (double)total->iterations;
    double tasks = (double)profiler->tasks * 1e-9 / n, cores = 1e-9 / n / profiler->workers;
    for (int w = 0; w < profiler->workers; w++) {
        working += (double)profiler->worker[w].working * cores;
        total->data += (double)profiler->worker[w].data * cores;
        total->barriers += (double)profiler->worker[w].barriers * cores;
        total->merging += (double)profiler->worker[w].merging * cores;
    }
    for (int64_t i = 0; i < total->iterations; i++)
        total->seconds += timer->seconds[i] / n;
    qsort(timer->seconds, (size_t)total->iterations, sizeof *timer->seconds, compare_doubles);
    total->fastest = timer->seconds[0];
    total->median = timer->seconds[total->iterations / 2];
    total->slowest = timer->seconds[total->iterations - 1];
    add_parameters(timer);
    double layers = divide(timer);
    total->overhead = working - layers - total->data - total->barriers - total->merging;
    total->overhead = total->overhead > 0 ? total->overhead : 0; /* what is left of rounding */
    total->barriers += tasks - working;
    total->serial = total->seconds - tasks;
}

/* ---- The run --------------------------------------------------------------------------------- */

static int asked_to_stop(const struct lockstep_callbacks *callbacks)
{
    return callbacks->poll != NULL && callbacks->poll(callbacks->user) == LOCKSTEP_SNAPSHOT_AND_STOP
               ? LOCKSTEP_STOPPED
               : 0;
}

static int measure(struct timer *timer, struct ls_error *error)
{
    struct ls_trainer *trainer = timer->trainer;
    struct ls_thread_pool *pool = trainer->engine->pool;
    int status = 0;
    ls_thread_pool_profile(pool, timer->profiler);
    for (int64_t i = 0; i < timer->timing->total.iterations && status == 0; i++) {
        status = asked_to_stop(&trainer->callbacks);
        if (status == 0)
            status = take_time(timer, true, error);
        double start = ls_clock();
        if (status == 0)
            status = ls_trainer_update(trainer, error);
        timer->seconds[i] = ls_clock() - start;
        if (status == 0)
            read_clocks(timer);
    }
    ls_thread_pool_profile(pool, NULL);
    return status;
}

static int probe(const struct timer *timer, struct lockstep_probe *out, struct ls_error *error)
{
    struct ls_probe probe;
    if (!timer->trainer->device->memory->host_memory) /* what cores can do says nothing of a card */
        return 0;
    LS_TRY(ls_probe(timer->trainer->workers, &probe, error));
    *out = (struct lockstep_probe){probe.cores, probe.flops, probe.bytes};
    return 0;
}

/* Some policies of the learning rate have no rate behind max_iter. */
static int64_t find_iterations(const struct ls_trainer *trainer, int64_t wanted, int64_t *warm_up)
{
    int64_t most = trainer->schedule.max_iter > 0 ? trainer->schedule.max_iter : 1;
    *warm_up = most > WARM_UP ? WARM_UP : most - 1;
    wanted = wanted > 0 ? wanted : DEFAULT_ITERATIONS;
    return wanted < most - *warm_up ? wanted : most - *warm_up;
}

static int run(struct timer *timer, int64_t wanted, struct ls_error *error)
{
    struct ls_trainer *trainer = timer->trainer;
    struct lockstep_time_total *total = &timer->timing->total;
    int64_t warm_up;
    *total =
        (struct lockstep_time_total){.workers = trainer->workers,
                                     .batch = trainer->train->batching.batch,
                                     .micro_batch = ls_batching_largest(&trainer->train->batching)};
    total->iterations = find_iterations(trainer, wanted, &warm_up);
    timer->seconds = ls_alloc((size_t)total->iterations, sizeof *timer->seconds);
    if (timer->seconds == NULL)
        return ls_fail_memory(error, "a timing");
    LS_TRY(make_rows(timer, error));
    LS_TRY(
        ls_profiler_create(trainer->workers, trainer->parameters->count, &timer->profiler, error));
    LS_TRY(probe(timer, &total->before, error));
    for (int64_t i = 0; i < warm_up; i++)
        LS_TRY(ls_trainer_update(trainer, error));
    LS_TRY(measure(timer, error));
    find_totals(timer);
    return probe(timer, &total->after, error);
}

int ls_timing(const struct ls_solver_definition *definition,
              const struct lockstep_time_options *options, struct lockstep_timing *timing,
              struct ls_error *error)
{
    struct timer timer = {.timing = timing};
    struct lockstep_train_options train = {.struct_size = sizeof train,
                                           .workers = options->workers,
                                           .memory = options->memory,
                                           .callbacks = options->callbacks,
                                           .device = options->device};
    int status = ls_trainer_create(definition, &train, &timer.trainer, error);
    if (status == 0)
        status = run(&timer, options->iterations, error);
    ls_profiler_free(timer.profiler);
    ls_free(timer.seconds);
    ls_trainer_free(timer.trainer);
    return status;
}

void ls_timing_clear(struct lockstep_timing *timing)
{
    ls_free(timing->layers);
    ls_free(timing->shares);
    ls_free(timing->names);
    *timing = (struct lockstep_timing){.layer_count = 0};
}
