/* A ring of buffers; see the header.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/ring.h"

#include "base/align.h"
#include "base/memory.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static void free_buffer(struct ls_ring_buffer *buffer)
{
    ls_pinned_free(&buffer->own);
    ls_free((void *)buffer->item.input);
    ls_free(buffer->item.digests);
    ls_free(buffer->error);
    ls_free(buffer);
}

static int grow(const struct ls_ring *ring, struct ls_ring_buffer *buffer, size_t bytes,
                struct ls_error *error)
{
    if (buffer->memory != NULL && bytes <= buffer->capacity)
        return 0;
    ls_pinned_free(&buffer->own);
    buffer->shared = false;
    buffer->capacity = 0;
    buffer->memory = NULL;
    if (!ls_pinned_create(&buffer->own, ring->pinning, bytes))
        return ls_fail_memory(error, "decoded data");
    buffer->memory = buffer->own.memory;
    buffer->capacity = bytes;
    return 0;
}

int ls_ring_add(struct ls_ring *ring, size_t bytes, struct ls_error *error)
{
    struct ls_ring_buffer *buffer = ls_alloc(1, sizeof *buffer);
    if (buffer == NULL)
        return ls_fail_memory(error, "decoded data");
    buffer->item.buffer = buffer;
    buffer->item.input = ls_alloc((size_t)ring->inputs + 1, sizeof *buffer->item.input);
    buffer->item.digests = ls_alloc((size_t)ring->datasets + 1, sizeof *buffer->item.digests);
    bool made = buffer->item.input != NULL && buffer->item.digests != NULL;
    int status = made ? 0 : ls_fail_memory(error, "decoded data");
    if (status == 0 && bytes > 0)
        status = grow(ring, buffer, bytes, error);
    if (status == 0 && !LS_GROW(ring->buffers, ring->count, ring->capacity))
        status = ls_fail_memory(error, "decoded data");
    if (status != 0) {
        free_buffer(buffer);
        return status;
    }
    atomic_fetch_add(&ring->empty, 1);
    ring->buffers[ring->count++] = buffer;
    return 0;
}

int ls_ring_fix_first(struct ls_ring *ring, struct ls_error *error)
{
    ring->first = ls_alloc((size_t)ring->count, sizeof *ring->first);
    if (ring->first == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    for (int i = 0; i < ring->count; i++)
        ring->first[i] = ring->buffers[i];
    ring->first_count = ring->count;
    return 0;
}

void ls_ring_free(struct ls_ring *ring)
{
    for (int i = 0; i < ring->count; i++)
        free_buffer(ring->buffers[i]);
    ls_free((void *)ring->first);
    ls_free((void *)ring->buffers);
}

void ls_ring_share(struct ls_ring *ring, unsigned char *memory, size_t bytes)
{
    for (int i = 0; i < ring->first_count; i++) {
        struct ls_ring_buffer *buffer = ring->first[i];
        ls_pinned_free(&buffer->own);
        buffer->memory = memory + bytes * (size_t)i;
        buffer->capacity = bytes;
        buffer->shared = true;
    }
}

void ls_ring_give_back(struct ls_ring *ring)
{
    for (int i = 0; i < ring->count; i++) {
        struct ls_ring_buffer *buffer = ring->buffers[i];
        if (buffer->shared)
            continue;
        ls_pinned_free(&buffer->own);
        buffer->memory = NULL;
        buffer->capacity = 0;
    }
}

int ls_ring_fit(const struct ls_ring *ring, struct ls_ring_buffer *buffer, const size_t *bytes,
                int inputs, struct ls_error *error)
{
    size_t all = 0;
    for (int i = 0; i < inputs; i++)
        all += ls_align(bytes[i]);
    LS_TRY(grow(ring, buffer, all, error));
    all = 0;
    for (int i = 0; i < inputs; i++) {
        buffer->item.input[i] = buffer->memory + all;
        all += ls_align(bytes[i]);
    }
    return 0;
}

/* ---- States ---------------------------------------------------------------------------------- */

/* State, generation, update and index of a buffer. Of the last three there are the lower bits,
 * which tell apart all that can be in buffers at one time. */
static uint64_t ring_word(enum ls_ring_state state, uint64_t generation, int64_t update, int index)
{
    enum { STATE_BITS = 3, GENERATION_BITS = 8, UPDATE_BITS = 24, INDEX_BITS = 29 };
    uint64_t word = (uint64_t)index & ((1U << INDEX_BITS) - 1);
    word = word << UPDATE_BITS | ((uint64_t)update & ((1U << UPDATE_BITS) - 1));
    word = word << GENERATION_BITS | (generation & ((1U << GENERATION_BITS) - 1));
    return word << STATE_BITS | (uint64_t)state;
}

enum ls_ring_state ls_ring_state(const struct ls_ring_buffer *buffer)
{
    return (enum ls_ring_state)(atomic_load(&buffer->word) % LS_RING_STATES);
}

void ls_ring_set(struct ls_ring *ring, struct ls_ring_buffer *buffer, enum ls_ring_state state)
{
    enum ls_ring_state before = ls_ring_state(buffer);
    atomic_store(&buffer->word,
                 ring_word(state, buffer->generation, buffer->item.update, buffer->item.index));
    int more = (state == LS_RING_EMPTY) - (before == LS_RING_EMPTY);
    if (more != 0)
        atomic_fetch_add(&ring->empty, more);
}

void ls_ring_drop(struct ls_ring *ring)
{
    atomic_fetch_add(&ring->generation, 1);
    for (int i = 0; i < ring->count; i++) {
        enum ls_ring_state state = ls_ring_state(ring->buffers[i]);
        if (state == LS_RING_READY || state == LS_RING_FAILED)
            ls_ring_set(ring, ring->buffers[i], LS_RING_EMPTY);
    }
}

struct ls_ring_buffer *ls_ring_find(const struct ls_ring *ring, enum ls_ring_state state)
{
    for (int i = 0; i < ring->count; i++)
        if (ls_ring_state(ring->buffers[i]) == state)
            return ring->buffers[i];
    return NULL;
}

struct ls_ring_buffer *ls_ring_of(const struct ls_ring *ring, int64_t update, int index)
{
    for (int i = 0; i < ring->count; i++) {
        struct ls_ring_buffer *buffer = ring->buffers[i];
        if (ls_ring_state(buffer) != LS_RING_EMPTY &&
            buffer->generation == atomic_load(&ring->generation) && buffer->item.update == update &&
            buffer->item.index == index)
            return buffer;
    }
    return NULL;
}

struct ls_ring_buffer *ls_ring_grab(struct ls_ring *ring, int64_t update, int index)
{
    uint64_t ready = ring_word(LS_RING_READY, atomic_load(&ring->generation), update, index);
    uint64_t held = ready - LS_RING_READY + LS_RING_HELD;
    int start = atomic_load_explicit(&ring->hint, memory_order_relaxed);
    for (int i = 0; i < ring->first_count; i++) {
        int at = (start + i) % ring->first_count;
        struct ls_ring_buffer *buffer = ring->first[at];
        uint64_t expected = ready;
        if (atomic_load_explicit(&buffer->word, memory_order_relaxed) != ready ||
            !atomic_compare_exchange_strong(&buffer->word, &expected, held))
            continue;
        atomic_store_explicit(&ring->hint, (at + 1) % ring->first_count, memory_order_relaxed);
        return buffer;
    }
    return NULL;
}
