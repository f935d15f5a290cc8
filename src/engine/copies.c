/* Copies of what is learned. See engine/copies.h.
 *
 * To read an array whose parts lie with several ranks, rank 0 collects the parts: all ranks call
 * ls_copies_read for the same arrays in the same order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/copies.h"

#include <string.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/reducer.h"
#include "transport/comm.h"

bool ls_copies_in_parts(const struct ls_engine *engine, int parameter, enum ls_store_array array)
{
    const struct ls_store *store = engine->store;
    size_t begin, end; /* what rank 0 has */
    if (array == LS_WEIGHTS)
        return false;
    ls_shards_own(store->shards, parameter, store->slots[parameter].elements, 0, &begin, &end);
    return begin > 0 || end < store->slots[parameter].elements;
}

static bool copies_factored(enum ls_store_array array)
{
    return array == LS_ROWS || array == LS_COLUMNS;
}

/* Moments of rows or columns: the host's, in their order, and one rank has all of them. Rank 0 gets
 * them from there. */
static int copies_read_moments(const struct ls_engine *engine, int parameter,
                               enum ls_store_array array, const float *mine, float *plain,
                               struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    const struct ls_shape shape = ls_store_array_shape(&store->set->items[parameter]->shape, array);
    const size_t bytes = (size_t)ls_shape_size(&shape) * sizeof *mine;
    if (!ls_copies_in_parts(engine, parameter, array)) {
        memcpy(plain, mine, bytes);
        return 0;
    }
    for (int r = 0; r < engine->comm->size; r++) {
        size_t begin, end;
        ls_shards_own(store->shards, parameter, store->slots[parameter].elements, r, &begin, &end);
        engine->parts[r] = (struct ls_range){.begin = 0, .end = begin < end ? bytes : 0};
    }
    return ls_comm_gather(engine->comm, mine, plain, engine->parts, 1, error);
}

/* Rank 0 gets all parts of a parameter's array, of which each rank has its own at `mine`. */
static int copies_gather_parts(const struct ls_engine *engine, int parameter, const float *mine,
                               float *whole, struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    for (int r = 0; r < engine->comm->size; r++) {
        struct ls_range *part = &engine->parts[r];
        ls_shards_own(store->shards, parameter, store->slots[parameter].elements, r, &part->begin,
                      &part->end);
        part->begin *= sizeof *mine;
        part->end *= sizeof *mine;
    }
    return ls_comm_gather(engine->comm, mine, whole, engine->parts, 1, error);
}

/* This rank's part of an array, as the host can send it: the part itself, or a copy in `copy`,
 * which is to be freed. */
static int copies_own_part(const struct ls_engine *engine, int parameter, const float *array,
                           const float **part, float **copy, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &engine->store->slots[parameter];
    const struct ls_device_memory *memory = engine->device->memory;
    size_t bytes = (slot->shard_end - slot->shard_begin) * sizeof *array;
    *copy = NULL;
    *part = array;
    if (memory->host_memory || bytes == 0)
        return 0;
    *part = *copy = ls_alloc_aligned(bytes);
    return *copy == NULL ? ls_fail_memory(error, slot->parameter->name)
                         : memory->read(NULL, *copy, array, bytes, error);
}

/* An array whose parts lie with several ranks; the whole is for rank 0. */
static int copies_collect(const struct ls_engine *engine, int parameter, const float *array,
                          float *plain, struct ls_error *error)
{
    const struct ls_parameter *what = engine->store->slots[parameter].parameter;
    const bool direct = what->layout == &ls_layout_plain;
    const bool convert = engine->comm->rank == 0 && !direct;
    const size_t bytes = ls_parameter_bytes(what);
    struct ls_mirror whole = {0};
    const float *part;
    float *copy;
    int status = copies_own_part(engine, parameter, array, &part, &copy, error);
    if (status == 0 && convert)
        status = ls_mirror_create(&whole, engine->device->memory, bytes, what->name, error);
    status = ls_comm_agree(engine->comm, status, error);
    if (status == 0)
        status = copies_gather_parts(engine, parameter, part, direct ? plain : whole.host, error);
    if (status == 0) {
        if (convert)
            status = ls_mirror_write(&whole, 0, bytes, error);
        if (status == 0 && convert)
            status = engine->device->parameter_to_plain(what->layout, &what->shape, whole.device,
                                                        plain, error);
        status = ls_comm_agree(engine->comm, status, error);
    }
    ls_mirror_free(&whole);
    ls_free_aligned(copy);
    return status;
}

int ls_copies_read(const struct ls_engine *engine, int parameter, enum ls_store_array array,
                   float *plain, struct ls_error *error)
{
    const struct ls_parameter *what = engine->store->set->items[parameter];
    float *numbers;
    LS_TRY(ls_store_array(engine->store, parameter, array, &numbers, error));
    if (copies_factored(array))
        return copies_read_moments(engine, parameter, array, numbers, plain, error);
    if (ls_copies_in_parts(engine, parameter, array))
        return copies_collect(engine, parameter, numbers, plain, error);
    return engine->device->parameter_to_plain(what->layout, &what->shape, numbers, plain, error);
}

const float *ls_copies_plain(const struct ls_engine *engine, int parameter,
                             enum ls_store_array array)
{
    float *numbers;
    bool plain = engine->store->set->items[parameter]->layout == &ls_layout_plain &&
                 engine->device->memory->host_memory;
    if ((!plain && !copies_factored(array)) || ls_copies_in_parts(engine, parameter, array) ||
        ls_store_array(engine->store, parameter, array, &numbers, NULL) != 0)
        return NULL;
    return numbers;
}

/* ---- Gradients ------------------------------------------------------------------------------- */

/* From factors: all of it is here. */
static int copies_multiply_factors(const struct ls_store *store,
                                   const struct ls_parameter_state *slot, float *gradient,
                                   struct ls_error *error)
{
    struct ls_gradient_piece all = {.rows = 1, .columns = slot->elements};
    if (slot->parameter == slot->parameter->factoring.weight) {
        all.rows = (size_t)slot->parameter->shape.dim[0];
        all.columns = all.row = slot->elements / all.rows;
    }
    return ls_factors_gradient(store->factors, slot->parameter, &all, gradient, error);
}

/* From sums, of which each rank has its part; rank 0's whole goes to all. */
static int copies_gather_sums(const struct ls_engine *engine, int parameter,
                              const struct ls_mirror *gradient, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &engine->store->slots[parameter];
    const size_t bytes = ls_parameter_bytes(slot->parameter);
    const size_t count = slot->shard_end - slot->shard_begin;
    float *there = gradient->device, *here = gradient->host;
    if (count > 0)
        LS_TRY(ls_sums_read(engine->store->sums, parameter, slot->shard_begin, count,
                            there + slot->shard_begin, error));
    LS_TRY(ls_mirror_read(gradient, 0, bytes, error));
    LS_TRY(copies_gather_parts(engine, parameter, here + slot->shard_begin, here, error));
    LS_TRY(ls_comm_broadcast(engine->comm, here, bytes, error));
    return ls_mirror_write(gradient, 0, bytes, error);
}

int ls_copies_read_gradient(const struct ls_engine *engine, int parameter, float *plain,
                            struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    const struct ls_parameter *what = slot->parameter;
    struct ls_mirror gradient;
    int status = ls_mirror_create(&gradient, engine->device->memory, ls_parameter_bytes(what),
                                  "a gradient", error);
    status = ls_comm_agree(engine->comm, status, error);
    if (status == 0 && ls_store_has_factors(store, parameter) && store->factors != NULL)
        status = copies_multiply_factors(store, slot, gradient.device, error);
    else if (status == 0 && what->trained && store->sums != NULL)
        status = copies_gather_sums(engine, parameter, &gradient, error);
    if (status == 0)
        status = ls_store_clear_masked(store, parameter, 0, gradient.device, slot->elements, error);
    if (status == 0)
        status = engine->device->parameter_to_plain(what->layout, &what->shape, gradient.device,
                                                    plain, error);
    ls_mirror_free(&gradient);
    return status;
}

/* ---- Weights --------------------------------------------------------------------------------- */

int ls_copies_gather_weights(struct ls_engine *engine, struct ls_error *error)
{
    LS_TRY(ls_reducer_send_weights(engine->reducer, error));
    return ls_reducer_wait_all(engine->reducer, error);
}

/* Exchanges this rank's part of a parameter's weights and their average. */
static int copies_swap(const struct ls_engine *engine, size_t parameter, float *weights,
                       struct ls_error *error)
{
    const struct ls_parameter_state *slot = &engine->store->slots[parameter];
    size_t own = (slot->shard_end - slot->shard_begin) * sizeof *weights;
    return slot->average == NULL ? 0
                                 : engine->device->memory->swap(weights + slot->shard_begin,
                                                                slot->average, own, error);
}

int ls_copies_swap_average(struct ls_engine *engine, struct ls_error *error)
{
    float *const *weights;
    size_t swapped = 0, count = engine->store->set->count;
    int status = ls_store_all_weights(engine->store, &weights, error);
    while (status == 0 && swapped < count) {
        status = copies_swap(engine, swapped, weights[swapped], error);
        swapped += status == 0;
    }
    status = ls_comm_agree(engine->comm, status, error);
    if (status == 0)
        return ls_copies_gather_weights(engine, error);
    while (swapped-- > 0) /* the weights are what they were, as far as can be */
        (void)copies_swap(engine, swapped, weights[swapped], NULL);
    return status;
}
