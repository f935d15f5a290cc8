/* The update of all weights. See engine/optimizer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/optimizer.h"

#include "base/memory.h"
#include "base/thread.h"
#include "base/timeline.h"
#include "engine/direct_update.h"
#include "engine/engine.h"
#include "engine/lamb.h"
#include "engine/pass.h"
#include "engine/profiler.h"
#include "engine/whole.h"
#include "transport/comm.h"

enum {
    /* Columns and rows of a gradient that are computed from factors and applied before others are:
     * their weights and histories come from memory while they are computed, and what the columns
     * need of the one factor stays in a cache for all rows. */
    STRIP = 128,
    STRIP_ROWS = LS_FACTOR_TILE_ROWS * LS_FACTOR_TILE_COLUMNS / STRIP,
    AT_ONCE = 1024 /* elements of a sum that are read before they are applied: they stay in L1 */
};
_Static_assert(1 + LS_HISTORY_MAX == (int)LS_GRADIENT_NEXT, "weights and histories");

struct ls_optimizer {
    struct ls_update_rule *rules; /* by parameter */
    /* The largest gradients, by parameter, and one behind the last; then the largest weights. */
    _Atomic uint32_t *seen;
    uint32_t *all_seen; /* by rank: the same */
    size_t parameters;
    struct ls_tile *tiles; /* the store's; strips, where gradients are exchanged as factors */
    size_t tile_count;
    int *owner;                      /* by tile: the rank that updates it, or LS_ALL_RANKS */
    struct ls_lamb *lamb;            /* NULL: no parameter has that rule */
    struct ls_whole *whole;          /* the same */
    struct ls_direct_update *direct; /* NULL: the device has none */
    const struct ls_device_memory *memory;
    float *read; /* the device's, AT_ONCE elements a worker: of a sum */
};

/* Cuts a matrix into strips; `tiles` may be NULL, to count them. */
static size_t optimizer_cut_strips(const struct ls_parameter *parameter, struct ls_tile *tiles)
{
    const size_t height = (size_t)parameter->shape.dim[0], width = (size_t)parameter->shape.dim[1];
    size_t count = 0;
    for (size_t j = 0; j < width; j += STRIP)
        for (size_t i = 0; i < height; i += STRIP_ROWS, count++) {
            struct ls_gradient_piece piece = {.begin = i * width + j, .row = width};
            piece.rows = height - i < STRIP_ROWS ? height - i : STRIP_ROWS;
            piece.columns = width - j < STRIP ? width - j : STRIP;
            if (tiles != NULL)
                tiles[count] = (struct ls_tile){.parameter = parameter->index, .piece = piece};
        }
    return count;
}

static bool optimizer_is_cut(const struct ls_store *store, const struct ls_tile *tile)
{
    const struct ls_parameter *parameter = store->set->items[tile->parameter];
    return parameter->factoring.weight == parameter;
}

/* The store's tiles or, of matrices with factors, strips; `tiles` may be NULL. */
static size_t optimizer_cut(const struct ls_store *store, struct ls_tile *tiles)
{
    size_t count = 0;
    for (size_t i = 0; i < store->tile_count; i++) {
        const struct ls_tile *tile = &store->tiles[i];
        const bool cut = optimizer_is_cut(store, tile);
        if (cut && tile->piece.begin == 0)
            count += optimizer_cut_strips(store->set->items[tile->parameter],
                                          tiles != NULL ? tiles + count : NULL);
        if (!cut && tiles != NULL)
            tiles[count] = *tile;
        count += cut ? 0 : 1;
    }
    return count;
}

/* All ranks apply gradients from factors, since the reducer does not send the weights concerned. */
static void optimizer_find_owners(const struct ls_store *store, struct ls_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tile_count; i++) {
        const struct ls_tile *tile = &optimizer->tiles[i];
        optimizer->owner[i] =
            store->shards->bucket[tile->parameter] >= 0
                ? ls_shards_owner(store->shards, tile->parameter, tile->piece.begin)
                : LS_ALL_RANKS;
    }
}

int ls_optimizer_create(const struct ls_engine *engine, const struct ls_store_options *options,
                        struct ls_optimizer **out, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    size_t count = store->set->count, ranks = (size_t)engine->comm->size;
    struct ls_optimizer *optimizer = *out = ls_alloc(1, sizeof *optimizer);
    if (optimizer == NULL)
        return ls_fail_memory(error, "the update");
    optimizer->parameters = count;
    optimizer->memory = engine->device->memory;
    optimizer->read =
        optimizer->memory->create((size_t)engine->workers * AT_ONCE * sizeof *optimizer->read);
    optimizer->rules = ls_alloc(count + 1, sizeof *optimizer->rules);
    optimizer->seen = ls_alloc(2 * (count + 1), sizeof *optimizer->seen);
    optimizer->all_seen = ls_alloc(ranks * 2 * (count + 1), sizeof *optimizer->all_seen);
    optimizer->tile_count = optimizer_cut(store, NULL);
    optimizer->tiles = ls_alloc(optimizer->tile_count + 1, sizeof *optimizer->tiles);
    optimizer->owner = ls_alloc(optimizer->tile_count + 1, sizeof *optimizer->owner);
    if (optimizer->rules == NULL || optimizer->seen == NULL || optimizer->all_seen == NULL ||
        optimizer->tiles == NULL || optimizer->owner == NULL || optimizer->read == NULL)
        return ls_fail_memory(error, "the update"); /* the engine frees it */
    optimizer_cut(store, optimizer->tiles);
    optimizer_find_owners(store, optimizer);
    LS_TRY(ls_direct_update_create(store, optimizer->tiles, optimizer->owner, optimizer->tile_count,
                                   engine->comm->rank, &optimizer->direct, error));
    LS_TRY(ls_whole_create(engine, options, &optimizer->whole, error));
    return ls_lamb_create(engine, options, &optimizer->lamb, error);
}

void ls_optimizer_free(struct ls_optimizer *optimizer)
{
    if (optimizer == NULL)
        return;
    ls_free(optimizer->rules);
    ls_free((void *)optimizer->seen);
    ls_free(optimizer->all_seen);
    ls_free(optimizer->tiles);
    ls_free(optimizer->owner);
    optimizer->memory->free(optimizer->read);
    ls_lamb_free(optimizer->lamb);
    ls_whole_free(optimizer->whole);
    ls_direct_update_free(optimizer->direct);
    ls_free(optimizer);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

struct update {
    const struct ls_engine *engine;
    float *const *weights; /* by parameter */
    _Atomic size_t next;   /* tile */
    struct ls_worker_failure failure;
};

/* Masked weights, and all that belongs to them, stay zero, whatever the rule has made of them. What
 * was seen of their gradients counts, because they are part of the sums. */
static int optimizer_clear_masked(const struct ls_store *store, int parameter, size_t begin,
                                  const struct ls_update_slice *slice, struct ls_error *error)
{
    if (store->slots[parameter].mask == NULL)
        return 0;
    LS_TRY(ls_store_clear_masked(store, parameter, begin, slice->weight, slice->n, error));
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        if (slice->history[h] != NULL)
            LS_TRY(
                ls_store_clear_masked(store, parameter, begin, slice->history[h], slice->n, error));
    if (slice->average != NULL)
        LS_TRY(ls_store_clear_masked(store, parameter, begin, slice->average, slice->n, error));
    return 0;
}

/* Applies the rule to `n` elements of a parameter from element `begin` on. */
static int optimizer_apply(const struct update *update, int parameter, size_t begin, size_t n,
                           const float *gradient, struct ls_update_seen *seen,
                           struct ls_error *error)
{
    const struct ls_store *store = update->engine->store;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    struct ls_update_slice slice = {
        .n = n, .gradient = gradient, .weight = update->weights[parameter] + begin};
    size_t own = begin - slot->shard_begin; /* history and average are there from shard_begin on */
    slice.average = slot->average != NULL ? slot->average + own : NULL;
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        slice.history[h] = slot->history[h] != NULL ? slot->history[h] + own : NULL;
    struct ls_update_seen found;
    LS_TRY(
        store->device->update(&update->engine->optimizer->rules[parameter], &slice, &found, error));
    LS_TRY(optimizer_clear_masked(store, parameter, begin, &slice, error));
    seen->gradient = found.gradient > seen->gradient ? found.gradient : seen->gradient;
    seen->weight = found.weight > seen->weight ? found.weight : seen->weight;
    return 0;
}

/* LAMB's second pass over a tile: it reads no gradient. */
static int optimizer_follow_direction(const struct update *update, const struct ls_tile *tile,
                                      struct ls_update_seen *seen, struct ls_error *error)
{
    const struct ls_gradient_piece *piece = &tile->piece;
    for (size_t r = 0; r < piece->rows; r++)
        LS_TRY(optimizer_apply(update, tile->parameter, piece->begin + r * piece->row,
                               piece->columns, NULL, seen, error));
    return 0;
}

/* One tile of a parameter by any other rule. Where its gradient is exchanged as factors it is a
 * strip of a matrix, whose gradient is multiplied out and applied. Else it is one row, whose
 * gradient is read from the sum, some elements at a time. */
static int optimizer_apply_gradient(const struct update *update, const struct ls_tile *tile,
                                    int worker, struct ls_update_seen *seen, struct ls_error *error)
{
    const struct ls_store *store = update->engine->store;
    const int parameter = tile->parameter;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    const bool factored = ls_store_has_factors(store, parameter);
    struct ls_profiler *profiler = ls_thread_pool_profiler(update->engine->pool);
    float *read = update->engine->optimizer->read + (size_t)worker * AT_ONCE;
    struct ls_gradient_piece piece = tile->piece;
    piece.next[0] = update->weights[parameter]; /* prefetched: the rule reads them next */
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        piece.next[1 + h] = slot->history[h];

    uint64_t start = ls_profiler_start(profiler);
    float *product = factored ? ls_factors_tile(store->factors, worker) : NULL;
    if (factored)
        LS_TRY(ls_factors_gradient(store->factors, slot->parameter, &piece, product, error));
    uint64_t middle = ls_profiler_start(profiler);
    for (size_t r = 0; r < piece.rows; r++) {
        size_t begin = piece.begin + r * piece.row, end = begin + piece.columns;
        if (factored)
            LS_TRY(optimizer_apply(update, parameter, begin, piece.columns,
                                   product + r * piece.columns, seen, error));
        for (size_t n; !factored && begin < end; begin += n) {
            n = end - begin < AT_ONCE ? end - begin : AT_ONCE;
            LS_TRY(ls_sums_read(store->sums, parameter, begin, n, read, error));
            LS_TRY(optimizer_apply(update, parameter, begin, n, read, seen, error));
        }
    }
    if (profiler != NULL) {
        profiler->worker[worker].product[parameter] += middle - start;
        profiler->worker[worker].update[parameter] += ls_nanoseconds() - middle;
    }
    return 0;
}

static int optimizer_update_tile(const struct update *update, const struct ls_tile *tile,
                                 int worker, struct ls_error *error)
{
    struct ls_optimizer *optimizer = update->engine->optimizer;
    struct ls_update_seen seen = {0};
    const size_t parameter = (size_t)tile->parameter;
    if (ls_whole_has(optimizer->rules[parameter].kind) ||
        ls_direct_update_has(optimizer->direct, tile->parameter, optimizer->rules[parameter].kind))
        return 0; /* all of it has been updated */
    if (optimizer->rules[parameter].kind == LS_UPDATE_LAMB)
        LS_TRY(optimizer_follow_direction(update, tile, &seen, error));
    else
        LS_TRY(optimizer_apply_gradient(update, tile, worker, &seen, error));
    ls_raise_to(&optimizer->seen[parameter], seen.gradient);
    ls_raise_to(&optimizer->seen[optimizer->parameters + 1 + parameter], seen.weight);
    return 0;
}

/* The next tile that is this rank's; NULL: there are none left. */
static const struct ls_tile *optimizer_next_tile(struct update *update)
{
    const struct ls_optimizer *optimizer = update->engine->optimizer;
    size_t index;
    do
        index = atomic_fetch_add_explicit(&update->next, 1, memory_order_relaxed);
    while (index < optimizer->tile_count && optimizer->owner[index] != LS_ALL_RANKS &&
           optimizer->owner[index] != update->engine->comm->rank);
    return index < optimizer->tile_count ? &optimizer->tiles[index] : NULL;
}

static void optimizer_update_some(void *argument, int worker)
{
    struct update *update = argument;
    struct ls_error *error = ls_worker_error();
    const struct ls_tile *tile;
    int status = 0;
    uint64_t start = ls_timeline_start();
    while (status == 0 && (tile = optimizer_next_tile(update)) != NULL)
        status = optimizer_update_tile(update, tile, worker, error);
    ls_timeline_add(LS_TIMELINE_APPLY, NULL, 0, start);
    ls_worker_failure_note(&update->failure, status, error);
}

int ls_optimizer_run(struct ls_engine *engine, const struct ls_update_request *request,
                     struct ls_error *error)
{
    struct ls_optimizer *optimizer = engine->optimizer;
    struct update update = {.engine = engine, .failure = {.error = error}};
    for (size_t i = 0; i < 2 * (optimizer->parameters + 1); i++)
        atomic_store_explicit(&optimizer->seen[i], 0, memory_order_relaxed);
    for (size_t i = 0; i < optimizer->parameters; i++)
        request->rule(request->user, engine->store->set->items[i], &optimizer->rules[i]);
    LS_TRY(ls_store_all_weights(engine->store, &update.weights, error));
    if (optimizer->lamb != NULL)
        LS_TRY(ls_lamb_find_trust(engine, optimizer->lamb, update.weights, optimizer->rules,
                                  optimizer->seen, error));
    if (optimizer->whole != NULL)
        LS_TRY(ls_whole_run(engine, optimizer->whole, update.weights, optimizer->rules,
                            optimizer->seen, error));
    if (optimizer->direct != NULL)
        LS_TRY(ls_direct_update_run(optimizer->direct, update.weights, optimizer->rules,
                                    optimizer->seen, optimizer->seen + optimizer->parameters + 1,
                                    error));
    ls_thread_pool_run(engine->pool, optimizer_update_some, &update);
    return atomic_load(&update.failure.status);
}

/* ---- The largest gradients and weights ---------------------------------------------------------
 */

int ls_optimizer_share_seen(struct ls_engine *engine, struct ls_error *error)
{
    struct ls_optimizer *optimizer = engine->optimizer;
    size_t n = 2 * (optimizer->parameters + 1);
    uint32_t *all = optimizer->all_seen;
    LS_TRY(ls_comm_all_gather(engine->comm, (const void *)optimizer->seen, n * sizeof *all, all,
                              error));
    for (size_t i = 0; i < n * (size_t)engine->comm->size; i++)
        ls_raise_to(&optimizer->seen[i % n], all[i]);
    return 0;
}

uint32_t ls_optimizer_gradient(const struct ls_optimizer *optimizer, int parameter)
{
    return atomic_load(&optimizer->seen[parameter]);
}

uint32_t ls_optimizer_weight(const struct ls_optimizer *optimizer, int parameter)
{
    return atomic_load(&optimizer->seen[optimizer->parameters + 1 + (size_t)parameter]);
}
