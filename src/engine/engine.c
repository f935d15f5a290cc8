/* The engine's own memory, and what the figures of a record mean. See engine/engine.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include "base/memory.h"
#include "ir/layer.h"

int ls_engine_create(const struct ls_backend *backend, int workers, struct ls_engine **out,
                     struct ls_error *error)
{
    *out = NULL;
    struct ls_engine *engine = ls_alloc(1, sizeof *engine);
    if (engine == NULL)
        return ls_fail_memory(error, "the engine");
    engine->backend = backend;
    engine->workers = workers;
    engine->arenas = ls_alloc((size_t)workers, sizeof *engine->arenas);
    engine->micro_batches = ls_alloc((size_t)workers, sizeof *engine->micro_batches);
    int status = engine->arenas == NULL || engine->micro_batches == NULL
                     ? ls_fail_memory(error, "the engine")
                     : ls_team_create(workers, backend->enter_thread, &engine->team, error);
    if (status != 0)
        ls_engine_free(engine);
    else
        *out = engine;
    return status;
}

void ls_engine_free(struct ls_engine *engine)
{
    if (engine == NULL)
        return;
    ls_team_free(engine->team);
    for (int w = 0; w < engine->workers && engine->arenas != NULL; w++)
        ls_free_aligned(engine->arenas[w]);
    ls_free(engine->arenas);
    ls_free(engine->micro_batches);
    ls_free(engine);
}

int ls_engine_bind(struct ls_engine *engine, struct ls_store *store, struct ls_net *const *nets,
                   size_t count, struct ls_error *error)
{
    engine->store = store;
    for (size_t i = 0; i < count; i++)
        if (ls_net_arena_bytes(nets[i]) > engine->arena_bytes)
            engine->arena_bytes = ls_net_arena_bytes(nets[i]);
    for (int w = 0; w < engine->workers; w++) {
        engine->arenas[w] = ls_alloc_aligned(engine->arena_bytes + 64);
        if (engine->arenas[w] == NULL)
            return ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                           "use fewer workers or a smaller micro_batch (this changes the bits)",
                           "out of memory: %zu bytes of activations for each of %d workers",
                           engine->arena_bytes, engine->workers);
    }
    for (size_t i = 0; i < count; i++)
        LS_TRY(ls_net_bind(nets[i], store, engine->arenas, engine->workers, error));
    return ls_store_refresh_views(store, engine->team, error);
}

double ls_metric_figure(const struct ls_metric *metric, const double *record, int i)
{
    double sum = record[metric->offset + i];
    if (metric->is_count || metric->count_offset < 0)
        return sum;
    double count = record[metric->count_offset + (metric->count_each ? i : 0)];
    if (count == 0) /* a loss that divides by nothing keeps its sum; an empty class has figure 0 */
        return metric->loss_weight != 0 || metric->layer->type->is_loss ? sum : 0;
    return sum / count;
}

double ls_totals_loss(const struct ls_graph *graph, const double *record)
{
    double loss = 0;
    for (size_t i = 0; i < graph->metric_count; i++)
        if (graph->metrics[i].loss_weight != 0)
            loss += (double)graph->metrics[i].loss_weight *
                    ls_metric_figure(&graph->metrics[i], record, 0);
    return loss;
}
