/* Copies of a store's arrays, into it and out of it. See engine/store.h.
 *
 * History and averages lie with the ranks that update them. To read such an array whole, rank 0
 * collects the parts: all ranks call ls_store_read for the same arrays in the same order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "engine/store.h"
#include "engine/reducer.h"
#include "transport/comm.h"

/* ---- Owners ---------------------------------------------------------------------------------- */

int ls_store_learn_owners(struct ls_store *store, struct ls_error *error)
{
    size_t count = store->set->count;
    store->owned = ls_alloc((count + 1) * (size_t)store->comm->size, sizeof *store->owned);
    if (store->owned == NULL)
        return ls_fail_memory(error, "parameters");
    for (int r = 0; r < store->comm->size; r++)
        for (size_t i = 0; i < count; i++) {
            struct ls_range *part = &store->owned[(size_t)r * (count + 1) + i];
            ls_shards_own(store->shards, (int)i, store->slots[i].elements, r, &part->begin,
                          &part->end);
            part->begin *= ls_dtype_size(LS_F32);
            part->end *= ls_dtype_size(LS_F32);
        }
    return 0;
}

static bool copies_whole_here(const struct ls_parameter_state *slot)
{
    return slot->shard_begin == 0 && slot->shard_end == slot->elements;
}

bool ls_store_is_shared_out(const struct ls_store *store, int parameter, enum ls_store_array array)
{
    if (array == LS_WEIGHTS || store->owned == NULL) /* nothing is trained */
        return false;
    const struct ls_range *first = store->owned + parameter; /* what rank 0 has */
    return first->begin > 0 || first->end < ls_parameter_bytes(store->slots[parameter].parameter);
}

static float *copies_array_of(const struct ls_store *store, int parameter,
                              enum ls_store_array array)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
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

/* ---- Out ------------------------------------------------------------------------------------- */

/* An array whose parts lie with several ranks; the whole is for rank 0. */
static int copies_collect(const struct ls_store *store, int parameter, enum ls_store_array array,
                          float *plain, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
    const struct ls_parameter *what = slot->parameter;
    float *whole = NULL, *own = NULL;
    int status = 0;
    if (store->comm->rank == 0 && what->layout == &ls_layout_plain)
        whole = plain;
    else if (store->comm->rank == 0)
        whole = own = ls_alloc_aligned(slot->elements * sizeof *own);
    if (store->comm->rank == 0 && whole == NULL)
        status = ls_fail_memory(error, what->name);
    status = ls_comm_agree(store->comm, status, error);
    if (status == 0)
        status = ls_comm_gather(store->comm, copies_array_of(store, parameter, array), whole,
                                store->owned + parameter, store->set->count + 1, error);
    if (status == 0) {
        if (own != NULL)
            status =
                store->device->parameter_to_plain(what->layout, &what->shape, own, plain, error);
        status = ls_comm_agree(store->comm, status, error);
    }
    ls_free_aligned(own);
    return status;
}

int ls_store_read(const struct ls_store *store, int parameter, enum ls_store_array array,
                  float *plain, struct ls_error *error)
{
    const struct ls_parameter *what = store->set->items[parameter];
    LS_TRY(ls_reducer_wait_all(store->reducer, error)); /* weights may be on their way */
    if (ls_store_is_shared_out(store, parameter, array))
        return copies_collect(store, parameter, array, plain, error);
    return store->device->parameter_to_plain(
        what->layout, &what->shape, copies_array_of(store, parameter, array), plain, error);
}

const float *ls_store_plain(const struct ls_store *store, int parameter, enum ls_store_array array)
{
    bool plain = store->set->items[parameter]->layout == &ls_layout_plain;
    return plain && !ls_store_is_shared_out(store, parameter, array)
               ? copies_array_of(store, parameter, array)
               : NULL;
}

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
static int copies_gather_sums(const struct ls_store *store, int parameter, float *gradient,
                              struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
    float *own = gradient + slot->shard_begin;
    if (slot->shard_end > slot->shard_begin)
        ls_sums_read(store->sums, parameter, slot->shard_begin, slot->shard_end - slot->shard_begin,
                     own);
    if (store->comm->size == 1)
        return 0;
    LS_TRY(ls_comm_gather(store->comm, own, gradient, store->owned + parameter,
                          store->set->count + 1, error));
    return ls_comm_broadcast(store->comm, gradient, slot->elements * sizeof *gradient, error);
}

int ls_store_read_gradient(const struct ls_store *store, int parameter, float *plain,
                           struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
    float *gradient = ls_alloc_aligned(slot->elements * sizeof *gradient);
    int status = gradient == NULL ? ls_fail_memory(error, "a gradient") : 0;
    status = ls_comm_agree(store->comm, status, error);
    if (status == 0 && ls_store_has_factors(store, parameter) && store->factors != NULL)
        copies_multiply_factors(store, slot, gradient);
    else if (status == 0 && slot->parameter->trained && store->sums != NULL)
        status = copies_gather_sums(store, parameter, gradient, error);
    if (status == 0)
        status = store->device->parameter_to_plain(slot->parameter->layout, &slot->parameter->shape,
                                                   gradient, plain, error);
    ls_free_aligned(gradient);
    return status;
}

/* ---- In -------------------------------------------------------------------------------------- */

int ls_store_write(struct ls_store *store, int parameter, enum ls_store_array array,
                   const float *plain, struct ls_error *error)
{
    const struct ls_parameter_state *slot = &store->slots[parameter];
    const struct ls_parameter *what = slot->parameter;
    float *into = copies_array_of(store, parameter, array);
    LS_TRY(ls_reducer_wait_all(store->reducer, error));
    if (array == LS_WEIGHTS || copies_whole_here(slot))
        return store->device->parameter_from_plain(what->layout, &what->shape, plain, into, error);
    size_t own = slot->shard_end - slot->shard_begin;
    float *whole = ls_alloc_aligned(slot->elements * sizeof *whole);
    if (whole == NULL)
        return ls_fail_memory(error, what->name);
    int status =
        store->device->parameter_from_plain(what->layout, &what->shape, plain, whole, error);
    if (status == 0 && own > 0)
        memcpy(into, whole + slot->shard_begin, own * sizeof *into);
    ls_free_aligned(whole);
    return status;
}

int ls_store_swap_average(struct ls_store *store, struct ls_error *error)
{
    LS_TRY(ls_reducer_wait_all(store->reducer, error));
    for (size_t i = 0; i < store->set->count; i++) {
        struct ls_parameter_state *slot = &store->slots[i];
        float *weights = slot->weights + slot->shard_begin;
        for (size_t e = 0; slot->average != NULL && e < slot->shard_end - slot->shard_begin; e++) {
            float weight = weights[e];
            weights[e] = slot->average[e];
            slot->average[e] = weight;
        }
    }
    return ls_store_gather_weights(store, error);
}
