/* Parameters as views of other layouts and types. See engine/store_views.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/store_views.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "engine/profiler.h"
#include "engine/store_inner.h"

static void store_views_close_view(const struct ls_store *store, struct ls_view_memory *memory)
{
    store->device->converter_free(memory->converter);
    store->device->memory->free(memory->numbers);
}

static int store_views_open_view(const struct ls_store *store, const struct ls_view *view,
                                 struct ls_view_memory *memory, struct ls_error *error)
{
    const struct ls_parameter *parameter = view->parameter;
    *memory =
        (struct ls_view_memory){.numbers = store->device->memory->create(ls_view_bytes(view))};
    if (memory->numbers == NULL)
        return ls_fail_memory(error, parameter->name);
    int status = store->device->converter_new(parameter->layout, view->layout, &parameter->shape,
                                              view->type, &memory->converter, error);
    if (status != 0)
        store_views_close_view(store, memory);
    return status;
}

void ls_store_close_views(struct ls_store *store, size_t count)
{
    while (store->view_count > count)
        store_views_close_view(store, &store->view_memory[--store->view_count]);
}

int ls_store_open_views(struct ls_store *store, struct ls_error *error)
{
    size_t count = store->views->count;
    if (store->view_count == count)
        return 0;
    struct ls_view_memory *longer = ls_resize(store->view_memory, count, sizeof *longer);
    if (longer == NULL)
        return ls_fail_memory(error, "parameters");
    store->view_memory = longer;
    for (; store->view_count < count; store->view_count++)
        LS_TRY(store_views_open_view(store, &store->views->items[store->view_count],
                                     &longer[store->view_count], error));
    return 0;
}

/* ---- Bringing them up to date ------------------------------------------------------------- */

static int store_views_convert_view(const struct ls_store *store, size_t index,
                                    struct ls_error *error)
{
    const struct ls_view_memory *memory = &store->view_memory[index];
    int parameter = store->views->items[index].parameter->index;
    return store->device->converter_run(memory->converter, store->weights->of[parameter],
                                        memory->numbers, error);
}

int ls_store_add_views(struct ls_store *store, struct ls_error *error)
{
    size_t first = store->view_count;
    if (first == store->views->count)
        return 0;
    LS_TRY(ls_store_wait(store, LS_BUCKETS_ALL, error)); /* their views are converted then, too */
    int status = ls_store_open_views(store, error);
    for (size_t i = first; status == 0 && i < store->view_count; i++)
        status = store_views_convert_view(store, i, error);
    if (status != 0)
        ls_store_close_views(store, first); /* what is there counts as up to date */
    return status;
}

struct refresh {
    struct ls_store *store;
    struct ls_profiler *profiler; /* or NULL */
    bool own;                     /* only those of weights that are not exchanged */
    _Atomic size_t next;
    struct ls_worker_failure failure;
};

/* The bucket in which the weights of a view are exchanged; -1: in none. */
static int store_views_bucket_of_view(const struct ls_store *store, size_t view)
{
    return store->shards->bucket[store->views->items[view].parameter->index];
}

static void store_views_refresh_some(void *argument, int worker)
{
    struct refresh *refresh = argument;
    struct ls_store *store = refresh->store;
    struct ls_error *error = ls_worker_error();
    int status = 0;
    while (status == 0) {
        size_t i = atomic_fetch_add(&refresh->next, 1);
        if (i >= store->view_count)
            break;
        if (refresh->own && store_views_bucket_of_view(store, i) >= 0)
            continue;
        uint64_t start = ls_profiler_start(refresh->profiler);
        status = store_views_convert_view(store, i, error);
        if (refresh->profiler != NULL)
            refresh->profiler->worker[worker].views[store->views->items[i].parameter->index] +=
                ls_nanoseconds() - start;
    }
    ls_worker_failure_note(&refresh->failure, status, error);
}

static int store_views_refresh(struct ls_store *store, struct ls_thread_pool *pool, bool own,
                               struct ls_error *error)
{
    if (store->view_count == 0)
        return 0;
    struct refresh refresh = {.store = store,
                              .profiler = ls_thread_pool_profiler(pool),
                              .own = own,
                              .failure = {.error = error}};
    ls_thread_pool_run(pool, store_views_refresh_some, &refresh);
    return atomic_load(&refresh.failure.status);
}

int ls_store_refresh_views(struct ls_store *store, struct ls_thread_pool *pool,
                           struct ls_error *error)
{
    LS_TRY(ls_store_wait(store, LS_BUCKETS_ALL, error));
    return store_views_refresh(store, pool, false, error);
}

int ls_store_refresh_own_views(struct ls_store *store, struct ls_thread_pool *pool,
                               struct ls_error *error)
{
    return store_views_refresh(store, pool, store->weights->wait != NULL, error);
}

int ls_store_convert_bucket(struct ls_store *store, int bucket, struct ls_error *error)
{
    for (size_t i = 0; i < store->view_count; i++)
        if (store_views_bucket_of_view(store, i) == bucket)
            LS_TRY(store_views_convert_view(store, i, error));
    return 0;
}
