/* Norms of the gradient and of the weights. See engine/norms.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/norms.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/pass.h"
#include "transport/comm.h"

enum { CHUNKS_PER_TILE = LS_SUMS_TILE / LS_EXACT_CHUNK };

struct ls_norms {
    double *partial; /* CHUNKS_PER_TILE a tile; beyond its last chunk: zeros for ever */
    int *owner;      /* by tile: the rank that measures it */
    const struct ls_device_memory *memory;
    float *read; /* the device's: a chunk a worker, of gradients with a mask; NULL: none has one */
    /* Of a device that adds up squares in the order of a stream: `partial` there, and the stream.
     */
    struct ls_mirror there;
    struct ls_stream *stream; /* NULL: there is none */
};

static bool norms_has_mask(const struct ls_store *store)
{
    for (size_t i = 0; i < store->set->count; i++)
        if (store->slots[i].mask != NULL)
            return true;
    return false;
}

int ls_norms_create(const struct ls_engine *engine, struct ls_norms **out, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct ls_norms *norms = *out = ls_alloc(1, sizeof *norms);
    if (norms == NULL)
        return ls_fail_memory(error, "norms");
    norms->partial = ls_alloc(store->tile_count * CHUNKS_PER_TILE + 1, sizeof *norms->partial);
    norms->owner = ls_alloc(store->tile_count + 1, sizeof *norms->owner);
    norms->memory = engine->device->memory;
    bool masks = norms_has_mask(store);
    if (masks)
        norms->read =
            norms->memory->create((size_t)engine->workers * LS_EXACT_CHUNK * sizeof *norms->read);
    if (norms->partial == NULL || norms->owner == NULL || (masks && norms->read == NULL))
        return ls_fail_memory(error, "norms"); /* the engine frees it */
    if (engine->device->accumulator->squares_there != NULL) {
        LS_TRY(ls_mirror_create(&norms->there, norms->memory,
                                (store->tile_count * CHUNKS_PER_TILE + 1) * sizeof(double), "norms",
                                error));
        LS_TRY(engine->device->streams->create(&norms->stream, error));
    }
    for (size_t i = 0; i < store->tile_count; i++) {
        const struct ls_tile *tile = &store->tiles[i];
        norms->owner[i] = store->shards->bucket[tile->parameter] >= 0
                              ? ls_shards_owner(store->shards, tile->parameter, tile->piece.begin)
                              : (int)(i * (size_t)engine->comm->size / store->tile_count);
    }
    return 0;
}

void ls_norms_free(const struct ls_engine *engine, struct ls_norms *norms)
{
    if (norms == NULL)
        return;
    if (norms->stream != NULL) /* first: it waits for what uses the rest */
        engine->device->streams->free(norms->stream);
    ls_free(norms->partial);
    ls_free(norms->owner);
    norms->memory->free(norms->read);
    ls_mirror_free(&norms->there);
    ls_free(norms);
}

struct measure {
    const struct ls_engine *engine;
    float *const *weights; /* by parameter; NULL: of the gradient */
    bool l1;
    bool given;          /* sums of gradients are there already, but for those from factors */
    _Atomic size_t next; /* tile */
    struct ls_worker_failure failure;
};

/* Sum over the weights of a tile, row by row. */
static int norms_of_weights(const struct measure *measure, const struct ls_tile *tile, double *sum,
                            struct ls_error *error)
{
    const struct ls_gradient_piece *piece = &tile->piece;
    const float *weights = measure->weights[tile->parameter] + piece->begin;
    const struct ls_device_sums *sums = measure->engine->device->sums;
    *sum = 0;
    for (size_t r = 0; r < piece->rows; r++, weights += piece->row) {
        double row = 0;
        LS_TRY(
            (measure->l1 ? sums->magnitudes : sums->squares)(weights, piece->columns, &row, error));
        *sum += row;
    }
    return 0;
}

/* As ls_sums_squares, but of a gradient that is zero where weights are masked. */
static int norms_of_masked(const struct measure *measure, const struct ls_tile *tile, int worker,
                           double *partial, struct ls_error *error)
{
    const struct ls_engine *engine = measure->engine;
    const struct ls_store *store = engine->store;
    float *read = engine->norms->read + (size_t)worker * LS_EXACT_CHUNK;
    size_t begin = tile->piece.begin, end = begin + tile->piece.columns;
    for (size_t n; begin < end; begin += n, partial++) {
        n = end - begin < LS_EXACT_CHUNK ? end - begin : LS_EXACT_CHUNK;
        LS_TRY(ls_sums_read(store->sums, tile->parameter, begin, n, read, error));
        LS_TRY(ls_store_clear_masked(store, tile->parameter, begin, read, n, error));
        LS_TRY(engine->device->sums->squares(read, n, partial, error));
    }
    return 0;
}

/* Sums over a tile of the gradient, chunk by chunk, or one over all of it. */
static int norms_of_gradient(const struct measure *measure, const struct ls_tile *tile, int worker,
                             double *partial, struct ls_error *error)
{
    const struct ls_engine *engine = measure->engine;
    const struct ls_store *store = engine->store;
    const struct ls_gradient_piece *piece = &tile->piece;
    const bool masked = store->slots[tile->parameter].mask != NULL;
    if (masked && !ls_store_has_factors(store, tile->parameter))
        return norms_of_masked(measure, tile, worker, partial, error);
    if (!ls_store_has_factors(store, tile->parameter))
        return ls_sums_squares(store->sums, tile->parameter, piece->begin, piece->columns, partial,
                               error);
    float *gradient = ls_factors_tile(store->factors, worker);
    LS_TRY(ls_factors_gradient(store->factors, store->slots[tile->parameter].parameter, piece,
                               gradient, error));
    for (size_t r = 0; r < piece->rows && masked; r++)
        LS_TRY(ls_store_clear_masked(store, tile->parameter, piece->begin + r * piece->row,
                                     gradient + r * piece->columns, piece->columns, error));
    return engine->device->sums->squares(gradient, piece->rows * piece->columns, partial, error);
}

static void norms_measure_some(void *argument, int worker)
{
    struct measure *measure = argument;
    const struct ls_engine *engine = measure->engine;
    const struct ls_store *store = engine->store;
    struct ls_error *error = ls_worker_error();
    int status = 0;
    size_t index;
    while (status == 0 && ls_store_next_tile(store, &measure->next, engine->norms->owner,
                                             engine->comm->rank, &index)) {
        const struct ls_tile *tile = &store->tiles[index];
        double *partial = engine->norms->partial + index * CHUNKS_PER_TILE;
        if (measure->given && !ls_store_has_factors(store, tile->parameter))
            continue;
        status = measure->weights != NULL
                     ? norms_of_weights(measure, tile, partial, error)
                     : norms_of_gradient(measure, tile, worker, partial, error);
    }
    ls_worker_failure_note(&measure->failure, status, error);
}

/* ---- In a stream of the device --------------------------------------------------------------- */

/* Whether the sums of a tile are measured there by this rank. */
static bool norms_is_given(const struct ls_engine *engine, size_t tile)
{
    return engine->norms->owner[tile] == engine->comm->rank &&
           !ls_store_has_factors(engine->store, engine->store->tiles[tile].parameter);
}

/* Gives tiles from `tile` on that make one array and whose chunks do; returns the tile behind. */
static size_t norms_join(const struct ls_engine *engine, size_t tile, size_t *elements)
{
    const struct ls_tile *tiles = engine->store->tiles;
    const int parameter = tiles[tile].parameter;
    *elements = tiles[tile].piece.columns;
    for (tile++; tile < engine->store->tile_count && norms_is_given(engine, tile) &&
                 tiles[tile].parameter == parameter && *elements % LS_SUMS_TILE == 0 &&
                 tiles[tile].piece.begin == tiles[tile - 1].piece.begin + LS_SUMS_TILE;
         tile++)
        *elements += tiles[tile].piece.columns;
    return tile;
}

/* Squares of the gradients that are summed, all in one go. */
static int norms_give(struct measure *measure, struct ls_error *error)
{
    const struct ls_engine *engine = measure->engine;
    const struct ls_store *store = engine->store;
    const struct ls_norms *norms = engine->norms;
    const struct ls_device *device = engine->device;
    const size_t bytes = store->tile_count * CHUNKS_PER_TILE * sizeof(double);
    double *there = norms->there.device;
    LS_TRY(norms->memory->zero(norms->stream, there, bytes, error));
    for (size_t tile = 0, elements; tile < store->tile_count;) {
        if (!norms_is_given(engine, tile)) {
            tile++;
            continue;
        }
        const size_t first = tile;
        const int parameter = store->tiles[first].parameter;
        tile = norms_join(engine, first, &elements);
        LS_TRY(device->accumulator->squares_there(norms->stream, ls_sums_accumulator(store->sums),
                                                  parameter, store->tiles[first].piece.begin,
                                                  elements, store->slots[parameter].mask,
                                                  there + first * CHUNKS_PER_TILE, error));
    }
    LS_TRY(norms->memory->read(norms->stream, norms->there.host, there, bytes, error));
    LS_TRY(device->streams->wait(norms->stream, error));
    for (size_t tile = 0; tile < store->tile_count; tile++)
        if (norms_is_given(engine, tile))
            memcpy(norms->partial + tile * CHUNKS_PER_TILE,
                   (const double *)norms->there.host + tile * CHUNKS_PER_TILE,
                   CHUNKS_PER_TILE * sizeof(double));
    measure->given = true;
    return 0;
}

/* Partial results of all ranks are then in tile order. */
static int norms_measure(struct measure *measure, struct ls_error *error)
{
    const struct ls_engine *engine = measure->engine;
    const size_t bytes = CHUNKS_PER_TILE * sizeof *engine->norms->partial;
    measure->failure.error = error;
    if (engine->norms->stream != NULL && measure->weights == NULL)
        LS_TRY(norms_give(measure, error));
    ls_thread_pool_run(engine->pool, norms_measure_some, measure);
    LS_TRY(atomic_load(&measure->failure.status));
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
