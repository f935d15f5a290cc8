/* Adding up what will be allocated. See engine/forecast.h.
 *
 * Each sum follows the code that allocates: the store, the workers' memory, a pass with its sync
 * points, the prefetcher. What kernels and plans take for themselves cannot be asked for; it goes
 * by the number of primitives, as measured with oneDNN.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/forecast.h"

#include "base/memory.h"
#include "data/cache.h"
#include "engine/binding.h"
#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/pass.h"
#include "engine/plans.h"
#include "engine/rankings.h"
#include "engine/records.h"
#include "engine/residents.h"
#include "engine/room.h"
#include "engine/rows.h"
#include "engine/sample_states.h"
#include "engine/shards.h"
#include "engine/whole.h"
#include "engine/reducer_sums.h"
#include "transport/comm.h"

enum {
    BASE = 17 << 18,     /* libraries, the environment's fingerprint */
    THREAD = 200 << 10,  /* a stack, and the heap of its own that a thread has */
    STEP = 2 << 10,      /* of a plan: the op, what its kernel keeps */
    PRIMITIVE = 1 << 10, /* of a step that is oneDNN's */
    CODE = 8 << 10,      /* that oneDNN generates for it */
    BOUND_STEP = 512,    /* of a plan in one slot */
    PARAMETER = 1 << 10
};

size_t ls_gradient_bytes(const struct ls_parameter *parameter)
{
    const struct ls_factoring *factoring = &parameter->factoring;
    if (!parameter->trained)
        return 0;
    if (factoring->weight == NULL)
        return ls_parameter_elements(parameter) * sizeof(int64_t) + ls_rows_bytes(parameter);
    return ls_parameter_exchange_bytes(parameter);
}

/* Bytes of what the optimizer remembers and of averages on the rank with the most of it, alone all;
 * and of what is on its way to others. */
static int forecast_most_owned(const struct ls_parameter_set *set,
                               const struct ls_store_options *store, size_t *history,
                               size_t *averages, size_t *reducer, struct ls_error *error)
{
    const int ranks = store->ranks;
    struct ls_shards *shards = NULL;
    size_t *elements = ls_alloc(2 * set->count + 1, sizeof *elements);
    size_t *sums = elements != NULL ? elements + set->count : NULL;
    bool *whole = ls_alloc(set->count + 1, sizeof *whole);
    if (elements == NULL || whole == NULL) {
        ls_free(elements);
        ls_free(whole);
        return ls_fail_memory(error, "parameters");
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct ls_parameter *parameter = set->items[i];
        elements[i] = parameter->trained ? ls_parameter_elements(parameter) : 0;
        sums[i] = parameter->factoring.weight == NULL ? elements[i] : 0;
        whole[i] = store->state != NULL && store->state[i].whole;
    }
    int status = ls_shards_create(set->count, sums, whole, ranks, &shards, error);
    *history = *averages = 0;
    for (int r = 0; r < ranks && status == 0; r++) {
        size_t owned = 0, arrays = 0, begin, end;
        for (size_t i = 0; i < set->count; i++) {
            ls_shards_own(shards, (int)i, elements[i], r, &begin, &end);
            size_t bytes = (end - begin) * ls_dtype_size(LS_F32);
            owned += store->average ? bytes : 0;
            arrays += bytes * (size_t)ls_store_arrays(store, set->items[i]);
            arrays += begin < end ? ls_store_factored_bytes(store, set->items[i]) : 0;
        }
        *history = ls_room_larger(*history, arrays - owned);
        *averages = ls_room_larger(*averages, owned);
    }
    *reducer = status == 0 ? ls_reducer_sums_bytes(shards) : 0;
    ls_shards_free(shards);
    ls_free(elements);
    ls_free(whole);
    return status;
}

static int forecast_add_parameters(const struct ls_parameter_set *set,
                                   const struct ls_view_set *views,
                                   const struct ls_store_options *store,
                                   struct ls_forecast *forecast, struct ls_error *error)
{
    size_t history = 0, averages = 0, reducer = 0;
    if (store->training)
        LS_TRY(forecast_most_owned(set, store, &history, &averages, &reducer, error));
    forecast->gradients += reducer;
    forecast->history += history;
    forecast->averages += averages;
    for (size_t i = 0; i < set->count; i++) {
        const struct ls_parameter *parameter = set->items[i];
        forecast->weights += ls_parameter_bytes(parameter);
        if (parameter->mask != NULL)
            forecast->weights += ls_mask_words(ls_parameter_elements(parameter)) * sizeof(uint32_t);
        if (set->items[i]->trained && store->training)
            forecast->gradients += ls_gradient_bytes(set->items[i]);
    }
    for (size_t i = 0; i < views->count; i++)
        forecast->views += ls_view_bytes(&views->items[i]);
    return 0;
}

/* Partial results of sync points for all micro-batches of a pass, and what is merged. */
static size_t forecast_sync_bytes(const struct ls_net *net, int64_t batches, int workers)
{
    const struct ls_graph *graph = ls_net_graph(net);
    int64_t units = batches * ls_batching_most(&net->batching, net->batching.batch), bytes = 0;
    int64_t largest = ls_batching_largest(&net->batching);
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_sync *sync = &graph->syncs[s];
        if (sync->grouping < 0)
            continue;
        int64_t group = graph->groupings[sync->grouping];
        int64_t parts = ls_exchange_parts(largest, group);
        int64_t merged = ls_plans_local(net, group)
                             ? parts * workers
                             : batches * ls_batching_groups(net->batching.batch, group);
        bytes += units * parts * ls_sync_row(sync) * (int64_t)sizeof(double) +
                 merged * ls_sync_merged(sync) * (int64_t)ls_dtype_size(LS_F32);
    }
    return (size_t)bytes;
}

static void forecast_add_pass(const struct ls_net *net, int workers, struct ls_forecast *forecast)
{
    int64_t batches = ls_pass_batches(net);
    size_t units = (size_t)(batches * ls_batching_most(&net->batching, net->batching.batch));
    size_t records =
        units * sizeof(double) *
        ((size_t)ls_net_graph(net)->record_size + ls_pass_list_size(net) + ls_pass_read_size(net));
    forecast->statistics += records + ls_records_bytes(net) +
                            forecast_sync_bytes(net, batches, workers) +
                            ls_rankings_bytes(ls_net_graph(net), net->batching.samples);
}

static int forecast_add_plans(struct ls_net *net, int workers, struct ls_forecast *forecast,
                              struct ls_room *room, size_t *gathered, struct ls_error *error)
{
    int slots = ls_plans_slots(net, workers);
    LS_TRY(ls_plans_largest(net, workers, room, error));
    for (size_t i = 0; i < net->plan_count; i++) {
        const struct ls_plan *plan = net->plans[i]->plan;
        ls_room_add(room, plan, slots);
        int bound = plan->segments > 1 ? slots : workers;
        forecast->programs += plan->step_count * (STEP + (size_t)bound * BOUND_STEP);
        for (size_t s = 0; s < plan->step_count; s++)
            if (plan->steps[s].prepared.kernel->library)
                forecast->programs += PRIMITIVE + CODE;
        *gathered = ls_room_larger(*gathered, ls_plan_gathered_bytes(plan) * (size_t)slots);
        if (forecast->apart)
            forecast->staging +=
                ls_staging_bytes(plan->graph, ls_binding_buffers(bound, workers)) * (size_t)bound;
    }
    return 0;
}

static bool forecast_has_cache(const struct ls_net *net, int datasets, const struct ls_cache *cache)
{
    for (int d = 0; d < datasets && !net->options.from_outside; d++)
        if (ls_dataset_cache(net->datasets[d]) == cache)
            return true;
    return false;
}

/* Of the caches of net `which` that none of the nets before it has. */
static size_t forecast_cache_bytes(struct ls_net *const *nets, size_t which)
{
    size_t bytes = 0;
    for (int d = 0; d < nets[which]->dataset_count; d++) {
        const struct ls_cache *cache = ls_dataset_cache(nets[which]->datasets[d]);
        bool known = cache == NULL || forecast_has_cache(nets[which], d, cache);
        for (size_t i = 0; i < which; i++)
            known = known || forecast_has_cache(nets[i], nets[i]->dataset_count, cache);
        bytes += known ? 0 : ls_cache_bytes(cache);
    }
    return bytes;
}

int ls_forecast_nets(struct ls_net *const *nets, size_t count, const struct ls_parameter_set *set,
                     const struct ls_view_set *views, const struct ls_store_options *store,
                     struct ls_forecast *forecast, struct ls_error *error)
{
    struct ls_room room = {0};
    *forecast = (struct ls_forecast){.workers = store->workers, .base = BASE};
    forecast->apart = count > 0 && !nets[0]->options.device->memory->host_memory;
    size_t samples = 0, gathered = 0;
    for (size_t i = 0; i < count; i++) {
        size_t data = 0, threads = 0;
        LS_TRY(forecast_add_plans(nets[i], store->workers, forecast, &room, &gathered, error));
        if (nets[i]->options.from_outside)
            continue;
        forecast->records += ls_residents_bytes(nets[i]);
        forecast_add_pass(nets[i], store->workers, forecast);
        forecast->sample_states += ls_sample_states_bytes(nets[i], store->ranks);
        LS_TRY(ls_net_prefetcher_bytes(nets[i], &data, &threads, error));
        samples = ls_room_larger(samples, data); /* prefetchers share the memory for them */
        forecast->data += threads;
        forecast->cache += forecast_cache_bytes(nets, i);
    }
    forecast->data += samples;
    forecast->statistics += gathered;
    forecast->arena = ls_room_arena(&room, store->workers);
    forecast->stashed = room.stashed;
    forecast->slots = room.slots;
    LS_TRY(forecast_add_parameters(set, views, store, forecast, error));
    size_t of_worker = 0;
    if (store->training && count > 0)
        forecast->history += ls_whole_bytes(nets[0]->options.device, set, store, &of_worker);
    forecast->base += set->count * PARAMETER + (size_t)store->workers * (THREAD + of_worker);
    return 0;
}

void ls_forecast_add_snapshot(struct ls_forecast *forecast, const struct ls_parameter_set *set,
                              const struct ls_store_options *store)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct ls_parameter *parameter = set->items[i];
        size_t bytes = ls_parameter_plain_bytes(parameter), copies = 0;
        /* Written from where it lies, unless that is another layout, or with other ranks. */
        copies += parameter->layout != &ls_layout_plain;
        copies += store->ranks > 1 && parameter->factoring.weight == NULL &&
                  ls_store_arrays(store, parameter) > 0;
        forecast->snapshot = ls_room_larger(forecast->snapshot, copies * bytes);
    }
}

size_t ls_forecast_copy(const struct ls_parameter_set *set, const struct ls_store_options *store)
{
    size_t bytes = 0;
    if (store->rank != 0)
        return 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t arrays = 1 + (size_t)ls_store_arrays(store, set->items[i]);
        bytes += arrays * ls_parameter_plain_bytes(set->items[i]);
        bytes += ls_store_factored_bytes(store, set->items[i]);
    }
    return bytes;
}

size_t ls_forecast_activations(const struct ls_forecast *forecast)
{
    return forecast->arena * (size_t)forecast->workers +
           forecast->stashed * (size_t)forecast->slots;
}

static size_t forecast_of_host(const struct ls_forecast *forecast)
{
    return forecast->data + forecast->snapshot + forecast->programs + forecast->base;
}

size_t ls_forecast_total(const struct ls_forecast *forecast)
{
    const size_t bytes = ls_forecast_activations(forecast) + forecast->weights + forecast->views +
                         forecast->gradients + forecast->history + forecast->averages +
                         forecast->statistics + forecast->sample_states + forecast->staging +
                         forecast->records;
    return bytes + (forecast->apart ? 0 : forecast_of_host(forecast));
}

size_t ls_forecast_host(const struct ls_forecast *forecast)
{
    return forecast->apart ? forecast_of_host(forecast) : 0;
}
