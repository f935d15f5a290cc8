/* Parameters in memory. See engine/store.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/store.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "base/random.h"
#include "engine/stopwatch.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/filler.h"

static int fill(struct ls_store *store, int index, uint64_t seed, struct ls_error *error)
{
    struct ls_slot *slot = &store->slots[index];
    const struct ls_parameter *parameter = slot->parameter;
    size_t elements = (size_t)ls_shape_size(&parameter->shape);
    float *plain = ls_alloc_aligned(elements * sizeof *plain);
    if (plain == NULL)
        return ls_fail_memory(error, parameter->name);
    int status = 0;
    if (parameter->filler != NULL)
        status = ls_fill_parameter(plain, &parameter->shape, parameter->filler,
                                   ls_random_key(seed, LS_RANDOM_FILLER, parameter->name), error);
    if (status == 0)
        status = ls_store_write(store, index, LS_WEIGHTS, plain, error);
    if (status == 0 && slot->average != NULL)
        status = ls_store_write(store, index, LS_AVERAGE, plain, error);
    ls_free_aligned(plain);
    return status;
}

static int allocate_slot(struct ls_slot *slot, const struct ls_store_options *options,
                         struct ls_error *error)
{
    struct ls_parameter *parameter = slot->parameter;
    if (parameter->layout == NULL)
        parameter->layout = &ls_layout_plain; /* no op reads it */
    slot->elements = ls_layout_elements(parameter->layout, &parameter->shape);
    slot->own_end = slot->elements;
    size_t bytes = slot->elements * sizeof(float);
    bool ready = (slot->weights = ls_alloc_aligned(bytes)) != NULL;
    if (parameter->trained && options->training) {
        for (int i = 0; i < options->histories && ready; i++)
            ready = (slot->history[i] = ls_alloc_aligned(bytes)) != NULL;
        if (options->average && ready)
            ready = (slot->average = ls_alloc_aligned(bytes)) != NULL;
    }
    return ready ? 0 : ls_fail_memory(error, parameter->name);
}

/* Cuts a parameter into tiles; `tiles` may be NULL, to count them. */
static size_t cut_tiles(const struct ls_slot *slot, struct ls_tile *tiles)
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

static int create_gradients(struct ls_store *store, int workers, struct ls_error *error)
{
    size_t count = store->set->count, tiles = 0;
    size_t *elements = ls_alloc(count + 1, sizeof *elements);
    if (elements == NULL)
        return ls_fail_memory(error, "gradient sums");
    for (size_t i = 0; i < count; i++)
        if (store->slots[i].parameter->trained) {
            elements[i] = ls_store_has_factors(store, (int)i) ? 0 : store->slots[i].elements;
            tiles += cut_tiles(&store->slots[i], NULL);
        }
    store->tiles = ls_alloc(tiles + 1, sizeof *store->tiles);
    int status = store->tiles == NULL
                     ? ls_fail_memory(error, "gradient sums")
                     : ls_sums_create(elements, count, workers, &store->sums, error);
    if (status == 0)
        status = ls_factors_create(store->set, workers, &store->factors, error);
    for (size_t i = 0; i < count && status == 0; i++)
        if (store->slots[i].parameter->trained)
            store->tile_count += cut_tiles(&store->slots[i], store->tiles + store->tile_count);
    ls_free(elements);
    return status;
}

static int build(struct ls_store *store, const struct ls_store_options *options,
                 struct ls_error *error)
{
    size_t count = store->set->count;
    store->slots = ls_alloc(count + 1, sizeof *store->slots);
    if (store->slots == NULL)
        return ls_fail_memory(error, "parameters");
    for (size_t i = 0; i < count; i++) {
        store->slots[i].parameter = store->set->items[i];
        LS_TRY(allocate_slot(&store->slots[i], options, error));
        LS_TRY(fill(store, (int)i, options->seed, error));
    }
    LS_TRY(ls_store_add_views(store, error));
    return options->training ? create_gradients(store, options->workers, error) : 0;
}

int ls_store_create(const struct ls_backend *backend, struct ls_parameter_set *set,
                    struct ls_view_set *views, const struct ls_store_options *options,
                    struct ls_store **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_store *store = ls_alloc(1, sizeof *store);
    if (store == NULL)
        return ls_fail_memory(error, "parameters");
    store->backend = backend;
    store->peers = options->peers;
    store->set = set;
    store->views = views;
    int status = build(store, options, error);
    if (status != 0)
        ls_store_free(store);
    else
        *out = store;
    return status;
}

static void close_view(const struct ls_store *store, struct ls_view_memory *memory)
{
    store->backend->converter_free(memory->converter);
    ls_free_aligned(memory->numbers);
}

void ls_store_free(struct ls_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->set->count && store->slots != NULL; i++) {
        struct ls_slot *slot = &store->slots[i];
        ls_free_aligned(slot->weights);
        for (int h = 0; h < LS_HISTORY_MAX; h++)
            ls_free_aligned(slot->history[h]);
        ls_free_aligned(slot->average);
    }
    for (size_t i = 0; i < store->view_count; i++)
        close_view(store, &store->view_memory[i]);
    ls_sums_free(store->sums);
    ls_factors_free(store->factors);
    ls_free(store->slots);
    ls_free(store->view_memory);
    ls_free(store->tiles);
    ls_free(store);
}

/* ---- Views ----------------------------------------------------------------------------------- */

static bool convert_view(const struct ls_store *store, size_t index)
{
    const struct ls_view_memory *memory = &store->view_memory[index];
    int parameter = store->views->items[index].parameter->index;
    return store->backend->converter_run(memory->converter, store->slots[parameter].weights,
                                         memory->numbers);
}

static int say_not_converted(struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                   "cannot bring the weights into the layouts of the kernels");
}

static int open_view(const struct ls_store *store, const struct ls_view *view,
                     struct ls_view_memory *memory, struct ls_error *error)
{
    const struct ls_parameter *parameter = view->parameter;
    size_t elements = ls_layout_elements(view->layout, &parameter->shape);
    *memory = (struct ls_view_memory){.numbers = ls_alloc_aligned(elements * sizeof(float))};
    if (memory->numbers == NULL)
        return ls_fail_memory(error, parameter->name);
    int status = store->backend->converter_new(parameter->layout, view->layout, &parameter->shape,
                                               &memory->converter, error);
    if (status != 0)
        close_view(store, memory);
    return status;
}

int ls_store_add_views(struct ls_store *store, struct ls_error *error)
{
    size_t count = store->views->count;
    if (store->view_count == count)
        return 0;
    struct ls_view_memory *longer = ls_resize(store->view_memory, count, sizeof *longer);
    if (longer == NULL)
        return ls_fail_memory(error, "parameters");
    store->view_memory = longer;
    for (size_t i = store->view_count; i < count; i++) {
        LS_TRY(open_view(store, &store->views->items[i], &longer[i], error));
        store->view_count++;
        if (!convert_view(store, i))
            return say_not_converted(error);
    }
    return 0;
}

struct refresh {
    struct ls_store *store;
    struct ls_stopwatch *watch; /* or NULL */
    _Atomic size_t next;
    _Atomic bool failed;
};

static void refresh_some(void *argument, int worker)
{
    struct refresh *refresh = argument;
    struct ls_store *store = refresh->store;
    for (;;) {
        size_t i = atomic_fetch_add(&refresh->next, 1);
        if (i >= store->view_count)
            return;
        uint64_t start = ls_stopwatch_start(refresh->watch);
        if (!convert_view(store, i))
            atomic_store(&refresh->failed, true);
        if (refresh->watch != NULL)
            refresh->watch->worker[worker].views[store->views->items[i].parameter->index] +=
                ls_nanoseconds() - start;
    }
}

int ls_store_refresh_views(struct ls_store *store, struct ls_team *team, struct ls_error *error)
{
    if (store->view_count == 0)
        return 0;
    struct refresh refresh = {.store = store, .watch = ls_team_stopwatch(team)};
    ls_team_run(team, refresh_some, &refresh);
    return atomic_load(&refresh.failed) ? say_not_converted(error) : 0;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static float *array_of(const struct ls_store *store, int parameter, enum ls_store_array array)
{
    const struct ls_slot *slot = &store->slots[parameter];
    switch (array) {
    case LS_WEIGHTS:
        return slot->weights;
    case LS_HISTORY_0:
        return slot->history[0];
    case LS_HISTORY_1:
        return slot->history[1];
    case LS_AVERAGE:
        return slot->average;
    }
    return NULL;
}

int ls_store_read(const struct ls_store *store, int parameter, enum ls_store_array array,
                  float *plain, struct ls_error *error)
{
    const struct ls_parameter *what = store->set->items[parameter];
    return store->backend->parameter_to_plain(what->layout, &what->shape,
                                              array_of(store, parameter, array), plain, error);
}

const float *ls_store_plain(const struct ls_store *store, int parameter, enum ls_store_array array)
{
    bool plain = store->set->items[parameter]->layout == &ls_layout_plain;
    return plain ? array_of(store, parameter, array) : NULL;
}

int ls_store_write(struct ls_store *store, int parameter, enum ls_store_array array,
                   const float *plain, struct ls_error *error)
{
    const struct ls_parameter *what = store->set->items[parameter];
    return store->backend->parameter_from_plain(what->layout, &what->shape, plain,
                                                array_of(store, parameter, array), error);
}

int ls_store_read_gradient(const struct ls_store *store, int parameter, float *plain,
                           struct ls_error *error)
{
    const struct ls_slot *slot = &store->slots[parameter];
    float *gradient = ls_alloc_aligned(slot->elements * sizeof *gradient);
    if (gradient == NULL)
        return ls_fail_memory(error, "a gradient");
    int status = 0;
    struct ls_gradient_piece all = {.rows = 1, .columns = slot->elements};
    if (slot->parameter == slot->parameter->factoring.weight) {
        all.rows = (size_t)slot->parameter->shape.dim[0];
        all.columns = slot->elements / all.rows;
    }
    if (ls_store_has_factors(store, parameter) && store->factors != NULL)
        ls_factors_gradient(store->factors, slot->parameter, &all, gradient);
    else if (slot->parameter->trained && store->sums != NULL)
        ls_exact_to_float(ls_sums_total(store->sums, parameter),
                          ls_sums_total_exponent(store->sums, parameter), gradient, slot->elements);
    status = store->backend->parameter_to_plain(slot->parameter->layout, &slot->parameter->shape,
                                                gradient, plain, error);
    ls_free_aligned(gradient);
    return status;
}

void ls_store_swap_average(struct ls_store *store)
{
    for (size_t i = 0; i < store->set->count; i++) {
        struct ls_slot *slot = &store->slots[i];
        for (size_t e = 0; slot->average != NULL && e < slot->elements; e++) {
            float weight = slot->weights[e];
            slot->weights[e] = slot->average[e];
            slot->average[e] = weight;
        }
    }
}
