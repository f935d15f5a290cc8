/* Norms of the gradient and of the weights. See engine/norms.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/norms.h"

#include <math.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "transport/comm.h"

enum { CHUNKS_PER_TILE = LS_SUMS_TILE / LS_EXACT_CHUNK };

struct ls_norms {
    double *partial; /* CHUNKS_PER_TILE a tile; beyond its last chunk: zeros for ever */
    int *owner;      /* by tile: the rank that measures it */
};

int ls_norms_create(const struct ls_engine *engine, struct ls_norms **out, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct ls_norms *norms = *out = ls_alloc(1, sizeof *norms);
    if (norms == NULL)
        return ls_fail_memory(error, "norms");
    norms->partial = ls_alloc(store->tile_count * CHUNKS_PER_TILE + 1, sizeof *norms->partial);
    norms->owner = ls_alloc(store->tile_count + 1, sizeof *norms->owner);
    if (norms->partial == NULL || norms->owner == NULL)
        return ls_fail_memory(error, "norms"); /* the engine frees it */
    for (size_t i = 0; i < store->tile_count; i++) {
        const struct ls_tile *tile = &store->tiles[i];
        norms->owner[i] = store->shards->bucket[tile->parameter] >= 0
                              ? ls_shards_owner(store->shards, tile->parameter, tile->piece.begin)
                              : (int)(i * (size_t)engine->comm->size / store->tile_count);
    }
    return 0;
}

void ls_norms_free(struct ls_norms *norms)
{
    if (norms == NULL)
        return;
    ls_free(norms->partial);
    ls_free(norms->owner);
    ls_free(norms);
}

struct measure {
    const struct ls_engine *engine;
    float *const *weights; /* by parameter; NULL: of the gradient */
    bool l1;
    _Atomic size_t next; /* tile */
    _Atomic int status;  /* of a sum that could not be read */
};

/* Sum over the weights of a tile, row by row. */
static double norms_of_weights(const struct measure *measure, const struct ls_tile *tile)
{
    const struct ls_gradient_piece *piece = &tile->piece;
    const float *weights = measure->weights[tile->parameter] + piece->begin;
    const struct ls_device_sums *sums = measure->engine->device->sums;
    double sum = 0;
    for (size_t r = 0; r < piece->rows; r++, weights += piece->row)
        sum += measure->l1 ? sums->magnitudes(weights, piece->columns)
                           : sums->squares(weights, piece->columns);
    return sum;
}

static void norms_measure_some(void *argument, int worker)
{
    struct measure *measure = argument;
    const struct ls_engine *engine = measure->engine;
    const struct ls_store *store = engine->store;
    size_t index;
    while (ls_store_next_tile(store, &measure->next, engine->norms->owner, engine->comm->rank,
                              &index)) {
        const struct ls_tile *tile = &store->tiles[index];
        const struct ls_gradient_piece *piece = &tile->piece;
        double *partial = engine->norms->partial + index * CHUNKS_PER_TILE;
        if (measure->weights != NULL) {
            partial[0] = norms_of_weights(measure, tile);
        } else if (ls_store_has_factors(store, tile->parameter)) {
            float *gradient = ls_factors_tile(store->factors, worker);
            ls_factors_gradient(store->factors, store->slots[tile->parameter].parameter, piece,
                                gradient);
            partial[0] = engine->device->sums->squares(gradient, piece->rows * piece->columns);
        } else {
            int status = ls_sums_squares(store->sums, tile->parameter, piece->begin, piece->columns,
                                         partial, NULL);
            if (status != 0)
                atomic_store(&measure->status, status);
        }
    }
}

/* Partial results of all ranks are then in tile order. */
static int norms_measure(struct measure *measure, struct ls_error *error)
{
    const struct ls_engine *engine = measure->engine;
    const size_t bytes = CHUNKS_PER_TILE * sizeof *engine->norms->partial;
    ls_thread_pool_run(engine->pool, norms_measure_some, measure);
    int status = atomic_load(&measure->status);
    if (status != 0)
        return ls_fail(error, status, NULL, NULL, "the %s cannot read a gradient",
                       engine->device->name);
    return ls_comm_all_gather_items(engine->comm, engine->norms->partial, bytes, bytes,
                                    engine->norms->owner, engine->store->tile_count, error);
}

int ls_norms_gradient(struct ls_engine *engine, double *norm, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct measure measure = {.engine = engine};
    LS_TRY(norms_measure(&measure, error));
    double total = 0;
    size_t tile = 0;
    for (size_t p = 0; p < store->set->count; p++) { /* chunks, then parameters, in order */
        size_t begin = tile;
        while (tile < store->tile_count && store->tiles[tile].parameter == (int)p)
            tile++;
        total += ls_sum_doubles(engine->norms->partial + begin * CHUNKS_PER_TILE,
                                (tile - begin) * CHUNKS_PER_TILE);
    }
    *norm = sqrt(total);
    return 0;
}

int ls_norms_penalty(struct ls_engine *engine, bool l1,
                     double (*factor)(void *user, const struct ls_parameter *parameter), void *user,
                     double *penalty, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct measure measure = {.engine = engine, .l1 = l1};
    LS_TRY(ls_store_all_weights(store, &measure.weights, error));
    LS_TRY(norms_measure(&measure, error));
    double total = 0;
    for (size_t i = 0; i < store->tile_count; i++)
        total += factor(user, store->set->items[store->tiles[i].parameter]) *
                 engine->norms->partial[i * CHUNKS_PER_TILE];
    *penalty = total;
    return 0;
}
