/* What a training has to do and to send in an update, from its plans. See solver/scaling.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/scaling_load.h"

#include <string.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/factors.h"
#include "engine/pass.h"
#include "engine/plans.h"
#include "engine/rows.h"
#include "engine/reducer.h"
#include "ir/layer.h"
#include "plan/program.h"
#include "solver/fit.h"
#include "solver/scaling.h"
#include "solver/timing.h"
#include "solver/training_plan.h"

/* ---- What is exchanged ----------------------------------------------------------------------- */

/* The layer that has a parameter; those that share it come behind it. */
static size_t owner_of(const struct ls_graph *graph, const struct ls_parameter *parameter)
{
    size_t owner = 0;
    while (owner + 1 < graph->layer_count &&
           strcmp(graph->layers[owner]->name, parameter->layer) != 0)
        owner++;
    return owner;
}

static void load_parameters(const struct ls_trainer *trainer, struct ls_scaling_load *load)
{
    const struct ls_parameter_set *set = trainer->parameters;
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    struct ls_store_options store = ls_training_plan_store_options(trainer);
    size_t factors = 0, rows = 0;
    for (size_t p = 0; p < set->count; p++) {
        const struct ls_parameter *parameter = set->items[p];
        const struct ls_factoring *factoring = &parameter->factoring;
        load->layer[p] = owner_of(graph, parameter);
        rows += parameter->trained && factoring->weight == NULL ? ls_rows_laid_out(parameter) : 1;
        if (parameter->trained && factoring->weight == NULL) {
            load->elements[p] = ls_parameter_elements(parameter);
            load->whole[p] = store.state != NULL && store.state[p].whole;
            load->shared_state +=
                ls_parameter_bytes(parameter) * (size_t)ls_store_arrays(&store, parameter) +
                ls_store_factored_bytes(&store, parameter);
        }
        if (factoring->weight == parameter) {
            factors++;
            for (int side = 0; side < LS_FACTOR_SIDES; side++)
                load->layers[load->layer[p]].factors[side] = (double)ls_factor_bytes(
                    factoring, (enum ls_factor_side)side, (size_t)factoring->rows);
        }
    }
    /* What is noted of the pass; the largest gradients and weights that were seen. */
    load->books = (double)(ls_reducer_note_bytes(set->count, rows, factors) +
                           2 * (set->count + 1) * sizeof(uint32_t));
}

/* Rows that a micro-batch leaves: doubles. */
static double row_bytes(const struct ls_net *net, const struct ls_sync *sync)
{
    int64_t group = ls_net_graph(net)->groupings[sync->grouping];
    int64_t parts = ls_exchange_parts(ls_batching_largest(&net->batching), group);
    return (double)(parts * ls_sync_row(sync)) * sizeof(double);
}

static void load_sync_points(const struct ls_net *net, struct ls_scaling_load *load)
{
    const struct ls_graph *graph = ls_net_graph(net);
    bool kept = false;
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_sync *sync = &graph->syncs[s];
        struct ls_scaling_layer *layer = &load->layers[sync->layer->index];
        if (sync->grouping >= 0 && ls_plans_local(net, graph->groupings[sync->grouping])) {
            bool averaged = sync->kind == LS_SYNC_MOMENTS && sync->averages.mean != NULL;
            load->record += averaged ? row_bytes(net, sync) : 0;
            kept = kept || averaged;
            continue;
        }
        layer->syncs[sync->backward]++;
        layer->rows[sync->backward] +=
            sync->grouping >= 0 ? row_bytes(net, sync) : (double)sizeof(double);
    }
    load->exchanges += kept;
}

static void load_batches(const struct ls_net *net, struct ls_scaling_load *load)
{
    const struct ls_plan *plan = ls_net_first_plan(net);
    double records =
        (double)((size_t)ls_net_graph(net)->record_size + ls_pass_read_size(net)) * sizeof(double);
    load->units = ls_batching_most(&net->batching, net->batching.batch);
    load->batches = net->batching.iter_size;
    if (plan->segments > 1)
        load->waves = net->counts_on_the_way ? 1 : load->batches;
    load->record = plan->has_before ? 2 * records : records;
    /* Figures, what ranks noted of the pass and saw in the update; before it, counts of labels. */
    load->exchanges = 3 + plan->has_before;
}

int ls_scaling_load(struct ls_trainer *trainer, struct ls_scaling_load *load,
                    struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    *load = (struct ls_scaling_load){.workers = trainer->workers,
                                     .layer_count = graph->layer_count,
                                     .parameters = trainer->parameters->count,
                                     .forecast = trainer->forecast};
    load->layers = ls_alloc(load->layer_count + 1, sizeof *load->layers);
    load->elements = ls_alloc(load->parameters + 1, sizeof *load->elements);
    load->whole = ls_alloc(load->parameters + 1, sizeof *load->whole);
    load->layer = ls_alloc(load->parameters + 1, sizeof *load->layer);
    if (load->layers == NULL || load->elements == NULL || load->whole == NULL ||
        load->layer == NULL)
        return ls_fail_memory(error, "a plan");
    load_batches(trainer->train, load);
    load_parameters(trainer, load);
    load_sync_points(trainer->train, load);
    return 0;
}

void ls_scaling_clear(struct ls_scaling_load *load)
{
    ls_free(load->layers);
    ls_free(load->elements);
    ls_free(load->whole);
    ls_free(load->layer);
    *load = (struct ls_scaling_load){.workers = 0};
}

/* ---- Seconds that were measured -------------------------------------------------------------- */

/* What one rank takes for the micro-batches of an update, as the model adds it up. */
static double pass_seconds(const struct ls_scaling_load *load)
{
    double each = 0, gathered = 0;
    for (size_t l = 0; l < load->layer_count; l++) {
        each += load->layers[l].forward + load->layers[l].backward;
        gathered += load->layers[l].gathered[0] + load->layers[l].gathered[1];
    }
    int64_t waves = load->waves > 0 ? load->waves : 1;
    int64_t units = load->units * load->batches / waves;
    int64_t turns = (units + load->workers - 1) / load->workers;
    return (double)waves * ((double)turns * each + gathered);
}

static void stretch(struct ls_scaling_load *load, double factor)
{
    for (size_t l = 0; l < load->layer_count; l++) {
        struct ls_scaling_layer *layer = &load->layers[l];
        layer->forward *= factor;
        layer->backward *= factor;
        layer->gathered[0] *= factor;
        layer->gathered[1] *= factor;
    }
}

/* Whether gradients of a layer's parameters are exchanged as factors. */
static bool has_factors(const struct ls_scaling_layer *layer)
{
    return layer->factors[LS_FACTOR_INPUT] > 0;
}

static void measured_layer(struct ls_scaling_load *load, const struct lockstep_timing *timing,
                           size_t index, double *alone)
{
    const struct lockstep_time_part *part = timing->layers[index].part;
    const struct ls_timing_share *share = &timing->shares[index];
    struct ls_scaling_layer *layer = &load->layers[index];
    /* Seconds of `timed` workers for all micro-batches: of one worker for one. */
    double timed = timing->total.workers;
    double each = timed / (double)(load->units * load->batches);
    double all = timed / load->workers, waves = load->waves > 0 ? load->waves : 1;
    double update = part[LOCKSTEP_TIME_UPDATE].seconds * all;
    layer->gathered[0] = share->gathered[0] * all / waves;
    layer->gathered[1] = share->gathered[1] * all / waves;
    layer->forward = (part[LOCKSTEP_TIME_FORWARD].seconds - share->gathered[0]) * each;
    layer->backward =
        (part[LOCKSTEP_TIME_REPLAY].seconds + part[LOCKSTEP_TIME_BACKWARD_DATA].seconds +
         part[LOCKSTEP_TIME_BACKWARD_WEIGHTS].seconds + part[LOCKSTEP_TIME_REDUCTION].seconds -
         share->product - share->views - share->gathered[1]) *
        each;
    layer->views = share->views * all;
    layer->full = share->product * all + (has_factors(layer) ? update : 0);
    layer->update = has_factors(layer) ? 0 : update;
    *alone += part[LOCKSTEP_TIME_UPDATE].seconds + share->product + share->views;
}

void ls_scaling_measured(struct ls_scaling_load *load, const struct lockstep_timing *timing)
{
    const struct lockstep_time_total *total = &timing->total;
    double other = 0;
    load->rest = total->serial + total->merging + total->overhead;
    for (size_t l = 0; l < load->layer_count && l < timing->layer_count; l++)
        measured_layer(load, timing, l, &other);
    /* What the pass took besides its steps (waiting for data, for the slowest worker) belongs to
     * micro-batches, too. */
    int workers = load->workers;
    load->workers = total->workers;
    double added_up = pass_seconds(load), pass = total->seconds - other - load->rest;
    load->workers = workers;
    if (added_up > 0 && pass > added_up)
        stretch(load, pass / added_up);
}

/* ---- Seconds that are estimated -------------------------------------------------------------- */

/* The work of a micro-batch, as the plan's steps are estimated; steps without a layer are changes
 * of layout for the step behind them. */
static double add_work(struct ls_scaling_load *load, const struct ls_plan *plan)
{
    double all = 0, moved = 0;
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_step *step = &plan->steps[s];
        const struct ls_op *op = step->prepared.op;
        double work = moved + ls_step_work(step);
        moved = op->layer == NULL ? work : 0;
        if (op->layer == NULL)
            continue;
        struct ls_scaling_layer *layer = &load->layers[op->layer->index];
        bool backward = op->backward || step->recomputed;
        if (step->gathered)
            layer->gathered[backward] += work;
        else if (backward)
            layer->backward += work;
        else
            layer->forward += work;
        all += work;
    }
    return all;
}

/* The work of the update: the sum, weights and what is remembered are read and written. */
static double add_update(struct ls_scaling_load *load, const struct ls_trainer *trainer)
{
    struct ls_store_options store = ls_training_plan_store_options(trainer);
    double all = 0;
    for (size_t p = 0; p < load->parameters; p++) {
        const struct ls_parameter *parameter = trainer->parameters->items[p];
        struct ls_scaling_layer *layer = &load->layers[load->layer[p]];
        double elements = (double)ls_shape_size(&parameter->shape);
        double each = LS_WORK_OF_BYTE * (8.0 + 8.0 * (1 + ls_store_arrays(&store, parameter)));
        double work = each * elements;
        if (!parameter->trained)
            continue;
        if (parameter->factoring.weight == parameter)
            work += 2 * elements * (double)parameter->factoring.rows;
        if (parameter->factoring.weight != NULL)
            layer->full += work;
        else
            layer->update += work;
        all += work;
    }
    return all;
}

void ls_scaling_estimated(struct ls_scaling_load *load, const struct ls_trainer *trainer,
                          double seconds)
{
    double units = (double)(load->units * load->batches);
    double pass = units * add_work(load, ls_net_first_plan(trainer->train));
    double factor = seconds / (pass + add_update(load, trainer));
    double gathered = units / (load->waves > 0 ? load->waves : 1) / load->workers;
    for (size_t l = 0; l < load->layer_count; l++) {
        struct ls_scaling_layer *layer = &load->layers[l];
        layer->gathered[0] *= gathered;
        layer->gathered[1] *= gathered;
        layer->update *= factor / load->workers;
        layer->full *= factor / load->workers;
    }
    stretch(load, factor);
}
