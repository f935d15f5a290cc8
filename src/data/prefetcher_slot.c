/* Memory of a prefetcher: slots, each with room for one micro-batch.
 *
 * Where all samples have one size, a slot has its memory from the beginning. Where they differ, it
 * grows to what its items need.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "data/prefetcher_inner.h"
#include "data/source.h"
#include "ir/dtype.h"

size_t ls_prefetch_slot_sample_bytes(const struct ls_prefetcher *prefetcher, int input,
                                     const int64_t shape[3])
{
    const struct ls_dataset *dataset = prefetcher->datasets[prefetcher->inputs[input][0]];
    if (!ls_dataset_varies(dataset))
        shape = ls_dataset_shape(dataset);
    return ls_dataset_tensor_bytes(dataset, prefetcher->inputs[input][1], shape);
}

/* Bytes of an input with `samples` samples, so that what follows it is aligned. */
static int input_bytes(const struct ls_prefetcher *prefetcher, int input, int64_t samples,
                       const int64_t shape[3], size_t *bytes, struct ls_error *error)
{
    int64_t all;
    size_t sample = ls_prefetch_slot_sample_bytes(prefetcher, input, shape);
    if (!ls_multiply(samples, (int64_t)sample, &all) || all > INT64_C(1) << 42)
        return ls_fail_memory(error, "a micro-batch");
    *bytes = ((size_t)all + 63) & ~(size_t)63;
    return 0;
}

int ls_prefetch_slot_bytes(const struct ls_prefetcher *prefetcher, size_t *bytes,
                           struct ls_error *error)
{
    int64_t samples = ls_batching_largest(&prefetcher->batching);
    if (samples > prefetcher->batching.batch)
        samples = prefetcher->batching.batch;
    *bytes = 0;
    for (int i = 0; i < prefetcher->input_count; i++) {
        size_t input = 0;
        const int64_t *largest =
            ls_dataset_largest_shape(prefetcher->datasets[prefetcher->inputs[i][0]]);
        LS_TRY(input_bytes(prefetcher, i, samples, largest, &input, error));
        *bytes += input;
    }
    return 0;
}

static int grow(struct ls_prefetch_slot *slot, size_t bytes, struct ls_error *error)
{
    if (slot->memory != NULL && bytes <= slot->capacity)
        return 0;
    if (!slot->in_room)
        ls_free_aligned(slot->memory);
    slot->in_room = false;
    slot->capacity = 0;
    slot->memory = ls_alloc_aligned(bytes);
    if (slot->memory == NULL)
        return ls_fail_memory(error, "decoded data");
    slot->capacity = bytes;
    return 0;
}

int ls_prefetch_slot_fit(const struct ls_prefetcher *prefetcher, struct ls_prefetch_slot *slot,
                         struct ls_error *error)
{
    size_t all = 0, bytes = 0;
    for (int i = 0; i < prefetcher->input_count; i++) {
        LS_TRY(input_bytes(prefetcher, i, slot->item.samples, slot->item.shape, &bytes, error));
        all += bytes;
    }
    LS_TRY(grow(slot, all, error));
    all = 0;
    for (int i = 0; i < prefetcher->input_count; i++) {
        slot->item.input[i] = slot->memory + all;
        LS_TRY(input_bytes(prefetcher, i, slot->item.samples, slot->item.shape, &bytes, error));
        all += bytes;
    }
    return 0;
}

int ls_prefetch_slot_add(struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    size_t bytes;
    LS_TRY(ls_prefetch_slot_bytes(prefetcher, &bytes, error));
    struct ls_prefetch_slot *slot = ls_alloc(1, sizeof *slot);
    if (slot == NULL)
        return ls_fail_memory(error, "decoded data");
    slot->item.input = ls_alloc((size_t)prefetcher->input_count + 1, sizeof *slot->item.input);
    slot->item.digests =
        ls_alloc((size_t)prefetcher->dataset_count + 1, sizeof *slot->item.digests);
    bool made = slot->item.input != NULL && slot->item.digests != NULL;
    int status = !made ? ls_fail_memory(error, "decoded data") : 0;
    bool own = prefetcher->room == NULL ||
               prefetcher->fast_count > 0; /* the first slots are in the room */
    if (status == 0 && prefetcher->batching.size_of == NULL && own)
        status = grow(slot, bytes, error);
    if (status == 0 &&
        !LS_GROW(prefetcher->slots, prefetcher->slot_count, prefetcher->slot_capacity))
        status = ls_fail_memory(error, "decoded data");
    if (status != 0) {
        ls_prefetch_slot_free(slot);
        return status;
    }
    atomic_fetch_add(&prefetcher->empty, 1);
    prefetcher->slots[prefetcher->slot_count++] = slot;
    return 0;
}

int ls_prefetch_slot_reserve(struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    struct ls_prefetch_memory *room = prefetcher->room;
    size_t bytes;
    if (room == NULL || prefetcher->batching.size_of != NULL)
        return 0;
    LS_TRY(ls_prefetch_slot_bytes(prefetcher, &bytes, error));
    bytes *= (size_t)prefetcher->fast_count; /* no more than there was memory for, or 4096 */
    if (bytes <= room->bytes)
        return 0;
    unsigned char *larger = ls_alloc_aligned(bytes);
    if (larger == NULL)
        return ls_fail_memory(error, "decoded data");
    ls_prefetcher_pause(room->user);
    ls_prefetch_memory_free(room);
    room->memory = larger;
    room->bytes = bytes;
    return 0;
}

void ls_prefetch_slot_enter_room(struct ls_prefetcher *prefetcher)
{
    size_t bytes = 0;
    if (prefetcher->room == NULL || prefetcher->batching.size_of != NULL)
        return;
    (void)ls_prefetch_slot_bytes(prefetcher, &bytes,
                                 NULL); /* known since the prefetcher was opened */
    for (int i = 0; i < prefetcher->fast_count; i++) {
        struct ls_prefetch_slot *slot = prefetcher->fast[i];
        slot->memory = prefetcher->room->memory + bytes * (size_t)i;
        slot->capacity = bytes;
        slot->in_room = true;
    }
}

void ls_prefetch_slot_give_back(struct ls_prefetcher *prefetcher)
{
    for (int i = 0; i < prefetcher->slot_count && prefetcher->batching.size_of != NULL; i++) {
        struct ls_prefetch_slot *slot = prefetcher->slots[i];
        ls_free_aligned(slot->memory);
        slot->memory = NULL;
        slot->capacity = 0;
    }
}

void ls_prefetch_slot_free(struct ls_prefetch_slot *slot)
{
    if (!slot->in_room)
        ls_free_aligned(slot->memory);
    ls_free(slot->item.input);
    ls_free(slot->item.digests);
    ls_free(slot->error);
    ls_free(slot);
}

uint64_t ls_prefetch_slot_word(enum ls_prefetch_slot_state state, uint64_t generation,
                               int64_t update, int index)
{
    enum { STATE_BITS = 3, GENERATION_BITS = 8, UPDATE_BITS = 24, INDEX_BITS = 29 };
    uint64_t word = (uint64_t)index & ((1U << INDEX_BITS) - 1);
    word = word << UPDATE_BITS | ((uint64_t)update & ((1U << UPDATE_BITS) - 1));
    word = word << GENERATION_BITS | (generation & ((1U << GENERATION_BITS) - 1));
    return word << STATE_BITS | (uint64_t)state;
}

enum ls_prefetch_slot_state ls_prefetch_slot_state(const struct ls_prefetch_slot *slot)
{
    return (enum ls_prefetch_slot_state)(atomic_load(&slot->word) % LS_PREFETCH_SLOT_STATES);
}

void ls_prefetch_slot_set(struct ls_prefetcher *prefetcher, struct ls_prefetch_slot *slot,
                          enum ls_prefetch_slot_state state)
{
    enum ls_prefetch_slot_state before = ls_prefetch_slot_state(slot);
    atomic_store(&slot->word, ls_prefetch_slot_word(state, slot->generation, slot->item.update,
                                                    slot->item.index));
    int more = (state == EMPTY) - (before == EMPTY);
    if (more != 0)
        atomic_fetch_add(&prefetcher->empty, more);
}

struct ls_prefetch_slot *ls_prefetch_slot_grab(struct ls_prefetcher *prefetcher, int64_t update,
                                               int index)
{
    uint64_t ready =
        ls_prefetch_slot_word(READY, atomic_load(&prefetcher->generation), update, index);
    uint64_t held = ready - READY + HELD;
    int start = atomic_load_explicit(&prefetcher->hint, memory_order_relaxed);
    for (int i = 0; i < prefetcher->fast_count; i++) {
        int at = (start + i) % prefetcher->fast_count;
        struct ls_prefetch_slot *slot = prefetcher->fast[at];
        uint64_t expected = ready;
        if (atomic_load_explicit(&slot->word, memory_order_relaxed) != ready ||
            !atomic_compare_exchange_strong(&slot->word, &expected, held))
            continue;
        atomic_store_explicit(&prefetcher->hint, (at + 1) % prefetcher->fast_count,
                              memory_order_relaxed);
        return slot;
    }
    return NULL;
}

struct ls_prefetch_slot *ls_prefetch_slot_in_state(const struct ls_prefetcher *prefetcher,
                                                   enum ls_prefetch_slot_state state)
{
    for (int i = 0; i < prefetcher->slot_count; i++)
        if (ls_prefetch_slot_state(prefetcher->slots[i]) == state)
            return prefetcher->slots[i];
    return NULL;
}

struct ls_prefetch_slot *ls_prefetch_slot_of(const struct ls_prefetcher *prefetcher, int64_t update,
                                             int index)
{
    for (int i = 0; i < prefetcher->slot_count; i++) {
        struct ls_prefetch_slot *slot = prefetcher->slots[i];
        if (ls_prefetch_slot_state(slot) != EMPTY && slot->generation == prefetcher->generation &&
            slot->item.update == update && slot->item.index == index)
            return slot;
    }
    return NULL;
}
