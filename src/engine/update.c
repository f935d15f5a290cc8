/* The update of all weights, and norms over them: tiles, taken by workers as they get free.
 *
 * An update is elementwise, so any worker can take any tile; norms are sums of squares in double
 * over fixed chunks, added up in one order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "engine/profiler.h"
#include "engine/reducer.h"
#include "transport/comm.h"

enum {
    ALL_RANKS = -1,
    CHUNKS_PER_TILE = LS_SUMS_TILE / LS_EXACT_CHUNK,
    STRIP = 128,   /* columns, see strip_columns */
    AT_ONCE = 1024 /* elements of a sum that are read before they are applied */
};
_Static_assert(1 + LS_HISTORY_MAX == (int)LS_GRADIENT_NEXT, "all that an update goes through");

/* What updates and norms need besides the store; made once. */
struct ls_update_memory {
    struct ls_update_rule *rules; /* by parameter */
    _Atomic uint32_t *seen;       /* by parameter: of the gradient, then of the weights */
    double *partial;              /* CHUNKS_PER_TILE a tile */
    /* By tile: the rank that updates it, and the one that measures norms. */
    int *updated_by, *measured_by;
    uint32_t *all_seen; /* what each rank has seen */
};

struct tiles_job {
    struct ls_engine *engine;
    float *const *weights; /* by parameter */
    const int *owner;      /* by tile: its rank, or ALL_RANKS */
    _Atomic size_t next;
    /* apply */
    const struct ls_update_rule *rules; /* by parameter */
    _Atomic uint32_t *gradient;         /* by parameter: bits of the largest */
    _Atomic uint32_t *weight;
    /* norms */
    double *partial; /* CHUNKS_PER_TILE a tile */
    bool of_weights; /* else of the gradient */
    bool l1;
};

/* The next tile that is this rank's. */
static const struct ls_tile *update_take(struct tiles_job *job, size_t *index)
{
    const struct ls_store *store = job->engine->store;
    const int rank = job->engine->comm->rank;
    for (;;) {
        *index = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (*index >= store->tile_count)
            return NULL;
        if (job->owner[*index] == rank || job->owner[*index] == ALL_RANKS)
            return &store->tiles[*index];
    }
}

/* The gradient of a piece, from its factors. */
static const float *update_factored(const struct ls_store *store, int parameter,
                                    const struct ls_gradient_piece *piece, int worker)
{
    float *gradient = ls_factors_tile(store->factors, worker);
    ls_factors_gradient(store->factors, store->slots[parameter].parameter, piece, gradient);
    return gradient;
}

/* Applies a row of a piece, or a part of it, which begins at element `begin` of the parameter. */
static void update_apply_row(const struct tiles_job *job, int parameter, size_t begin,
                             size_t columns, const float *gradient, struct ls_update_seen *seen)
{
    const struct ls_store *store = job->engine->store;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    struct ls_update_slice slice = {
        .n = columns, .gradient = gradient, .weight = job->weights[parameter] + begin};
    size_t own = begin - slot->shard_begin; /* history and average are there from shard_begin on */
    slice.average = slot->average != NULL ? slot->average + own : NULL;
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        slice.history[h] = slot->history[h] != NULL ? slot->history[h] + own : NULL;
    struct ls_update_seen row = store->device->update(&job->rules[parameter], &slice);
    seen->gradient = row.gradient > seen->gradient ? row.gradient : seen->gradient;
    seen->weight = row.weight > seen->weight ? row.weight : seen->weight;
}

/* Applies a row from the sum; what was read of it stays in the first-level cache. */
static void update_apply_sum(const struct tiles_job *job, int parameter, size_t begin,
                             size_t columns, struct ls_update_seen *seen)
{
    float gradient[AT_ONCE];
    for (size_t end = begin + columns, n; begin < end; begin += n) {
        n = end - begin < AT_ONCE ? end - begin : AT_ONCE;
        ls_sums_read(job->engine->store->sums, parameter, begin, n, gradient);
        update_apply_row(job, parameter, begin, n, gradient, seen);
    }
}

/* A piece of a tile, from factors or a sum. */
static void update_apply_piece(const struct tiles_job *job, int parameter,
                               const struct ls_gradient_piece *piece, int worker,
                               struct ls_update_seen *seen)
{
    const struct ls_store *store = job->engine->store;
    struct ls_profiler *profiler = ls_thread_pool_profiler(job->engine->pool);
    uint64_t start = ls_profiler_start(profiler);
    const float *gradient = NULL;
    if (ls_store_has_factors(store, parameter))
        gradient = update_factored(store, parameter, piece, worker);
    uint64_t middle = ls_profiler_start(profiler);
    for (size_t r = 0; r < piece->rows; r++) {
        size_t begin = piece->begin + r * piece->row;
        if (gradient == NULL)
            update_apply_sum(job, parameter, begin, piece->columns, seen);
        else
            update_apply_row(job, parameter, begin, piece->columns, gradient + r * piece->columns,
                             seen);
    }
    if (profiler != NULL) {
        profiler->worker[worker].product[parameter] += middle - start;
        profiler->worker[worker].update[parameter] += ls_nanoseconds() - middle;
    }
}

/* Columns of a tile that are computed from factors and applied before the next ones are: their
 * weights and histories come from memory while they are computed. */
static size_t update_strip_columns(const struct ls_store *store, const struct ls_tile *tile)
{
    return ls_store_has_factors(store, tile->parameter) ? STRIP : tile->piece.columns;
}

static void update_apply_tile(struct tiles_job *job, const struct ls_tile *tile, int worker)
{
    const struct ls_parameter_state *slot = &job->engine->store->slots[tile->parameter];
    const size_t columns = update_strip_columns(job->engine->store, tile);
    struct ls_update_seen seen = {0};
    for (size_t at = 0; at < tile->piece.columns; at += columns) {
        struct ls_gradient_piece piece = tile->piece;
        size_t left = tile->piece.columns - at;
        piece.begin += at;
        piece.columns = left < columns ? left : columns;
        piece.next[0] = job->weights[tile->parameter];
        for (int h = 0; h < LS_HISTORY_MAX; h++)
            piece.next[1 + h] = slot->history[h];
        update_apply_piece(job, tile->parameter, &piece, worker, &seen);
    }
    ls_raise_to(&job->gradient[tile->parameter], seen.gradient);
    ls_raise_to(&job->weight[tile->parameter], seen.weight);
}

static void update_apply_some(void *argument, int worker)
{
    struct tiles_job *job = argument;
    const struct ls_tile *tile;
    size_t index;
    while ((tile = update_take(job, &index)) != NULL)
        update_apply_tile(job, tile, worker);
}

/* All ranks apply gradients from factors, since the reducer does not send the weights concerned.
 * Measuring them is divided among the ranks like everything else. */
static void update_find_owners(const struct ls_engine *engine, struct ls_update_memory *memory)
{
    const struct ls_store *store = engine->store;
    for (size_t i = 0; i < store->tile_count; i++) {
        const struct ls_tile *tile = &store->tiles[i];
        memory->updated_by[i] = ALL_RANKS;
        memory->measured_by[i] = (int)(i * (size_t)engine->comm->size / store->tile_count);
        if (store->shards->bucket[tile->parameter] >= 0)
            memory->updated_by[i] = memory->measured_by[i] =
                ls_shards_owner(store->shards, tile->parameter, tile->piece.begin);
    }
}

static int update_prepare_for_ranks(const struct ls_engine *engine, struct ls_update_memory *memory,
                                    struct ls_error *error)
{
    size_t count = engine->store->set->count, tiles = engine->store->tile_count;
    memory->updated_by = ls_alloc(tiles + 1, sizeof *memory->updated_by);
    memory->measured_by = ls_alloc(tiles + 1, sizeof *memory->measured_by);
    memory->all_seen =
        ls_alloc((size_t)engine->comm->size * 2 * (count + 1), sizeof *memory->all_seen);
    if (memory->updated_by == NULL || memory->measured_by == NULL || memory->all_seen == NULL)
        return ls_fail_memory(error, "the update");
    update_find_owners(engine, memory);
    return 0;
}

static int update_prepare(struct ls_engine *engine, struct ls_error *error)
{
    size_t count = engine->store->set->count, tiles = engine->store->tile_count;
    if (engine->update != NULL)
        return 0;
    struct ls_update_memory *memory = ls_alloc(1, sizeof *memory);
    if (memory == NULL)
        return ls_fail_memory(error, "the update");
    engine->update = memory;
    memory->rules = ls_alloc(count + 1, sizeof *memory->rules);
    memory->seen = ls_alloc(2 * (count + 1), sizeof *memory->seen);
    memory->partial = ls_alloc(tiles * CHUNKS_PER_TILE + 1, sizeof *memory->partial);
    int status = 0;
    if (memory->rules == NULL || memory->seen == NULL || memory->partial == NULL)
        status = ls_fail_memory(error, "the update");
    if (status == 0)
        status = update_prepare_for_ranks(engine, memory, error);
    if (status != 0)
        ls_engine_free_update(engine);
    return status;
}

void ls_engine_free_update(struct ls_engine *engine)
{
    struct ls_update_memory *memory = engine->update;
    engine->update = NULL;
    if (memory == NULL)
        return;
    ls_free(memory->rules);
    ls_free((void *)memory->seen);
    ls_free(memory->partial);
    ls_free(memory->updated_by);
    ls_free(memory->measured_by);
    ls_free(memory->all_seen);
    ls_free(memory);
}

/* The largest that any rank has seen, of the gradients and of the weights. */
static int update_share_seen(struct ls_engine *engine, struct ls_error *error)
{
    _Atomic uint32_t *seen = engine->update->seen;
    size_t n = 2 * (engine->store->set->count + 1);
    uint32_t *all = engine->update->all_seen;
    LS_TRY(ls_comm_all_gather(engine->comm, (const void *)seen, n * sizeof *all, all, error));
    for (size_t i = 0; i < n * (size_t)engine->comm->size; i++)
        ls_raise_to(&seen[i % n], all[i]);
    return 0;
}

int ls_engine_apply_update(struct ls_engine *engine, const struct ls_update_request *request,
                           int *not_finite, struct ls_error *error)
{
    struct ls_store *store = engine->store;
    size_t count = store->set->count;
    *not_finite = -1;
    LS_TRY(update_prepare(engine, error));
    struct ls_update_rule *rules = engine->update->rules;
    _Atomic uint32_t *seen = engine->update->seen;
    for (size_t i = 0; i < 2 * (count + 1); i++)
        atomic_store_explicit(&seen[i], 0, memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        request->rule(request->user, store->set->items[i], &rules[i]);
    struct tiles_job job = {.engine = engine,
                            .owner = engine->update->updated_by,
                            .rules = rules,
                            .gradient = seen,
                            .weight = seen + count + 1};
    LS_TRY(ls_store_all_weights(store, &job.weights, error));
    ls_thread_pool_run(engine->pool, update_apply_some, &job);
    LS_TRY(ls_reducer_send_weights(engine->reducer, error));
    LS_TRY(update_share_seen(engine, error));
    for (size_t i = count; i-- > 0;) {
        if (!store->set->items[i]->trained)
            continue;
        if (!ls_store_has_factors(store, (int)i))
            ls_sums_next(store->sums, (int)i, atomic_load(&job.gradient[i]));
        if (atomic_load(&job.weight[i]) >= LS_NOT_FINITE)
            *not_finite = (int)i;
    }
    return ls_store_refresh_own_views(store, engine->pool, error);
}

/* ---- Norms ----------------------------------------------------------------------------------- */

/* Sum over the weights of a tile, row by row. */
static double update_measure_weights(const struct tiles_job *job, const struct ls_tile *tile)
{
    const struct ls_gradient_piece *piece = &tile->piece;
    const float *weights = job->weights[tile->parameter] + piece->begin;
    const struct ls_device_sums *sums = job->engine->device->sums;
    double sum = 0;
    for (size_t r = 0; r < piece->rows; r++, weights += piece->row)
        sum += job->l1 ? sums->magnitudes(weights, piece->columns)
                       : sums->squares(weights, piece->columns);
    return sum;
}

static void update_measure_some(void *argument, int worker)
{
    struct tiles_job *job = argument;
    const struct ls_store *store = job->engine->store;
    const struct ls_tile *tile;
    size_t index;
    while ((tile = update_take(job, &index)) != NULL) {
        double *partial = job->partial + index * CHUNKS_PER_TILE;
        const struct ls_gradient_piece *piece = &tile->piece;
        if (job->of_weights)
            partial[0] = update_measure_weights(job, tile);
        else if (ls_store_has_factors(store, tile->parameter))
            partial[0] =
                store->device->sums->squares(update_factored(store, tile->parameter, piece, worker),
                                             piece->rows * piece->columns);
        else
            ls_sums_squares(store->sums, tile->parameter, piece->begin, piece->columns, partial);
    }
}

/* Runs the job; its partial results are then in tile order. */
static int update_measure(struct tiles_job *job, struct ls_error *error)
{
    LS_TRY(update_prepare(job->engine, error));
    struct ls_engine *engine = job->engine;
    job->partial = engine->update->partial; /* beyond a tile's last chunk: zeros for ever */
    job->owner = engine->update->measured_by;
    if (job->of_weights)
        LS_TRY(ls_store_all_weights(engine->store, &job->weights, error));
    ls_thread_pool_run(engine->pool, update_measure_some, job);
    return ls_comm_all_gather_items(
        engine->comm, job->partial, CHUNKS_PER_TILE * sizeof *job->partial,
        CHUNKS_PER_TILE * sizeof *job->partial, job->owner, engine->store->tile_count, error);
}

int ls_engine_gradient_norm(struct ls_engine *engine, double *norm, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct tiles_job job = {.engine = engine};
    LS_TRY(update_measure(&job, error));
    double total = 0;
    size_t tile = 0;
    for (size_t p = 0; p < store->set->count; p++) { /* chunks, then parameters, in order */
        size_t begin = tile;
        while (tile < store->tile_count && store->tiles[tile].parameter == (int)p)
            tile++;
        total +=
            ls_sum_doubles(job.partial + begin * CHUNKS_PER_TILE, (tile - begin) * CHUNKS_PER_TILE);
    }
    *norm = sqrt(total);
    return 0;
}

int ls_engine_penalty(struct ls_engine *engine, bool l1,
                      double (*factor)(void *user, const struct ls_parameter *parameter),
                      void *user, double *penalty, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct tiles_job job = {.engine = engine, .of_weights = true, .l1 = l1};
    LS_TRY(update_measure(&job, error));
    double total = 0;
    for (size_t i = 0; i < store->tile_count; i++)
        total += factor(user, store->set->items[store->tiles[i].parameter]) *
                 job.partial[i * CHUNKS_PER_TILE];
    *penalty = total;
    return 0;
}
