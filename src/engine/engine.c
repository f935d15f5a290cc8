/* The engine's own memory. See engine/engine.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include "base/memory.h"
#include "engine/binding.h"
#include "engine/compare.h"
#include "engine/norms.h"
#include "engine/optimizer.h"
#include "engine/pages.h"
#include "engine/plans.h"
#include "engine/reducer.h"
#include "engine/store_views.h"
#include "engine/work_queue.h"
#include "transport/comm.h"

int ls_engine_create(const struct ls_device *device, struct ls_comm *comm, int workers,
                     struct ls_engine **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_engine *engine = ls_alloc(1, sizeof *engine);
    if (engine == NULL)
        return ls_fail_memory(error, "the engine");
    engine->device = device;
    engine->comm = comm;
    engine->workers = workers;
    engine->arenas = ls_alloc((size_t)workers, sizeof *engine->arenas);
    engine->micro_batches = ls_alloc((size_t)workers, sizeof *engine->micro_batches);
    engine->streams = ls_alloc((size_t)workers, sizeof(struct ls_stream *));
    int status = engine->arenas == NULL || engine->micro_batches == NULL || engine->streams == NULL
                     ? ls_fail_memory(error, "the engine")
                     : ls_thread_pool_create(workers, device->enter_thread, &engine->pool, error);
    for (int w = 0; w < workers && status == 0; w++)
        status = device->streams->create(&engine->streams[w], error);
    if (status == 0)
        status = ls_uploaders_create(device, workers, &engine->uploaders, error);
    if (status != 0)
        ls_engine_free(engine);
    else
        *out = engine;
    return status;
}

void ls_engine_end_exchanges(struct ls_engine *engine)
{
    if (engine == NULL)
        return;
    ls_reducer_free(engine->reducer);
    engine->reducer = NULL;
}

void ls_engine_free(struct ls_engine *engine)
{
    if (engine == NULL)
        return;
    ls_work_queue_free(engine->work_queue);
    ls_engine_end_exchanges(engine);
    ls_pages_end(engine->pages);
    ls_optimizer_free(engine->optimizer);
    ls_norms_free(engine, engine->norms);
    ls_store_free(engine->store);
    ls_free(engine->parts);
    ls_uploaders_free(engine->uploaders, engine->workers);
    for (int w = 0; w < engine->workers && engine->streams != NULL; w++)
        if (engine->streams[w] != NULL)
            engine->device->streams->free(engine->streams[w]);
    ls_free((void *)engine->streams);
    ls_thread_pool_free(engine->pool);
    for (int w = 0; w < engine->workers && engine->arenas != NULL; w++)
        engine->device->memory->free(engine->arenas[w]);
    ls_gather_free(&engine->gather, engine->device->memory);
    ls_free(engine->stashed);
    ls_free(engine->arenas);
    ls_free(engine->micro_batches);
    ls_free(engine->hashes);
    ls_free(engine);
}

int ls_engine_create_store(struct ls_engine *engine, struct ls_parameter_set *set,
                           struct ls_view_set *views, const struct ls_store_options *options,
                           struct ls_error *error)
{
    LS_TRY(ls_store_create(engine->device, set, views, options, &engine->store, error));
    LS_TRY(ls_store_fill(engine->store, options, engine->pool, error));
    engine->parts = ls_alloc((size_t)engine->comm->size, sizeof *engine->parts);
    engine->hashes = ls_alloc(ls_compare_hashes(engine->store), sizeof *engine->hashes);
    if (engine->parts == NULL || engine->hashes == NULL)
        return ls_fail_memory(error, "parameters");
    if (options->training) {
        engine->pages = ls_pages_start(engine->store);
        LS_TRY(ls_optimizer_create(engine, options, &engine->optimizer, error));
        LS_TRY(ls_norms_create(engine, &engine->norms, error));
    }
    return ls_reducer_create(engine->store, engine->comm, &engine->reducer, error);
}

static int engine_no_room(size_t each, int workers, struct ls_error *error)
{
    const char *why = ls_noted_memory();
    const int status =
        ls_fail(error, LOCKSTEP_RESOURCE, NULL,
                "use fewer workers or a smaller micro_batch (this changes the bits)",
                "out of memory for %zu bytes of activations for each of %d worker%s%s%s", each,
                workers, workers > 1 ? "s" : "", why[0] != '\0' ? ": " : "", why);
    ls_note_memory(NULL);
    return status;
}

/* Memory of the size that is wanted, for all workers; the old memory is freed first. */
static int engine_make_room(struct ls_engine *engine, const struct ls_room *wanted,
                            struct ls_error *error)
{
    int workers = engine->workers;
    engine->generation++;
    engine->room = (struct ls_room){0}; /* whatever happens now, nothing is bound any more */
    for (int w = 0; w < workers; w++) {
        engine->device->memory->free(engine->arenas[w]);
        engine->arenas[w] = NULL;
    }
    ls_free(engine->stashed);
    engine->stashed = ls_alloc((size_t)wanted->slots + 1, sizeof *engine->stashed);
    if (engine->stashed == NULL)
        return ls_fail_memory(error, "activations");
    for (int w = 0; w < workers; w++) {
        size_t bytes = ls_room_block(wanted, workers, w);
        unsigned char *block = engine->arenas[w] = engine->device->memory->create(bytes + 64);
        if (block == NULL)
            return engine_no_room(bytes, workers, error);
        block += ls_room_arena(wanted, workers);
        for (int slot = w; slot < wanted->slots; slot += workers, block += wanted->stashed)
            engine->stashed[slot] = block;
    }
    engine->room = *wanted;
    return 0;
}

int ls_engine_make_room(struct ls_engine *engine, const struct ls_net *net,
                        const struct ls_plan *plan, struct ls_error *error)
{
    struct ls_room wanted = engine->room;
    int workers = engine->workers;
    ls_room_add(&wanted, plan, ls_plans_slots(net, workers));
    bool there = ls_room_arena(&wanted, workers) == ls_room_arena(&engine->room, workers) &&
                 wanted.stashed == engine->room.stashed && wanted.slots == engine->room.slots;
    if (!there || engine->arenas[0] == NULL)
        return engine_make_room(engine, &wanted, error);
    engine->room = wanted;
    return 0;
}

int ls_engine_bind_plan(struct ls_engine *engine, struct ls_net *net, struct ls_net_plan *plan,
                        struct ls_error *error)
{
    if (plan->bindings != NULL && plan->generation == engine->generation)
        return 0;
    LS_TRY(ls_store_add_views(engine->store, error));
    struct ls_slots slots = {
        .count = plan->plan->segments > 1 ? ls_plans_slots(net, engine->workers) : engine->workers,
        .workers = engine->workers,
        .arenas = engine->arenas,
        .stashed = engine->stashed};
    plan->generation = engine->generation;
    LS_TRY(ls_binding_bind(plan, engine->store, engine->reducer, &slots, error));
    return ls_thread_pool_profiler(engine->pool) != NULL ? ls_binding_take_time(plan, true, error)
                                                         : 0;
}

int ls_engine_bind(struct ls_engine *engine, struct ls_net *const *nets, size_t count,
                   struct ls_error *error)
{
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < nets[i]->plan_count; p++)
            LS_TRY(ls_engine_make_room(engine, nets[i], nets[i]->plans[p]->plan, error));
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < nets[i]->plan_count; p++)
            LS_TRY(ls_engine_bind_plan(engine, nets[i], nets[i]->plans[p], error));
    return ls_store_refresh_views(engine->store, engine->pool, error);
}
