/* Copies of what is learned. See engine/copies.h.
 *
 * To read an array whose parts lie with several ranks, rank 0 collects the parts: all ranks call
 * ls_copies_read for the same arrays in the same order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/copies.h"

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

/* An array whose parts lie with several ranks; the whole is for rank 0. */
static int copies_collect(const struct ls_engine *engine, int parameter, const float *mine,
                          float *plain, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &engine->store->slots[parameter];
    const struct ls_parameter *what = slot->parameter;
    const bool first = engine->comm->rank == 0, direct = what->layout == &ls_layout_plain;
    float *own = first && !direct ? ls_alloc_aligned(slot->elements * sizeof *own) : NULL;
    int status = first && !direct && own == NULL ? ls_fail_memory(error, what->name) : 0;
    status = ls_comm_agree(engine->comm, status, error);
    if (status == 0)
        status = copies_gather_parts(engine, parameter, mine, direct ? plain : own, error);
    if (status == 0) {
        if (own != NULL)
            status =
                engine->device->parameter_to_plain(what->layout, &what->shape, own, plain, error);
        status = ls_comm_agree(engine->comm, status, error);
    }
    ls_free_aligned(own);
    return status;
}

int ls_copies_read(const struct ls_engine *engine, int parameter, enum ls_store_array array,
                   float *plain, struct ls_error *error)
{
    const struct ls_parameter *what = engine->store->set->items[parameter];
    float *numbers;
    LS_TRY(ls_store_array(engine->store, parameter, array, &numbers, error));
    if (ls_copies_in_parts(engine, parameter, array))
        return copies_collect(engine, parameter, numbers, plain, error);
    return engine->device->parameter_to_plain(what->layout, &what->shape, numbers, plain, error);
}

const float *ls_copies_plain(const struct ls_engine *engine, int parameter,
                             enum ls_store_array array)
{
    float *numbers;
    bool plain = engine->store->set->items[parameter]->layout == &ls_layout_plain;
    if (!plain || ls_copies_in_parts(engine, parameter, array) ||
        ls_store_array(engine->store, parameter, array, &numbers, NULL) != 0)
        return NULL;
    return numbers;
}

/* ---- Gradients ------------------------------------------------------------------------------- */

/* From factors: all of it is here. */
static void copies_multiply_factors(const struct ls_store *store,
                                    const struct ls_parameter_state *slot, float *gradient)
{
    struct ls_gradient_piece all = {.rows = 1, .columns = slot->elements};
    if (slot->parameter == slot->parameter->factoring.weight) {
        all.rows = (size_t)slot->parameter->shape.dim[0];
        all.columns = slot->elements / all.rows;
    }
    ls_factors_gradient(store->factors, slot->parameter, &all, gradient);
}

/* From sums, of which each rank has its part; rank 0's whole goes to all. */
static int copies_gather_sums(const struct ls_engine *engine, int parameter, float *gradient,
                              struct ls_error *error)
{
    const struct ls_parameter_state *slot = &engine->store->slots[parameter];
    float *own = gradient + slot->shard_begin;
    if (slot->shard_end > slot->shard_begin)
        ls_sums_read(engine->store->sums, parameter, slot->shard_begin,
                     slot->shard_end - slot->shard_begin, own);
    LS_TRY(copies_gather_parts(engine, parameter, own, gradient, error));
    return ls_comm_broadcast(engine->comm, gradient, slot->elements * sizeof *gradient, error);
}

int ls_copies_read_gradient(const struct ls_engine *engine, int parameter, float *plain,
                            struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    const struct ls_parameter_state *slot = &store->slots[parameter];
    float *gradient = ls_alloc_aligned(slot->elements * sizeof *gradient);
    int status = gradient == NULL ? ls_fail_memory(error, "a gradient") : 0;
    status = ls_comm_agree(engine->comm, status, error);
    if (status == 0 && ls_store_has_factors(store, parameter) && store->factors != NULL)
        copies_multiply_factors(store, slot, gradient);
    else if (status == 0 && slot->parameter->trained && store->sums != NULL)
        status = copies_gather_sums(engine, parameter, gradient, error);
    if (status == 0)
        status = store->device->parameter_to_plain(slot->parameter->layout, &slot->parameter->shape,
                                                   gradient, plain, error);
    ls_free_aligned(gradient);
    return status;
}

/* ---- Weights --------------------------------------------------------------------------------- */

int ls_copies_gather_weights(struct ls_engine *engine, struct ls_error *error)
{
    LS_TRY(ls_reducer_send_weights(engine->reducer, error));
    return ls_reducer_wait_all(engine->reducer, error);
}

int ls_copies_swap_average(struct ls_engine *engine, struct ls_error *error)
{
    float *const *weights;
    LS_TRY(ls_store_all_weights(engine->store, &weights, error));
    for (size_t i = 0; i < engine->store->set->count; i++) {
        struct ls_parameter_state *slot = &engine->store->slots[i];
        float *own = weights[i] + slot->shard_begin;
        for (size_t e = 0; slot->average != NULL && e < slot->shard_end - slot->shard_begin; e++) {
            float weight = own[e];
            own[e] = slot->average[e];
            slot->average[e] = weight;
        }
    }
    return ls_copies_gather_weights(engine, error);
}
