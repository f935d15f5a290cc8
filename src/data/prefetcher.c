/* The prefetcher: threads that decode micro-batches in the order in which they will be wanted.
 * Opening, closing, and what workers call.
 *
 * A decoding thread claims the next micro-batch of the sequence when it finds an EMPTY slot. Claims
 * are made in the order of the sequence, so what is wanted first is there first, whatever the
 * threads' speed. What an item holds depends on its number only; the threads change nothing but
 * when it is there.
 *
 * It cannot lock up: a taker that waits for an unclaimed item, while no slot is EMPTY or
 * DECODING (all are held or will be taken by others), adds a slot. So a net whose workers hold all
 * micro-batches of a batch at once gets as many slots as that needs, beyond the memory limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/prefetcher.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/prefetcher_inner.h"

/* ---- Opening and closing ---- */

static int copy_options(const struct ls_prefetcher_options *options,
                        struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    size_t inputs = (size_t)options->input_count;
    size_t datasets = (size_t)options->dataset_count;
    prefetcher->batching = options->batching;
    prefetcher->share = options->share;
    prefetcher->updates_end = options->updates_end;
    prefetcher->room = options->room;
    prefetcher->dataset_count = options->dataset_count;
    prefetcher->input_count = options->input_count;
    prefetcher->datasets = ls_alloc(datasets, sizeof *prefetcher->datasets);
    prefetcher->inputs = ls_alloc(inputs, sizeof *prefetcher->inputs);
    if (prefetcher->datasets == NULL || prefetcher->inputs == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    for (size_t i = 0; i < inputs; i++) {
        int dataset = options->inputs[i][0], tensor = options->inputs[i][1];
        if (tensor < 0 || tensor >= ls_dataset_tensors(options->datasets[dataset]))
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "tensor %d of a sample was asked for", tensor);
        prefetcher->inputs[i][0] = dataset;
        prefetcher->inputs[i][1] = tensor;
    }
    for (size_t i = 0; i < datasets; i++) {
        prefetcher->datasets[i] = options->datasets[i];
        if (ls_dataset_varies(prefetcher->datasets[i]) && prefetcher->batching.size_of == NULL)
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "samples vary in size, and the source reports no sizes");
    }
    return 0;
}

/* How many slots: what the budget allows (by default the `prefetch` batches of the data sets, at
 * most 256 MiB), at least two and one more than threads. */
static int slot_target(const struct ls_prefetcher *prefetcher, size_t memory, int *target,
                       struct ls_error *error)
{
    size_t slot;
    LS_TRY(ls_prefetch_slot_bytes(prefetcher, &slot, error));
    int64_t prefetch = 1;
    for (int i = 0; i < prefetcher->dataset_count; i++)
        if (ls_dataset_prefetch(prefetcher->datasets[i]) > prefetch)
            prefetch = ls_dataset_prefetch(prefetcher->datasets[i]);
    int64_t per_batch = ls_share_most(
        &prefetcher->share, ls_batching_most(&prefetcher->batching, prefetcher->batching.batch));
    int64_t slots = (int64_t)((memory > 0 ? memory : (size_t)256 << 20) / (slot + 1));
    if (memory == 0 && slots / prefetch > per_batch)
        slots = prefetch * per_batch;
    int64_t least = prefetcher->decoder_count + 1;
    slots = slots < least ? least : slots;
    *target = slots > 4096 ? 4096 : (int)slots;
    return 0;
}

static int default_threads(const struct ls_prefetcher *prefetcher)
{
    int cores = ls_cpu_count();
    for (int i = 0; i < prefetcher->dataset_count; i++)
        if (ls_dataset_encoded(prefetcher->datasets[i]))
            return cores > 32 ? 32 : cores;
    return 1 + cores / 8;
}

/* The slots that takers look through without the lock: those that there are now. */
static int note_slots(struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    prefetcher->fast = ls_alloc((size_t)prefetcher->slot_count, sizeof *prefetcher->fast);
    if (prefetcher->fast == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    for (int i = 0; i < prefetcher->slot_count; i++)
        prefetcher->fast[i] = prefetcher->slots[i];
    prefetcher->fast_count = prefetcher->slot_count;
    prefetcher->enough = (prefetcher->slot_count + 1) / 2;
    return 0;
}

static int start(const struct ls_prefetcher_options *options, struct ls_prefetcher *prefetcher,
                 struct ls_error *error)
{
    LS_TRY(ls_batching_check(&options->batching, "data", error));
    LS_TRY(copy_options(options, prefetcher, error));
    LS_TRY(ls_position_open(prefetcher, error));
    int threads = options->threads > 0 ? options->threads : default_threads(prefetcher);
    prefetcher->decoders = ls_alloc((size_t)threads, sizeof *prefetcher->decoders);
    if (prefetcher->decoders == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    prefetcher->decoder_count = threads;
    int slots;
    LS_TRY(slot_target(prefetcher, options->memory, &slots, error));
    for (; slots > 0; slots--)
        LS_TRY(ls_prefetch_slot_add(prefetcher, error));
    LS_TRY(note_slots(prefetcher, error));
    LS_TRY(ls_prefetch_slot_reserve(prefetcher, error));
    for (int i = 0; i < threads; i++)
        LS_TRY(ls_decoder_start(prefetcher, &prefetcher->decoders[i], error));
    return 0;
}

/* Of a decoder: its stack, what its library for pictures and its heap keep, and the record that is
 * being decoded. */
enum { DECODER_BYTES = 256 << 10 };

static size_t decoder_bytes(const struct ls_prefetcher *prefetcher)
{
    size_t bytes = DECODER_BYTES;
    for (int d = 0; d < prefetcher->dataset_count; d++)
        bytes += ls_dataset_decode_bytes(prefetcher->datasets[d]);
    return bytes;
}

int ls_prefetcher_bytes(const struct ls_prefetcher_options *options, size_t *samples,
                        size_t *threads, struct ls_error *error)
{
    struct ls_prefetcher prefetcher = {.decoder_count = options->threads};
    size_t slot = 0;
    int slots = 0;
    int status = copy_options(options, &prefetcher, error);
    if (status == 0 && prefetcher.decoder_count == 0)
        prefetcher.decoder_count = default_threads(&prefetcher);
    if (status == 0)
        status = slot_target(&prefetcher, options->memory, &slots, error);
    if (status == 0)
        status = ls_prefetch_slot_bytes(&prefetcher, &slot, error);
    *samples = slot * (size_t)slots;
    *threads = status == 0 ? (size_t)prefetcher.decoder_count * decoder_bytes(&prefetcher) : 0;
    ls_free(prefetcher.datasets);
    ls_free(prefetcher.inputs);
    return status;
}

int ls_prefetcher_open(const struct ls_prefetcher_options *options,
                       struct ls_prefetcher **prefetcher, struct ls_error *error)
{
    *prefetcher = NULL;
    struct ls_prefetcher *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->done, NULL);
    int status = start(options, made, error);
    if (status != 0) {
        ls_prefetcher_close(made);
        return status;
    }
    *prefetcher = made;
    return 0;
}

void ls_prefetcher_close(struct ls_prefetcher *prefetcher)
{
    if (prefetcher == NULL)
        return;
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->stop = true;
    pthread_cond_broadcast(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
    for (int i = 0; i < prefetcher->decoder_count; i++)
        ls_decoder_join(prefetcher, &prefetcher->decoders[i]);
    if (prefetcher->room != NULL && prefetcher->room->user == prefetcher)
        prefetcher->room->user = NULL;
    for (int i = 0; i < prefetcher->slot_count; i++)
        ls_prefetch_slot_free(prefetcher->slots[i]);
    ls_position_close(prefetcher);
    ls_free((void *)prefetcher->fast);
    ls_free(prefetcher->slots);
    ls_free(prefetcher->decoders);
    ls_free(prefetcher->datasets);
    ls_free(prefetcher->inputs);
    pthread_cond_destroy(&prefetcher->work);
    pthread_cond_destroy(&prefetcher->done);
    pthread_mutex_destroy(&prefetcher->lock);
    ls_free(prefetcher);
}

/* ---- What workers call ---- */

/* With the lock held: nothing that was decoded is handed out any more. */
static void drop_items(struct ls_prefetcher *prefetcher)
{
    atomic_fetch_add(&prefetcher->generation, 1);
    for (int i = 0; i < prefetcher->slot_count; i++) {
        enum ls_prefetch_slot_state state = ls_prefetch_slot_state(prefetcher->slots[i]);
        if (state == READY || state == FAILED)
            ls_prefetch_slot_set(prefetcher, prefetcher->slots[i], EMPTY);
    }
}

void ls_prefetch_memory_free(struct ls_prefetch_memory *room)
{
    ls_free_aligned(room->memory);
    *room = (struct ls_prefetch_memory){0};
}

void ls_prefetcher_pause(struct ls_prefetcher *prefetcher)
{
    if (prefetcher == NULL)
        return;
    pthread_mutex_lock(&prefetcher->lock);
    drop_items(prefetcher);
    prefetcher->started = false;
    atomic_fetch_add(&prefetcher->waiting, 1);
    while (ls_prefetch_slot_in_state(prefetcher, DECODING) != NULL)
        pthread_cond_wait(&prefetcher->done, &prefetcher->lock);
    atomic_fetch_sub(&prefetcher->waiting, 1);
    ls_prefetch_slot_give_back(prefetcher);
    pthread_mutex_unlock(&prefetcher->lock);
    if (prefetcher->room != NULL && prefetcher->room->user == prefetcher)
        prefetcher->room->user = NULL;
}

/* Makes the prefetcher the one that its room belongs to. */
static void take_room(struct ls_prefetcher *prefetcher)
{
    if (prefetcher->room == NULL || prefetcher->room->user == prefetcher)
        return;
    ls_prefetcher_pause(prefetcher->room->user);
    prefetcher->room->user = prefetcher;
    ls_prefetch_slot_enter_room(prefetcher); /* its own decoders rest */
}

void ls_prefetcher_seek(struct ls_prefetcher *prefetcher, int64_t update)
{
    take_room(prefetcher);
    pthread_mutex_lock(&prefetcher->lock);
    drop_items(prefetcher);
    prefetcher->started = true;
    ls_position_go_to(prefetcher, update);
    pthread_cond_broadcast(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
}

void ls_prefetcher_report(const struct ls_error *from, struct ls_error *to)
{
    for (int i = 0; i < from->count; i++) {
        const struct ls_problem *problem = &from->problems[i];
        ls_fail(to, problem->status, problem->place, problem->hint, "%s", problem->message);
    }
}

/* With the lock held. An item that was found: hands it out, or says why not. */
static int hand_out(struct ls_prefetcher *prefetcher, struct ls_prefetch_slot *slot,
                    const struct ls_prefetch_item **item, struct ls_error *error)
{
    if (ls_prefetch_slot_state(slot) == READY) { /* its only taker is this one */
        ls_prefetch_slot_set(prefetcher, slot, HELD);
        *item = &slot->item;
        return 0;
    }
    if (ls_prefetch_slot_state(slot) == HELD)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was taken twice", slot->item.index,
                       slot->item.update);
    if (slot->error == NULL)
        return ls_fail_memory(error, "a message about damaged data");
    ls_prefetcher_report(slot->error, error);
    return slot->status;
}

static int take(struct ls_prefetcher *prefetcher, int64_t update, int index,
                const struct ls_prefetch_item **item, struct ls_error *error)
{
    for (;;) {
        struct ls_prefetch_slot *slot = ls_prefetch_slot_of(prefetcher, update, index);
        if (slot != NULL && ls_prefetch_slot_state(slot) != DECODING)
            return hand_out(prefetcher, slot, item, error);
        if (slot == NULL) {
            LS_TRY(ls_position_expect(prefetcher, update, index, error));
            if (ls_prefetch_slot_in_state(prefetcher, EMPTY) == NULL &&
                ls_prefetch_slot_in_state(prefetcher, DECODING) == NULL)
                LS_TRY(ls_prefetch_slot_add(prefetcher, error));
            pthread_cond_broadcast(&prefetcher->work);
        }
        pthread_cond_wait(&prefetcher->done, &prefetcher->lock);
    }
}

int ls_prefetcher_take(struct ls_prefetcher *prefetcher, int64_t update, int index,
                       const struct ls_prefetch_item **item, struct ls_error *error)
{
    *item = NULL;
    struct ls_prefetch_slot *slot = ls_prefetch_slot_grab(prefetcher, update, index);
    if (slot != NULL) {
        *item = &slot->item;
        return 0;
    }
    pthread_mutex_lock(&prefetcher->lock);
    atomic_fetch_add(&prefetcher->waiting, 1);
    int status = take(prefetcher, update, index, item, error);
    atomic_fetch_sub(&prefetcher->waiting, 1);
    pthread_mutex_unlock(&prefetcher->lock);
    return status;
}

void ls_prefetcher_release(struct ls_prefetcher *prefetcher, const struct ls_prefetch_item *item)
{
    ls_prefetch_slot_set(prefetcher, (struct ls_prefetch_slot *)(uintptr_t)item, EMPTY);
    bool worth = atomic_load(&prefetcher->empty) >= prefetcher->enough ||
                 atomic_load(&prefetcher->waiting) > 0 || prefetcher->share.any;
    if (!worth || atomic_load(&prefetcher->idle) == 0)
        return;
    pthread_mutex_lock(&prefetcher->lock);
    pthread_cond_signal(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
}
