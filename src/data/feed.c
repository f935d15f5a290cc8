/* The feed: threads that decode micro-batches in the order in which they will be wanted. Opening,
 * closing, and what workers call.
 *
 * A decoding thread claims the next micro-batch of the sequence when it finds an EMPTY slot. Claims
 * are made in the order of the sequence, so what is wanted first is there first, whatever the
 * threads' speed. What an item holds depends on its number only; the threads change nothing but
 * when it is there.
 *
 * It cannot lock up: a taker that waits for what nobody has claimed, while no slot is EMPTY or
 * DECODING (all are held or will be taken by others), adds a slot. So a net whose workers hold all
 * micro-batches of a batch at once gets as many slots as that needs, beyond the memory limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/feed.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/feed_inner.h"

/* ---- Opening and closing ---- */

static int copy_options(const struct ls_feed_options *options, struct ls_feed *feed,
                        struct ls_error *error)
{
    size_t inputs = (size_t)options->input_count;
    size_t datasets = (size_t)options->dataset_count;
    feed->batching = options->batching;
    feed->share = options->share;
    feed->updates_end = options->updates_end;
    feed->room = options->room;
    feed->dataset_count = options->dataset_count;
    feed->input_count = options->input_count;
    feed->datasets = ls_alloc(datasets, sizeof *feed->datasets);
    feed->inputs = ls_alloc(inputs, sizeof *feed->inputs);
    if (feed->datasets == NULL || feed->inputs == NULL)
        return ls_fail_memory(error, "a feed of data");
    for (size_t i = 0; i < inputs; i++) {
        feed->inputs[i][0] = options->inputs[i][0];
        feed->inputs[i][1] = options->inputs[i][1];
    }
    for (size_t i = 0; i < datasets; i++) {
        feed->datasets[i] = options->datasets[i];
        if (ls_dataset_varies(feed->datasets[i]) && feed->batching.size_of == NULL)
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "samples differ in size, and nobody says how large they are");
    }
    return 0;
}

/* How many slots: what the budget allows (by default the `prefetch` batches of the data sets, at
 * most 256 MiB), at least two and one more than threads. */
static int slot_target(const struct ls_feed *feed, size_t memory, int *target,
                       struct ls_error *error)
{
    size_t slot;
    LS_TRY(ls_slot_bytes(feed, &slot, error));
    int64_t prefetch = 1;
    for (int i = 0; i < feed->dataset_count; i++)
        if (ls_dataset_prefetch(feed->datasets[i]) > prefetch)
            prefetch = ls_dataset_prefetch(feed->datasets[i]);
    int64_t per_batch =
        ls_share_most(&feed->share, ls_batching_most(&feed->batching, feed->batching.batch));
    int64_t slots = (int64_t)((memory > 0 ? memory : (size_t)256 << 20) / (slot + 1));
    if (memory == 0 && slots / prefetch > per_batch)
        slots = prefetch * per_batch;
    int64_t least = feed->decoder_count + 1;
    slots = slots < least ? least : slots;
    *target = slots > 4096 ? 4096 : (int)slots;
    return 0;
}

static int default_threads(const struct ls_feed *feed)
{
    int cores = ls_cpu_count();
    for (int i = 0; i < feed->dataset_count; i++)
        if (ls_dataset_encoded(feed->datasets[i]))
            return cores > 32 ? 32 : cores;
    return 1 + cores / 8;
}

/* The slots that takers look through without the lock: those that there are now. */
static int note_slots(struct ls_feed *feed, struct ls_error *error)
{
    feed->fast = ls_alloc((size_t)feed->slot_count, sizeof *feed->fast);
    if (feed->fast == NULL)
        return ls_fail_memory(error, "a feed of data");
    for (int i = 0; i < feed->slot_count; i++)
        feed->fast[i] = feed->slots[i];
    feed->fast_count = feed->slot_count;
    feed->enough = (feed->slot_count + 1) / 2;
    return 0;
}

static int start(const struct ls_feed_options *options, struct ls_feed *feed,
                 struct ls_error *error)
{
    LS_TRY(ls_batching_check(&options->batching, "data", error));
    LS_TRY(copy_options(options, feed, error));
    LS_TRY(ls_position_open(feed, error));
    int threads = options->threads > 0 ? options->threads : default_threads(feed);
    feed->decoders = ls_alloc((size_t)threads, sizeof *feed->decoders);
    if (feed->decoders == NULL)
        return ls_fail_memory(error, "a feed of data");
    feed->decoder_count = threads;
    int slots;
    LS_TRY(slot_target(feed, options->memory, &slots, error));
    for (; slots > 0; slots--)
        LS_TRY(ls_slot_add(feed, error));
    LS_TRY(note_slots(feed, error));
    LS_TRY(ls_slot_reserve(feed, error));
    for (int i = 0; i < threads; i++)
        LS_TRY(ls_decoder_start(feed, &feed->decoders[i], error));
    return 0;
}

/* Of a decoder: its stack, what its library for pictures and its heap keep, and the record that is
 * being decoded. */
enum { DECODER_BYTES = 256 << 10 };

static size_t decoder_bytes(const struct ls_feed *feed)
{
    size_t bytes = DECODER_BYTES;
    for (int d = 0; d < feed->dataset_count; d++)
        bytes += ls_dataset_decode_bytes(feed->datasets[d]);
    return bytes;
}

int ls_feed_bytes(const struct ls_feed_options *options, size_t *samples, size_t *threads,
                  struct ls_error *error)
{
    struct ls_feed feed = {.decoder_count = options->threads};
    size_t slot = 0;
    int slots = 0;
    int status = copy_options(options, &feed, error);
    if (status == 0 && feed.decoder_count == 0)
        feed.decoder_count = default_threads(&feed);
    if (status == 0)
        status = slot_target(&feed, options->memory, &slots, error);
    if (status == 0)
        status = ls_slot_bytes(&feed, &slot, error);
    *samples = slot * (size_t)slots;
    *threads = status == 0 ? (size_t)feed.decoder_count * decoder_bytes(&feed) : 0;
    ls_free(feed.datasets);
    ls_free(feed.inputs);
    return status;
}

int ls_feed_open(const struct ls_feed_options *options, struct ls_feed **feed,
                 struct ls_error *error)
{
    *feed = NULL;
    struct ls_feed *made = ls_alloc(1, sizeof *made);
    if (made == NULL)
        return ls_fail_memory(error, "a feed of data");
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->done, NULL);
    int status = start(options, made, error);
    if (status != 0) {
        ls_feed_close(made);
        return status;
    }
    *feed = made;
    return 0;
}

void ls_feed_close(struct ls_feed *feed)
{
    if (feed == NULL)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    for (int i = 0; i < feed->decoder_count; i++)
        ls_decoder_join(feed, &feed->decoders[i]);
    if (feed->room != NULL && feed->room->user == feed)
        feed->room->user = NULL;
    for (int i = 0; i < feed->slot_count; i++)
        ls_slot_free(feed->slots[i]);
    ls_position_close(feed);
    ls_free((void *)feed->fast);
    ls_free(feed->slots);
    ls_free(feed->decoders);
    ls_free(feed->datasets);
    ls_free(feed->inputs);
    pthread_cond_destroy(&feed->work);
    pthread_cond_destroy(&feed->done);
    pthread_mutex_destroy(&feed->lock);
    ls_free(feed);
}

/* ---- What workers call ---- */

/* With the lock held: nothing that was decoded is handed out any more. */
static void drop_items(struct ls_feed *feed)
{
    atomic_fetch_add(&feed->generation, 1);
    for (int i = 0; i < feed->slot_count; i++) {
        enum ls_slot_state state = ls_slot_state(feed->slots[i]);
        if (state == READY || state == FAILED)
            ls_slot_set(feed, feed->slots[i], EMPTY);
    }
}

void ls_feed_room_free(struct ls_feed_room *room)
{
    ls_free_aligned(room->memory);
    *room = (struct ls_feed_room){0};
}

void ls_feed_rest(struct ls_feed *feed)
{
    if (feed == NULL)
        return;
    pthread_mutex_lock(&feed->lock);
    drop_items(feed);
    feed->started = false;
    atomic_fetch_add(&feed->waiting, 1);
    while (ls_slot_in_state(feed, DECODING) != NULL)
        pthread_cond_wait(&feed->done, &feed->lock);
    atomic_fetch_sub(&feed->waiting, 1);
    ls_slot_give_back(feed);
    pthread_mutex_unlock(&feed->lock);
    if (feed->room != NULL && feed->room->user == feed)
        feed->room->user = NULL;
}

/* Makes the feed the one that its room belongs to. */
static void take_room(struct ls_feed *feed)
{
    if (feed->room == NULL || feed->room->user == feed)
        return;
    ls_feed_rest(feed->room->user);
    feed->room->user = feed;
    ls_slot_enter_room(feed); /* its own decoders rest */
}

void ls_feed_seek(struct ls_feed *feed, int64_t update)
{
    take_room(feed);
    pthread_mutex_lock(&feed->lock);
    drop_items(feed);
    feed->started = true;
    ls_position_go_to(feed, update);
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
}

void ls_feed_report(const struct ls_error *from, struct ls_error *to)
{
    for (int i = 0; i < from->count; i++) {
        const struct ls_problem *problem = &from->problems[i];
        ls_fail(to, problem->status, problem->place, problem->hint, "%s", problem->message);
    }
}

/* With the lock held. An item that was found: hands it out, or says why not. */
static int hand_out(struct ls_feed *feed, struct ls_slot *slot, const struct ls_feed_item **item,
                    struct ls_error *error)
{
    if (ls_slot_state(slot) == READY) { /* its only taker is this one */
        ls_slot_set(feed, slot, HELD);
        *item = &slot->item;
        return 0;
    }
    if (ls_slot_state(slot) == HELD)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was taken twice", slot->item.index,
                       slot->item.update);
    if (slot->error == NULL)
        return ls_fail_memory(error, "a message about damaged data");
    ls_feed_report(slot->error, error);
    return slot->status;
}

static int take(struct ls_feed *feed, int64_t update, int index, const struct ls_feed_item **item,
                struct ls_error *error)
{
    for (;;) {
        struct ls_slot *slot = ls_slot_of(feed, update, index);
        if (slot != NULL && ls_slot_state(slot) != DECODING)
            return hand_out(feed, slot, item, error);
        if (slot == NULL) {
            LS_TRY(ls_position_expect(feed, update, index, error));
            if (ls_slot_in_state(feed, EMPTY) == NULL && ls_slot_in_state(feed, DECODING) == NULL)
                LS_TRY(ls_slot_add(feed, error));
            pthread_cond_broadcast(&feed->work);
        }
        pthread_cond_wait(&feed->done, &feed->lock);
    }
}

int ls_feed_take(struct ls_feed *feed, int64_t update, int index, const struct ls_feed_item **item,
                 struct ls_error *error)
{
    *item = NULL;
    struct ls_slot *slot = ls_slot_grab(feed, update, index);
    if (slot != NULL) {
        *item = &slot->item;
        return 0;
    }
    pthread_mutex_lock(&feed->lock);
    atomic_fetch_add(&feed->waiting, 1);
    int status = take(feed, update, index, item, error);
    atomic_fetch_sub(&feed->waiting, 1);
    pthread_mutex_unlock(&feed->lock);
    return status;
}

void ls_feed_release(struct ls_feed *feed, const struct ls_feed_item *item)
{
    ls_slot_set(feed, (struct ls_slot *)(uintptr_t)item, EMPTY);
    bool worth = atomic_load(&feed->empty) >= feed->enough || atomic_load(&feed->waiting) > 0 ||
                 feed->share.any;
    if (!worth || atomic_load(&feed->idle) == 0)
        return;
    pthread_mutex_lock(&feed->lock);
    pthread_cond_signal(&feed->work);
    pthread_mutex_unlock(&feed->lock);
}
