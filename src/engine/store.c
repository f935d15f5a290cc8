/* Parameters in memory. See engine/store.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/store.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/random.h"
#include "engine/rows.h"
#include "engine/store_inner.h"
#include "engine/store_views.h"

/* ---- Access to weights ----------------------------------------------------------------------- */

int ls_store_wait(const struct ls_store *store, int bucket, struct ls_error *error)
{
    const struct ls_stored_weights *weights = store->weights;
    return weights->wait != NULL ? weights->wait(weights->user, bucket, error) : 0;
}

int ls_store_weights(const struct ls_store *store, int parameter, float **weights,
                     struct ls_error *error)
{
    int bucket = store->shards->bucket[parameter];
    *weights = store->weights->of[parameter];
    return bucket >= 0 ? ls_store_wait(store, bucket, error) : 0;
}

int ls_store_all_weights(const struct ls_store *store, float *const **weights,
                         struct ls_error *error)
{
    *weights = store->weights->of;
    return ls_store_wait(store, LS_BUCKETS_ALL, error);
}

float *ls_store_send_from(struct ls_store *store,
                          int (*wait)(void *user, int bucket, struct ls_error *error), void *user)
{
    store->weights->wait = wait;
    store->weights->user = user;
    return store->weights->flat;
}

int ls_store_array(const struct ls_store *store, int parameter, enum ls_store_array array,
                   float **numbers, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
    if (array == LS_WEIGHTS)
        return ls_store_weights(store, parameter, numbers, error);
    switch (array) {
    case LS_ROWS:
        *numbers = slot->rows;
        return 0;
    case LS_COLUMNS:
        *numbers = slot->columns;
        return 0;
    case LS_AVERAGE:
        *numbers = slot->average;
        return 0;
    default:
        *numbers = slot->history[array - LS_HISTORY_0];
        return 0;
    }
}

struct ls_shape ls_store_array_shape(const struct ls_shape *parameter, enum ls_store_array array)
{
    struct ls_shape shape = *parameter;
    if ((array != LS_ROWS && array != LS_COLUMNS) || shape.rank < 2)
        return shape;
    shape.rank--;
    if (array == LS_COLUMNS) /* without the last axis but one */
        shape.dim[shape.rank - 1] = parameter->dim[shape.rank];
    return shape;
}

size_t ls_store_factored_bytes(const struct ls_store_options *options,
                               const struct ls_parameter *parameter)
{
    if (!options->training || !parameter->trained || options->state == NULL ||
        !options->state[parameter->index].factored)
        return 0;
    const struct ls_shape rows = ls_store_array_shape(&parameter->shape, LS_ROWS);
    const struct ls_shape columns = ls_store_array_shape(&parameter->shape, LS_COLUMNS);
    return (size_t)(ls_shape_size(&rows) + ls_shape_size(&columns)) * ls_dtype_size(LS_F32);
}

int ls_store_write(struct ls_store *store, int parameter, enum ls_store_array array,
                   const float *plain, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
    const struct ls_parameter *what = slot->parameter;
    size_t own = slot->shard_end - slot->shard_begin;
    float *into;
    LS_TRY(ls_store_array(store, parameter, array, &into, error));
    if (array == LS_ROWS || array == LS_COLUMNS) {
        const struct ls_shape shape = ls_store_array_shape(&what->shape, array);
        if (own > 0)
            memcpy(into, plain, (size_t)ls_shape_size(&shape) * sizeof *into);
        return 0;
    }
    if (array == LS_WEIGHTS || own == slot->elements) {
        LS_TRY(store->device->parameter_from_plain(what->layout, &what->shape, plain, into, error));
        return ls_store_clear_masked(store, parameter, 0, into, slot->elements, error);
    }
    const struct ls_device_memory *memory = store->device->memory;
    float *whole = memory->create(ls_parameter_bytes(what));
    if (whole == NULL)
        return ls_fail_memory(error, what->name);
    int status =
        store->device->parameter_from_plain(what->layout, &what->shape, plain, whole, error);
    if (status == 0)
        status = memory->copy(NULL, into, whole + slot->shard_begin, own * sizeof *into, error);
    if (status == 0)
        status = ls_store_clear_masked(store, parameter, slot->shard_begin, into, own, error);
    memory->free(whole);
    return status;
}

/* ---- Creation -------------------------------------------------------------------------------- */

/* Fills weights that lie in Caffe's order in the host's memory where they are, others on the way
 * there. */
static int store_fill(struct ls_store *store, int index, uint64_t seed, struct ls_error *error)
{
    struct ls_parameter_state *slot = &store->slots[index];
    const struct ls_parameter *parameter = slot->parameter;
    const bool direct = parameter->layout == &ls_layout_plain && store->device->memory->host_memory;
    size_t elements = (size_t)ls_shape_size(&parameter->shape);
    float *other = direct ? NULL : ls_alloc_aligned(elements * sizeof *other);
    float *plain = direct ? store->weights->of[index] : other;
    if (plain == NULL)
        return ls_fail_memory(error, parameter->name);
    struct ls_filler filler;
    int status = ls_filler_resolve(&filler, parameter->filler, &parameter->shape, error);
    if (status == 0 && parameter->filler != NULL)
        store->device->fill(&filler, ls_random_key(seed, LS_RANDOM_FILLER, parameter->name), 0,
                            plain, elements);
    if (status == 0)
        status = direct ? ls_store_clear_masked(store, index, 0, plain, elements, error)
                        : ls_store_write(store, index, LS_WEIGHTS, plain, error);
    if (status == 0 && slot->average != NULL)
        status = ls_store_write(store, index, LS_AVERAGE, plain, error);
    ls_free_aligned(other);
    return status;
}

struct filling {
    struct ls_store *store;
    uint64_t seed;
    size_t *order; /* parameters, the largest first */
    _Atomic size_t next;
    struct ls_worker_failure failure;
};

static void store_fill_some(void *argument, int worker)
{
    struct filling *filling = argument;
    struct ls_error *error = ls_worker_error();
    if (worker > 0 && !filling->store->device->memory->host_memory)
        return; /* nothing says that several may write to it at once */
    int status = 0;
    for (size_t i;
         status == 0 && (i = atomic_fetch_add(&filling->next, 1)) < filling->store->set->count;)
        status = store_fill(filling->store, (int)filling->order[i], filling->seed, error);
    ls_worker_failure_note(&filling->failure, status, error);
}

static void store_sort(const struct ls_store *store, size_t *order)
{
    for (size_t i = 0; i < store->set->count; i++) {
        size_t at = i;
        for (; at > 0 && store->slots[order[at - 1]].elements < store->slots[i].elements; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

int ls_store_fill(struct ls_store *store, const struct ls_store_options *options,
                  struct ls_thread_pool *pool, struct ls_error *error)
{
    struct filling filling = {.store = store, .seed = options->seed, .failure = {.error = error}};
    if (LS_MUTANT(FILLER))
        filling.seed += (uint64_t)options->rank;
    filling.order = ls_alloc(store->set->count + 1, sizeof *filling.order);
    if (filling.order == NULL)
        return ls_fail_memory(error, "parameters");
    store_sort(store, filling.order);
    ls_thread_pool_enter(pool);
    ls_thread_pool_run(pool, store_fill_some, &filling);
    ls_thread_pool_leave(pool);
    ls_free(filling.order);
    return atomic_load(&filling.failure.status);
}

/* Lays the weights whose gradients are reduced as sums one behind the other, for all that is there.
 */
static int store_lay_flat(struct ls_store *store, const struct ls_store_options *options,
                          struct ls_error *error)
{
    size_t count = store->set->count;
    size_t *elements = ls_alloc(count + 1, sizeof *elements);
    bool *whole = ls_alloc(count + 1, sizeof *whole);
    if (elements == NULL || whole == NULL) {
        ls_free(elements);
        ls_free(whole);
        return ls_fail_memory(error, "parameters");
    }
    for (size_t i = 0; i < count; i++) {
        struct ls_parameter *parameter = store->set->items[i];
        if (parameter->layout == NULL)
            parameter->layout = &ls_layout_plain; /* no op reads it */
        store->slots[i].parameter = parameter;
        store->slots[i].elements = ls_layout_elements(parameter->layout, &parameter->shape);
        if (options->training && parameter->trained && !ls_store_has_factors(store, (int)i))
            elements[i] = store->slots[i].elements;
        whole[i] = options->state != NULL && options->state[i].whole;
    }
    int status = ls_shards_create(count, elements, whole, options->ranks, &store->shards, error);
    ls_free(elements);
    ls_free(whole);
    LS_TRY(status);
    store->weights->flat =
        store->device->memory->create(store->shards->elements * sizeof *store->weights->flat);
    return store->weights->flat != NULL ? 0 : ls_fail_memory(error, "parameters");
}

/* Of rows and columns, which other ranks than the owner have none of. */
static bool store_allocate_moments(struct ls_parameter_state *slot)
{
    const bool own = slot->shard_end > slot->shard_begin;
    const struct ls_shape *shape = &slot->parameter->shape;
    const struct ls_shape rows = ls_store_array_shape(shape, LS_ROWS);
    const struct ls_shape columns = ls_store_array_shape(shape, LS_COLUMNS);
    slot->rows = ls_host_memory.create(own ? (size_t)ls_shape_size(&rows) * sizeof *slot->rows : 0);
    slot->columns =
        ls_host_memory.create(own ? (size_t)ls_shape_size(&columns) * sizeof *slot->columns : 0);
    return slot->rows != NULL && slot->columns != NULL;
}

static int store_allocate_slot(struct ls_store *store, int index,
                               const struct ls_store_options *options, struct ls_error *error)
{
    struct ls_parameter_state *slot = &store->slots[index];
    const struct ls_parameter *parameter = slot->parameter;
    float **weights = &store->weights->of[index];
    ls_shards_own(store->shards, index, slot->elements, options->rank, &slot->shard_begin,
                  &slot->shard_end);
    size_t own = (slot->shard_end - slot->shard_begin) * sizeof **weights;
    *weights = store->weights->flat + store->shards->place[index];
    if (store->shards->bucket[index] < 0)
        *weights = store->device->memory->create(slot->elements * sizeof **weights);
    bool ready = *weights != NULL;
    if (parameter->trained && options->training) {
        for (int i = 0; i < LS_HISTORY_MAX && options->state != NULL && ready; i++)
            ready = !options->state[index].history[i] ||
                    (slot->history[i] = store->device->memory->create(own)) != NULL;
        if (options->average && ready)
            ready = (slot->average = store->device->memory->create(own)) != NULL;
        if (options->state != NULL && options->state[index].factored && ready)
            ready = store_allocate_moments(slot);
    }
    return ready ? 0 : ls_fail_memory(error, parameter->name);
}

/* Which elements of a layout are masked: the mask goes the way that weights go, as zeros and ones.
 */
static int store_lay_mask(const struct ls_store *store, const struct ls_parameter *parameter,
                          float *plain, float *laid_out, uint32_t *bits, struct ls_error *error)
{
    const struct ls_mask *mask = parameter->mask;
    size_t elements = ls_parameter_elements(parameter);
    for (int64_t i = 0; i < mask->size; i++)
        plain[i] = ls_mask_get(mask->bits, i) ? 1 : 0;
    LS_TRY(store->device->parameter_from_plain(parameter->layout, &parameter->shape, plain,
                                               laid_out, error));
    LS_TRY(store->device->memory->read(NULL, plain, laid_out, elements * sizeof *laid_out, error));
    for (size_t i = 0; i < elements; i++)
        if (plain[i] != 0)
            ls_mask_set(bits, (int64_t)i);
    return 0;
}

static int store_make_mask(struct ls_store *store, int index, struct ls_error *error)
{
    struct ls_parameter_state *slot = &store->slots[index];
    const struct ls_parameter *parameter = slot->parameter;
    const struct ls_device_memory *memory = store->device->memory;
    if (parameter->mask == NULL)
        return 0;
    size_t words = ls_mask_words(slot->elements), bytes = words * sizeof(uint32_t);
    float *plain = ls_alloc_aligned(slot->elements * sizeof *plain);
    float *laid_out = memory->create(slot->elements * sizeof *laid_out);
    uint32_t *bits = ls_alloc(words, sizeof *bits);
    slot->mask = memory->create(bytes);
    int status = plain == NULL || laid_out == NULL || bits == NULL || slot->mask == NULL
                     ? ls_fail_memory(error, parameter->name)
                     : store_lay_mask(store, parameter, plain, laid_out, bits, error);
    if (status == 0)
        status = memory->write(NULL, slot->mask, bits, bytes, error);
    ls_free_aligned(plain);
    memory->free(laid_out);
    ls_free(bits);
    return status;
}

int ls_store_clear_masked(const struct ls_store *store, int parameter, size_t first, float *numbers,
                          size_t n, struct ls_error *error)
{
    const uint32_t *mask = store->slots[parameter].mask;
    return mask != NULL ? store->device->clear_masked(mask, first, numbers, n, error) : 0;
}

/* Cuts a parameter into tiles; `tiles` may be NULL, to count them. */
static size_t store_cut_tiles(const struct ls_parameter_state *slot, struct ls_tile *tiles)
{
    const struct ls_parameter *parameter = slot->parameter;
    bool factors = parameter->factoring.weight == parameter;
    size_t width = factors ? (size_t)parameter->shape.dim[1] : slot->elements;
    size_t height = slot->elements / width, count = 0;
    size_t columns = factors ? LS_FACTOR_TILE_COLUMNS : LS_SUMS_TILE;
    size_t rows = factors ? LS_FACTOR_TILE_ROWS : 1;
    for (size_t i = 0; i < height; i += rows)
        for (size_t j = 0; j < width; j += columns, count++) {
            struct ls_gradient_piece piece = {.begin = i * width + j, .row = width};
            piece.rows = height - i < rows ? height - i : rows;
            piece.columns = width - j < columns ? width - j : columns;
            if (tiles != NULL)
                tiles[count] = (struct ls_tile){.parameter = parameter->index, .piece = piece};
        }
    return count;
}

static int store_create_gradients(struct ls_store *store, int workers, struct ls_error *error)
{
    size_t count = store->set->count, tiles = 0;
    size_t *elements = ls_alloc(count + 1, sizeof *elements);
    if (elements == NULL)
        return ls_fail_memory(error, "gradient sums");
    for (size_t i = 0; i < count; i++)
        if (store->slots[i].parameter->trained) {
            elements[i] = ls_store_has_factors(store, (int)i) ? 0 : store->slots[i].elements;
            tiles += store_cut_tiles(&store->slots[i], NULL);
        }
    store->tiles = ls_alloc(tiles + 1, sizeof *store->tiles);
    int status = store->tiles == NULL
                     ? ls_fail_memory(error, "gradient sums")
                     : ls_sums_create(store->device, elements, store->shards->place, count, workers,
                                      &store->sums, error);
    if (status == 0)
        status = ls_rows_cut(store, error);
    if (status == 0)
        status = ls_factors_create(store->device, store->set, workers, &store->factors, error);
    for (size_t i = 0; i < count && status == 0; i++)
        if (store->slots[i].parameter->trained)
            store->tile_count +=
                store_cut_tiles(&store->slots[i], store->tiles + store->tile_count);
    ls_free(elements);
    return status;
}

static int store_build(struct ls_store *store, const struct ls_store_options *options,
                       struct ls_error *error)
{
    size_t count = store->set->count;
    store->slots = ls_alloc(count + 1, sizeof *store->slots);
    store->weights = ls_alloc(1, sizeof *store->weights);
    if (store->slots == NULL || store->weights == NULL ||
        (store->weights->of = ls_alloc(count + 1, sizeof *store->weights->of)) == NULL)
        return ls_fail_memory(error, "parameters");
    LS_TRY(store_lay_flat(store, options, error));
    for (size_t i = 0; i < count; i++)
        LS_TRY(store_allocate_slot(store, (int)i, options, error));
    for (size_t i = 0; i < count; i++)
        LS_TRY(store_make_mask(store, (int)i, error));
    LS_TRY(ls_store_open_views(store, error));
    if (!options->training)
        return 0;
    return store_create_gradients(store, options->workers, error);
}

int ls_store_create(const struct ls_device *device, struct ls_parameter_set *set,
                    struct ls_view_set *views, const struct ls_store_options *options,
                    struct ls_store **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_store *store = ls_alloc(1, sizeof *store);
    if (store == NULL)
        return ls_fail_memory(error, "parameters");
    store->device = device;
    store->set = set;
    store->views = views;
    int status = store_build(store, options, error);
    if (status != 0)
        ls_store_free(store);
    else
        *out = store;
    return status;
}

void ls_store_free(struct ls_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->set->count && store->slots != NULL; i++) {
        struct ls_parameter_state *slot = &store->slots[i];
        if (store->shards != NULL && store->shards->bucket[i] < 0)
            store->device->memory->free(store->weights->of[i]);
        for (int h = 0; h < LS_HISTORY_MAX; h++)
            store->device->memory->free(slot->history[h]);
        store->device->memory->free(slot->average);
        ls_host_memory.free(slot->rows);
        ls_host_memory.free(slot->columns);
        store->device->memory->free(slot->mask);
    }
    ls_store_close_views(store, 0);
    ls_shards_free(store->shards);
    if (store->weights != NULL) {
        store->device->memory->free(store->weights->flat);
        ls_free(store->weights->of);
    }
    ls_free(store->weights);
    ls_sums_free(store->sums);
    ls_factors_free(store->factors);
    ls_free(store->slots);
    ls_free(store->view_memory);
    ls_free(store->tiles);
    ls_free(store);
}
