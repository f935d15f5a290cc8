/* The ring of buffers: states, memory, and items that are found without a lock.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/ring.h"

#include <pthread.h>

#include "base/memory.h"
#include "support/support.h"

static void open_ring(struct ls_ring *ring, int buffers, size_t bytes)
{
    *ring = (struct ls_ring){.inputs = 2, .datasets = 1};
    for (int i = 0; i < buffers; i++)
        assert_int_equal(ls_ring_add(ring, bytes, NULL), 0);
    assert_int_equal(ls_ring_fix_first(ring, NULL), 0);
}

/* As a decoder does: claims a buffer for an item and makes it ready. */
static struct ls_ring_buffer *fill(struct ls_ring *ring, int64_t update, int index)
{
    struct ls_ring_buffer *buffer = ls_ring_find(ring, LS_RING_EMPTY);
    if (buffer == NULL)
        return NULL;
    buffer->item.update = update;
    buffer->item.index = index;
    buffer->generation = atomic_load(&ring->generation);
    ls_ring_set(ring, buffer, LS_RING_DECODING);
    ls_ring_set(ring, buffer, LS_RING_READY);
    return buffer;
}

static void items_are_grabbed_once(void **state)
{
    (void)state;
    struct ls_ring ring;
    open_ring(&ring, 3, 0);
    assert_int_equal(atomic_load(&ring.empty), 3);
    struct ls_ring_buffer *a = fill(&ring, 5, 1), *b = fill(&ring, 5, 2);
    assert_int_equal(atomic_load(&ring.empty), 1);
    assert_null(ls_ring_grab(&ring, 5, 0));
    assert_null(ls_ring_grab(&ring, 6, 1));
    assert_ptr_equal(ls_ring_of(&ring, 5, 2), b);
    assert_ptr_equal(ls_ring_grab(&ring, 5, 2), b);
    assert_null(ls_ring_grab(&ring, 5, 2));
    assert_int_equal(ls_ring_state(b), LS_RING_HELD);
    assert_ptr_equal(b->item.buffer, b);
    ls_ring_set(&ring, b, LS_RING_EMPTY);
    assert_ptr_equal(ls_ring_grab(&ring, 5, 1), a);
    assert_int_equal(atomic_load(&ring.empty), 2);
    ls_ring_free(&ring);
}

/* Of what is dropped READY and FAILED are EMPTY, and what is HELD or DECODING is found no more. */
static void dropped_items_are_not_found(void **state)
{
    (void)state;
    struct ls_ring ring;
    open_ring(&ring, 4, 0);
    struct ls_ring_buffer *ready = fill(&ring, 1, 0), *held = fill(&ring, 1, 1),
                          *failed = fill(&ring, 1, 2), *decoding = fill(&ring, 1, 3);
    assert_null(fill(&ring, 1, 4));
    ls_ring_set(&ring, failed, LS_RING_FAILED);
    ls_ring_set(&ring, decoding, LS_RING_DECODING);
    assert_ptr_equal(ls_ring_grab(&ring, 1, 1), held);
    ls_ring_drop(&ring);
    assert_int_equal(ls_ring_state(ready), LS_RING_EMPTY);
    assert_int_equal(ls_ring_state(failed), LS_RING_EMPTY);
    assert_int_equal(ls_ring_state(held), LS_RING_HELD);
    for (int i = 0; i < 4; i++) {
        assert_null(ls_ring_grab(&ring, 1, i));
        assert_null(ls_ring_of(&ring, 1, i));
    }
    ls_ring_set(&ring, decoding, LS_RING_READY); /* late: of the generation that was dropped */
    assert_null(ls_ring_grab(&ring, 1, 3));
    assert_non_null(fill(&ring, 1, 3));
    assert_non_null(ls_ring_grab(&ring, 1, 3));
    ls_ring_free(&ring);
}

static void inputs_are_aligned_and_grow(void **state)
{
    (void)state;
    struct ls_ring ring;
    open_ring(&ring, 1, 256);
    struct ls_ring_buffer *buffer = ring.buffers[0];
    const unsigned char *before = buffer->memory;
    assert_int_equal(ls_ring_fit(&ring, buffer, (size_t[]){65, 128}, 2, NULL), 0);
    assert_ptr_equal(buffer->memory, before);
    assert_ptr_equal(buffer->item.input[0], before);
    assert_ptr_equal(buffer->item.input[1], before + 128);
    assert_int_equal(ls_ring_fit(&ring, buffer, (size_t[]){1000, 1}, 2, NULL), 0);
    assert_int_equal(buffer->capacity, 1024 + 64);
    assert_int_equal((uintptr_t)buffer->item.input[1] % 64, 0);
    ls_ring_give_back(&ring);
    assert_null(buffer->memory);
    ls_ring_free(&ring);
}

/* Buffers in memory of others do not free it, and leave it where they need more. */
static void memory_can_be_shared(void **state)
{
    (void)state;
    struct ls_ring ring;
    open_ring(&ring, 3, 0);
    assert_int_equal(ls_ring_add(&ring, 64, NULL), 0); /* is none of the first */
    unsigned char *room = ls_alloc_aligned(3 * 128);
    assert_non_null(room);
    ls_ring_share(&ring, room, 128);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(ring.buffers[i]->memory, room + 128 * i);
    assert_int_equal(ring.buffers[3]->capacity, 64);
    assert_int_equal(ls_ring_fit(&ring, ring.buffers[1], (size_t[]){128, 1}, 2, NULL), 0);
    assert_false(ring.buffers[1]->shared);
    ls_ring_give_back(&ring);
    assert_null(ring.buffers[1]->memory);
    assert_ptr_equal(ring.buffers[2]->memory, room + 256);
    ls_ring_free(&ring);
    ls_free_aligned(room);
}

/* Several takers, each item goes to one of them. */
struct taker {
    struct ls_ring *ring;
    pthread_t thread;
    int taken;
};

enum { ITEMS = 2000, TAKERS = 3 };

static void *take_all(void *argument)
{
    struct taker *taker = argument;
    for (int i = 0; i < ITEMS; i++) {
        struct ls_ring_buffer *buffer = ls_ring_grab(taker->ring, 0, i);
        taker->taken += buffer != NULL && buffer->item.index == i;
    }
    return NULL;
}

static void takers_never_share_an_item(void **state)
{
    (void)state;
    struct ls_ring ring;
    struct taker takers[TAKERS] = {{0}};
    open_ring(&ring, ITEMS, 0);
    for (int i = 0; i < ITEMS; i++)
        assert_non_null(fill(&ring, 0, i));
    for (int t = 0; t < TAKERS; t++) {
        takers[t].ring = &ring;
        assert_int_equal(pthread_create(&takers[t].thread, NULL, take_all, &takers[t]), 0);
    }
    int taken = 0;
    for (int t = 0; t < TAKERS; t++) {
        pthread_join(takers[t].thread, NULL);
        taken += takers[t].taken;
    }
    assert_int_equal(taken, ITEMS);
    ls_ring_free(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_grabbed_once),
        cmocka_unit_test(dropped_items_are_not_found),
        cmocka_unit_test(inputs_are_aligned_and_grow),
        cmocka_unit_test(memory_can_be_shared),
        cmocka_unit_test(takers_never_share_an_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
