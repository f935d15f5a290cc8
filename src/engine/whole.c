/* Whole parameters. See engine/whole.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/whole.h"

#include "base/memory.h"
#include "base/thread.h"
#include "device/plain.h"
#include "engine/adafactor.h"
#include "engine/engine.h"
#include "engine/muon.h"
#include "engine/pass.h"
#include "engine/profiler.h"

struct ls_whole {
    const struct ls_device_memory *memory;
    struct ls_muon *muon;           /* NULL: no parameter has that rule */
    struct ls_adafactor *adafactor; /* the same */
    float *direction;               /* the device's: u, and then the step */
    float *gradient;                /* the device's, LS_SUMS_TILE a worker */
    float *plain;                   /* in Caffe's order, where that is not the device's */
};

/* What the largest parameters need. */
struct whole_sizes {
    size_t laid_out; /* elements, with padding */
    size_t plain;    /* elements of those that must go into Caffe's order */
};

/* Whether the host has a parameter's numbers in Caffe's order where the device has them. */
static bool whole_is_plain(const struct ls_device *device, const struct ls_parameter *parameter)
{
    return device->memory->host_memory &&
           (parameter->layout == NULL || parameter->layout == &ls_layout_plain);
}

static struct whole_sizes whole_measure(const struct ls_device *device,
                                        const struct ls_parameter_set *set,
                                        const struct ls_store_options *options)
{
    struct whole_sizes sizes = {0};
    for (size_t i = 0; i < set->count && options->state != NULL; i++) {
        const struct ls_parameter *parameter = set->items[i];
        const size_t laid_out = ls_parameter_elements(parameter);
        const size_t elements = (size_t)ls_shape_size(&parameter->shape);
        if (!options->state[i].whole || !parameter->trained)
            continue;
        sizes.laid_out = laid_out > sizes.laid_out ? laid_out : sizes.laid_out;
        if (!whole_is_plain(device, parameter))
            sizes.plain = elements > sizes.plain ? elements : sizes.plain;
    }
    return sizes;
}

size_t ls_whole_bytes(const struct ls_device *device, const struct ls_parameter_set *set,
                      const struct ls_store_options *options, size_t *of_worker)
{
    const struct whole_sizes sizes = whole_measure(device, set, options);
    size_t of_muon = 0;
    *of_worker = 0;
    if (sizes.laid_out == 0)
        return 0;
    const size_t rules =
        ls_muon_bytes(device, set, options, &of_muon) + ls_adafactor_bytes(set, options);
    *of_worker = of_muon + LS_SUMS_TILE * ls_dtype_size(LS_F32);
    return rules + (sizes.laid_out + sizes.plain) * ls_dtype_size(LS_F32);
}

int ls_whole_create(const struct ls_engine *engine, const struct ls_store_options *options,
                    struct ls_whole **out, struct ls_error *error)
{
    *out = NULL;
    const struct whole_sizes sizes = whole_measure(engine->device, engine->store->set, options);
    if (sizes.laid_out == 0)
        return 0;
    struct ls_whole *whole = *out = ls_alloc(1, sizeof *whole);
    if (whole == NULL)
        return ls_fail_memory(error, "the update");
    const size_t tiles = (size_t)engine->workers * LS_SUMS_TILE;
    whole->memory = engine->device->memory;
    whole->direction = whole->memory->create(sizes.laid_out * ls_dtype_size(LS_F32));
    whole->gradient = whole->memory->create(tiles * ls_dtype_size(LS_F32));
    whole->plain = ls_alloc_aligned(sizes.plain * ls_dtype_size(LS_F32));
    if (whole->direction == NULL || whole->gradient == NULL || whole->plain == NULL)
        return ls_fail_memory(error, "the update"); /* the optimizer frees it */
    LS_TRY(ls_muon_create(engine, options, &whole->muon, error));
    return ls_adafactor_create(engine, options, &whole->adafactor, error);
}

void ls_whole_free(struct ls_whole *whole)
{
    if (whole == NULL)
        return;
    ls_muon_free(whole->muon);
    ls_adafactor_free(whole->adafactor);
    whole->memory->free(whole->direction);
    whole->memory->free(whole->gradient);
    ls_free_aligned(whole->plain);
    ls_free(whole);
}

/* ---- Workers -------------------------------------------------------------------------------- */

struct whole_task {
    void (*run)(void *argument, int worker);
    void *argument;
    struct ls_profiler *profiler;
    int parameter;
};

static void whole_run_task(void *argument, int worker)
{
    const struct whole_task *task = argument;
    const uint64_t start = ls_profiler_start(task->profiler);
    task->run(task->argument, worker);
    if (task->profiler != NULL)
        task->profiler->worker[worker].update[task->parameter] += ls_nanoseconds() - start;
}

void ls_whole_share(const struct ls_engine *engine, int parameter,
                    void (*run)(void *argument, int worker), void *argument)
{
    struct whole_task task = {.run = run,
                              .argument = argument,
                              .profiler = ls_thread_pool_profiler(engine->pool),
                              .parameter = parameter};
    ls_thread_pool_run(engine->pool, whole_run_task, &task);
}

double ls_whole_squares(const struct ls_engine *engine, const float *numbers, int64_t n)
{
    const struct ls_device *device = engine->device;
    const struct ls_device_sums *sums = device->memory->host_memory ? device->sums : &ls_plain_sums;
    double squares = 0;
    (void)sums->squares(numbers, (size_t)n, &squares, NULL); /* cannot fail */
    return squares;
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* One parameter. */
struct whole_pass {
    const struct ls_engine *engine;
    struct ls_whole *whole;
    struct ls_update_rule rule;
    float *weights;
    int parameter;
    bool move;           /* the second pass */
    size_t first, end;   /* of its tiles */
    _Atomic size_t next; /* tile */
    _Atomic uint32_t *seen_gradient, *seen_weight;
    struct ls_worker_failure failure;
};

/* Masked weights have no history, and no part of a step: what others do changes none of them. */
static int whole_clear_masked(const struct ls_store *store, int parameter, size_t begin,
                              const struct ls_update_slice *slice, struct ls_error *error)
{
    float *const arrays[] = {slice->weight, slice->history[0], slice->history[1], slice->direction,
                             slice->average};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i] != NULL)
            LS_TRY(ls_store_clear_masked(store, parameter, begin, arrays[i], slice->n, error));
    return 0;
}

/* Elements [begin, begin + n): the gradient is given in the first pass. */
static int whole_update_row(const struct whole_pass *pass, size_t begin, size_t n,
                            const float *gradient, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    const struct ls_parameter_state *slot = &store->slots[pass->parameter];
    float *direction = pass->whole->direction + begin;
    const size_t own = begin - slot->shard_begin;
    struct ls_update_slice slice = {
        .n = n,
        .gradient = pass->move ? direction : gradient,
        .weight = pass->weights + begin,
        .direction = pass->move ? NULL : direction,
        .average = pass->move && slot->average != NULL ? slot->average + own : NULL};
    for (int h = 0; h < LS_HISTORY_MAX; h++)
        slice.history[h] = slot->history[h] != NULL ? slot->history[h] + own : NULL;
    struct ls_update_seen seen;
    LS_TRY(store->device->update(&pass->rule, &slice, &seen, error));
    if (slot->mask != NULL)
        LS_TRY(whole_clear_masked(store, pass->parameter, begin, &slice, error));
    ls_raise_to(pass->seen_gradient, seen.gradient);
    ls_raise_to(pass->seen_weight, seen.weight);
    return 0;
}

static int whole_update_tile(const struct whole_pass *pass, const struct ls_gradient_piece *piece,
                             int worker, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    float *gradient = pass->whole->gradient + (size_t)worker * LS_SUMS_TILE;
    if (!pass->move && ls_store_has_factors(store, pass->parameter)) {
        gradient = ls_factors_tile(store->factors, worker);
        LS_TRY(ls_factors_gradient(store->factors, store->slots[pass->parameter].parameter, piece,
                                   gradient, error));
    } else if (!pass->move) { /* one row */
        LS_TRY(ls_sums_read(store->sums, pass->parameter, piece->begin, piece->columns, gradient,
                            error));
    }
    for (size_t r = 0; r < piece->rows; r++)
        LS_TRY(whole_update_row(pass, piece->begin + r * piece->row, piece->columns,
                                pass->move ? NULL : gradient + r * piece->columns, error));
    return 0;
}

static void whole_update_some(void *argument, int worker)
{
    struct whole_pass *pass = argument;
    struct ls_error *error = ls_worker_error();
    int status = 0;
    for (size_t i; status == 0 && (i = atomic_fetch_add(&pass->next, 1)) < pass->end;)
        status = whole_update_tile(pass, &pass->engine->store->tiles[i].piece, worker, error);
    ls_worker_failure_note(&pass->failure, status, error);
}

static int whole_update_tiles(struct whole_pass *pass, bool move)
{
    pass->move = move;
    atomic_store(&pass->next, pass->first);
    ls_whole_share(pass->engine, pass->parameter, whole_update_some, pass);
    return atomic_load(&pass->failure.status);
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* Numbers of the parameter in Caffe's order: they themselves, or a copy. */
static int whole_read(const struct whole_pass *pass, float *laid_out, float **plain,
                      struct ls_error *error)
{
    const struct ls_device *device = pass->engine->device;
    const struct ls_parameter *parameter = pass->engine->store->slots[pass->parameter].parameter;
    const bool direct = whole_is_plain(device, parameter);
    *plain = direct ? laid_out : pass->whole->plain;
    return direct ? 0
                  : device->parameter_to_plain(parameter->layout, &parameter->shape, laid_out,
                                               *plain, error);
}

static int whole_update(struct whole_pass *pass, struct ls_error *error)
{
    const struct ls_engine *engine = pass->engine;
    const struct ls_parameter_state *slot = &engine->store->slots[pass->parameter];
    const struct ls_parameter *parameter = slot->parameter;
    struct ls_whole *whole = pass->whole;
    float *plain;
    if (pass->rule.kind == LS_UPDATE_ADAFACTOR && pass->rule.scale_parameter) {
        LS_TRY(whole_read(pass, pass->weights, &plain, error));
        ls_adafactor_look(engine, whole->adafactor, parameter, plain);
    }
    LS_TRY(whole_update_tiles(pass, false));
    LS_TRY(whole_read(pass, whole->direction, &plain, error));
    if (pass->rule.kind == LS_UPDATE_MUON)
        ls_muon_orthogonalize(engine, whole->muon, &pass->rule, parameter, plain);
    else
        ls_adafactor_scale(engine, whole->adafactor, slot, plain, &pass->rule);
    if (plain != whole->direction)
        LS_TRY(engine->device->parameter_from_plain(parameter->layout, &parameter->shape, plain,
                                                    whole->direction, error));
    return whole_update_tiles(pass, true);
}

int ls_whole_run(struct ls_engine *engine, struct ls_whole *whole, float *const *weights,
                 const struct ls_update_rule *rules, _Atomic uint32_t *seen, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    for (size_t begin = 0, end = 0; begin < store->tile_count; begin = end) {
        const int parameter = store->tiles[begin].parameter;
        const struct ls_parameter_state *slot = &store->slots[parameter];
        while (end < store->tile_count && store->tiles[end].parameter == parameter)
            end++;
        if (!ls_whole_has(rules[parameter].kind) || slot->shard_begin == slot->shard_end)
            continue;
        struct whole_pass pass = {.engine = engine,
                                  .whole = whole,
                                  .rule = rules[parameter],
                                  .weights = weights[parameter],
                                  .parameter = parameter,
                                  .first = begin,
                                  .end = end,
                                  .seen_gradient = &seen[parameter],
                                  .seen_weight = &seen[store->set->count + 1 + (size_t)parameter],
                                  .failure = {.error = error}};
        LS_TRY(whole_update(&pass, error));
    }
    return 0;
}
