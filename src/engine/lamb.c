/* LAMB's histories and trust ratios. See engine/lamb.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/lamb.h"

#include <math.h>

#include "base/memory.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "engine/pass.h"
#include "transport/comm.h"

enum { TILE_MOST = LS_FACTOR_TILE_ROWS * LS_FACTOR_TILE_COLUMNS };
_Static_assert((int)LS_SUMS_TILE <= (int)TILE_MOST, "a direction has room");

/* Sums of squares of a tile. */
struct partial {
    double weights, direction;
};

struct ls_lamb {
    struct partial *partial; /* by tile */
    double *one;             /* of a parameter's tiles, in a row */
    int *owner;              /* by tile: the rank whose sums all get */
    const struct ls_device_memory *memory;
    float *room; /* the device's, for each worker: a gradient from sums, a direction */
};

static bool lamb_wanted(const struct ls_store *store, const struct ls_store_options *options)
{
    for (size_t i = 0; i < store->set->count && options->state != NULL; i++)
        if (options->state[i].norms && store->set->items[i]->trained)
            return true;
    return false;
}

int ls_lamb_create(const struct ls_engine *engine, const struct ls_store_options *options,
                   struct ls_lamb **out, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    *out = NULL;
    if (!lamb_wanted(store, options))
        return 0;
    struct ls_lamb *lamb = *out = ls_alloc(1, sizeof *lamb);
    if (lamb == NULL)
        return ls_fail_memory(error, "the update");
    lamb->memory = engine->device->memory;
    lamb->partial = ls_alloc(store->tile_count + 1, sizeof *lamb->partial);
    lamb->one = ls_alloc(store->tile_count + 1, sizeof *lamb->one);
    lamb->owner = ls_alloc(store->tile_count + 1, sizeof *lamb->owner);
    lamb->room = lamb->memory->create((size_t)engine->workers * (LS_SUMS_TILE + TILE_MOST) *
                                      sizeof *lamb->room);
    if (lamb->partial == NULL || lamb->one == NULL || lamb->owner == NULL || lamb->room == NULL)
        return ls_fail_memory(error, "the update"); /* the optimizer frees it */
    for (size_t i = 0; i < store->tile_count; i++) {
        const struct ls_tile *tile = &store->tiles[i];
        /* All ranks know those of weights with factors. */
        lamb->owner[i] = store->shards->bucket[tile->parameter] >= 0
                             ? ls_shards_owner(store->shards, tile->parameter, tile->piece.begin)
                             : 0;
    }
    return 0;
}

void ls_lamb_free(struct ls_lamb *lamb)
{
    if (lamb == NULL)
        return;
    ls_free(lamb->partial);
    ls_free(lamb->one);
    ls_free(lamb->owner);
    lamb->memory->free(lamb->room);
    ls_free(lamb);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

struct first_pass {
    const struct ls_engine *engine;
    struct ls_lamb *lamb;
    const struct ls_update_rule *rules;
    float *const *weights;  /* by parameter */
    _Atomic uint32_t *seen; /* by parameter */
    _Atomic size_t next;    /* tile */
    struct ls_worker_failure failure;
};

/* Masked weights have no histories and no direction. */
static int lamb_clear_masked(const struct ls_store *store, int parameter, size_t begin,
                             const struct ls_update_slice *slice, struct ls_error *error)
{
    float *const arrays[] = {slice->history[0], slice->history[1], slice->direction};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        LS_TRY(ls_store_clear_masked(store, parameter, begin, arrays[i], slice->n, error));
    return 0;
}

/* One row of a tile, from element `begin` of the parameter on. */
static int lamb_look_at_row(const struct first_pass *pass, int parameter, size_t begin, size_t n,
                            const float *gradient, float *direction, double *weights,
                            uint32_t *largest, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    size_t own = begin - slot->shard_begin;
    double squares;
    struct ls_update_seen seen;
    struct ls_update_slice slice = {.n = n,
                                    .gradient = gradient,
                                    .weight = pass->weights[parameter] + begin,
                                    .history = {slot->history[0] + own, slot->history[1] + own},
                                    .direction = direction};
    LS_TRY(store->device->update(&pass->rules[parameter], &slice, &seen, error));
    if (slot->mask != NULL)
        LS_TRY(lamb_clear_masked(store, parameter, begin, &slice, error));
    LS_TRY(store->device->sums->squares(slice.weight, n, &squares, error));
    *weights += squares;
    *largest = seen.gradient > *largest ? seen.gradient : *largest;
    return 0;
}

static int lamb_look_at_tile(const struct first_pass *pass, const struct ls_tile *tile, int worker,
                             struct partial *partial, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    const struct ls_gradient_piece *piece = &tile->piece;
    float *gradient = pass->lamb->room + (size_t)worker * (LS_SUMS_TILE + TILE_MOST);
    float *direction = gradient + LS_SUMS_TILE;
    uint32_t largest = 0;
    if (ls_store_has_factors(store, tile->parameter)) {
        gradient = ls_factors_tile(store->factors, worker);
        LS_TRY(ls_factors_gradient(store->factors, store->slots[tile->parameter].parameter, piece,
                                   gradient, error));
    } else { /* one row */
        LS_TRY(ls_sums_read(store->sums, tile->parameter, piece->begin, piece->columns, gradient,
                            error));
    }
    *partial = (struct partial){0};
    for (size_t r = 0; r < piece->rows; r++)
        LS_TRY(lamb_look_at_row(pass, tile->parameter, piece->begin + r * piece->row,
                                piece->columns, gradient + r * piece->columns,
                                direction + r * piece->columns, &partial->weights, &largest,
                                error));
    ls_raise_to(&pass->seen[tile->parameter], largest);
    return store->device->sums->squares(direction, piece->rows * piece->columns,
                                        &partial->direction, error);
}

static void lamb_look_at_some(void *argument, int worker)
{
    struct first_pass *pass = argument;
    const struct ls_store *store = pass->engine->store;
    struct ls_error *error = ls_worker_error();
    int status = 0;
    while (status == 0) {
        size_t i = atomic_fetch_add_explicit(&pass->next, 1, memory_order_relaxed);
        if (i >= store->tile_count)
            break;
        const struct ls_tile *tile = &store->tiles[i];
        bool here = pass->lamb->owner[i] == pass->engine->comm->rank ||
                    ls_store_has_factors(store, tile->parameter);
        if (here && pass->rules[tile->parameter].kind == LS_UPDATE_LAMB)
            status = lamb_look_at_tile(pass, tile, worker, &pass->lamb->partial[i], error);
    }
    ls_worker_failure_note(&pass->failure, status, error);
}

/* ---- Ratios ---------------------------------------------------------------------------------- */

/* |weights| / |direction| over tiles [begin, end). */
static float lamb_trust(struct ls_lamb *lamb, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        lamb->one[i - begin] = lamb->partial[i].weights;
    const double weights = ls_sum_doubles(lamb->one, end - begin);
    for (size_t i = begin; i < end; i++)
        lamb->one[i - begin] = lamb->partial[i].direction;
    const double direction = ls_sum_doubles(lamb->one, end - begin);
    return weights > 0 && direction > 0 ? (float)(sqrt(weights) / sqrt(direction)) : 1;
}

int ls_lamb_find_trust(struct ls_engine *engine, struct ls_lamb *lamb, float *const *weights,
                       struct ls_update_rule *rules, _Atomic uint32_t *seen, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    struct first_pass pass = {.engine = engine,
                              .lamb = lamb,
                              .rules = rules,
                              .weights = weights,
                              .seen = seen,
                              .failure = {.error = error}};
    ls_thread_pool_run(engine->pool, lamb_look_at_some, &pass);
    LS_TRY(atomic_load(&pass.failure.status));
    LS_TRY(ls_comm_all_gather_items(engine->comm, lamb->partial, sizeof *lamb->partial,
                                    sizeof *lamb->partial, lamb->owner, store->tile_count, error));
    for (size_t begin = 0, end = 0; begin < store->tile_count; begin = end) {
        const int parameter = store->tiles[begin].parameter;
        while (end < store->tile_count && store->tiles[end].parameter == parameter)
            end++;
        if (rules[parameter].kind == LS_UPDATE_LAMB)
            rules[parameter].trust = lamb_trust(lamb, begin, end);
    }
    return 0;
}
