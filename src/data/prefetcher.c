/* The prefetcher: threads that decode micro-batches in the order in which they will be wanted.
 *
 * A decoder claims the next micro-batch of the sequence when it finds an EMPTY buffer, and decodes
 * it there without the lock. Claims are made in the order of the sequence, so what is wanted first
 * is there first, whatever the threads' speed. What an item holds depends on its number only; the
 * threads change nothing but when it is there.
 *
 * It cannot lock up: a taker that waits for an unclaimed item, while no buffer is EMPTY or DECODING
 * (all are held or will be taken by others), adds a buffer. So a net whose workers hold all
 * micro-batches of a batch at once gets as many buffers as that needs, beyond the memory limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/prefetcher.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/prefetcher_inner.h"
#include "data/reader.h"

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* How many buffers: what the budget allows (by default the `prefetch` batches of the data sets, at
 * most 256 MiB), at least two and one more than threads. */
static int buffer_target(const struct ls_prefetcher *prefetcher, size_t memory, int *target,
                         struct ls_error *error)
{
    size_t bytes;
    const struct ls_item_layout *layout = &prefetcher->layout;
    LS_TRY(ls_item_largest(layout, &bytes, error));
    int64_t prefetch = 1;
    for (int i = 0; i < layout->dataset_count; i++)
        if (ls_dataset_prefetch(layout->datasets[i]) > prefetch)
            prefetch = ls_dataset_prefetch(layout->datasets[i]);
    int64_t per_batch = ls_share_most(&prefetcher->share,
                                      ls_batching_most(&layout->batching, layout->batching.batch));
    int64_t count = (int64_t)((memory > 0 ? memory : (size_t)256 << 20) / (bytes + 1));
    if (memory == 0 && count / prefetch > per_batch)
        count = prefetch * per_batch;
    int64_t least = prefetcher->decoder_count + 1 + prefetcher->held;
    count = count < least ? least : count;
    *target = count > 4096 ? 4096 : (int)count;
    return 0;
}

static int default_threads(const struct ls_item_layout *layout)
{
    int cores = ls_cpu_count();
    for (int i = 0; i < layout->dataset_count; i++)
        if (layout->hashes[i] == NULL && ls_dataset_encoded(layout->datasets[i]))
            return cores > 32 ? 32 : cores;
    return 1 + cores / 8;
}

/* Of a decoder: its stack, what its library for pictures and its heap keep, and the record that is
 * being decoded. */
enum { DECODER_BYTES = 256 << 10 };

static size_t decoder_bytes(const struct ls_item_layout *layout)
{
    size_t bytes = DECODER_BYTES + ls_item_rounded_bytes(layout);
    for (int d = 0; d < layout->dataset_count; d++)
        bytes += ls_dataset_decode_bytes(layout->datasets[d]);
    return bytes;
}

int ls_prefetcher_bytes(const struct ls_prefetcher_options *options, size_t *samples,
                        size_t *threads, struct ls_error *error)
{
    struct ls_prefetcher prefetcher = {
        .share = options->share, .decoder_count = options->threads, .held = options->held};
    size_t bytes = 0;
    int buffers = 0;
    int status = ls_item_layout_init(options, &prefetcher.layout, error);
    if (status == 0 && prefetcher.decoder_count == 0)
        prefetcher.decoder_count = default_threads(&prefetcher.layout);
    if (status == 0)
        status = buffer_target(&prefetcher, options->memory, &buffers, error);
    if (status == 0)
        status = ls_item_largest(&prefetcher.layout, &bytes, error);
    *samples = bytes * (size_t)buffers;
    *threads =
        status == 0 ? (size_t)prefetcher.decoder_count * decoder_bytes(&prefetcher.layout) : 0;
    ls_item_layout_free(&prefetcher.layout);
    return status;
}

/* ---- Decoders -------------------------------------------------------------------------------- */

static int decode(struct ls_decoder *decoder, struct ls_ring_buffer *buffer)
{
    const struct ls_item_layout *layout = &decoder->prefetcher->layout;
    const struct ls_prefetch_item *item = &buffer->item;
    ls_error_clear(&decoder->error);
    for (int i = 0; i < layout->input_count; i++)
        LS_TRY(ls_item_input_bytes(layout, i, item->samples, item->shape, &decoder->bytes[i],
                                   &decoder->error));
    LS_TRY(ls_ring_fit(&decoder->prefetcher->ring, buffer, decoder->bytes, layout->input_count,
                       &decoder->error));
    return ls_item_decode(layout, decoder->readers, item, &decoder->error);
}

/* With the lock held: what was decoded becomes ready, unless a seek has overtaken it. */
static void finish(struct ls_decoder *decoder, struct ls_ring_buffer *buffer, int status)
{
    struct ls_prefetcher *prefetcher = decoder->prefetcher;
    struct ls_ring *ring = &prefetcher->ring;
    if (buffer->generation != atomic_load(&ring->generation)) {
        ls_ring_set(ring, buffer, LS_RING_EMPTY);
        pthread_cond_signal(&prefetcher->work);
    } else if (status == 0) {
        ls_ring_set(ring, buffer, LS_RING_READY);
    } else {
        buffer->status = status;
        if (buffer->error == NULL)
            buffer->error = ls_alloc(1, sizeof *buffer->error);
        if (buffer->error != NULL)
            *buffer->error = decoder->error;
        ls_ring_set(ring, buffer, LS_RING_FAILED);
    }
    if (atomic_load(&prefetcher->waiting) > 0)
        pthread_cond_broadcast(&prefetcher->done);
}

/* With the lock held: the next buffer to decode into, or NULL. Takers are woken where nothing can
 * be claimed: what they wait for may need another buffer, or have failed. */
static struct ls_ring_buffer *claim(struct ls_prefetcher *prefetcher)
{
    struct ls_ring *ring = &prefetcher->ring;
    struct ls_ring_buffer *buffer = ls_ring_find(ring, LS_RING_EMPTY);
    struct ls_sequence_item next;
    if (buffer == NULL)
        return NULL;
    if (!ls_sequence_next(prefetcher->sequence, &next)) {
        if (atomic_load(&prefetcher->waiting) > 0)
            pthread_cond_broadcast(&prefetcher->done);
        return NULL;
    }
    struct ls_prefetch_item *item = &buffer->item;
    item->update = next.update;
    item->index = next.index;
    item->ordinal = next.ordinal;
    item->samples = next.samples;
    memcpy(item->shape, next.shape, sizeof item->shape);
    buffer->generation = atomic_load(&ring->generation);
    ls_ring_set(ring, buffer, LS_RING_DECODING);
    return buffer;
}

static void *decode_ahead(void *argument)
{
    struct ls_decoder *decoder = argument;
    struct ls_prefetcher *prefetcher = decoder->prefetcher;
    ls_unpin_thread();
    ls_set_float_mode();
    ls_enter_background();
    ls_timeline_here = decoder->track;
    pthread_mutex_lock(&prefetcher->lock);
    while (!prefetcher->stop) {
        /* A thread that makes a buffer EMPTY reads `idle` afterwards: one of the two sees the
         * other. */
        atomic_fetch_add(&prefetcher->idle, 1);
        struct ls_ring_buffer *buffer = claim(prefetcher);
        if (buffer == NULL)
            pthread_cond_wait(&prefetcher->work, &prefetcher->lock);
        atomic_fetch_sub(&prefetcher->idle, 1);
        if (buffer == NULL)
            continue;
        pthread_mutex_unlock(&prefetcher->lock);
        uint64_t start = ls_timeline_start();
        int status = decode(decoder, buffer);
        ls_timeline_add(LS_TIMELINE_DECODE, NULL, 0, start);
        pthread_mutex_lock(&prefetcher->lock);
        finish(decoder, buffer, status);
    }
    pthread_mutex_unlock(&prefetcher->lock);
    return NULL;
}

static int start_decoder(struct ls_prefetcher *prefetcher, struct ls_decoder *decoder,
                         struct ls_error *error)
{
    decoder->prefetcher = prefetcher;
    decoder->track = ls_timeline_track(ls_timeline_of_thread(), "prefetcher");
    const struct ls_item_layout *layout = &prefetcher->layout;
    decoder->readers = ls_alloc((size_t)layout->dataset_count, sizeof *decoder->readers);
    decoder->bytes = ls_alloc((size_t)layout->input_count + 1, sizeof *decoder->bytes);
    if (decoder->readers == NULL || decoder->bytes == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    for (int d = 0; d < layout->dataset_count; d++)
        LS_TRY(ls_reader_open(layout->datasets[d], &decoder->readers[d], error));
    int result = ls_thread_create(&decoder->thread, decode_ahead, decoder);
    if (result != 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "a thread to decode data could not be started (error %d)", result);
    decoder->running = true;
    return 0;
}

static void join_decoder(struct ls_prefetcher *prefetcher, struct ls_decoder *decoder)
{
    if (decoder->running)
        pthread_join(decoder->thread, NULL);
    for (int d = 0; decoder->readers != NULL && d < prefetcher->layout.dataset_count; d++)
        ls_reader_close(decoder->readers[d]);
    ls_free(decoder->readers);
    ls_free(decoder->bytes);
}

/* ---- The room -------------------------------------------------------------------------------- */

/* Whether the first buffers lie in a room. Where sizes vary buffers grow as they need. */
static bool uses_room(const struct ls_prefetcher *prefetcher)
{
    return prefetcher->room != NULL && prefetcher->layout.batching.size_of == NULL;
}

void ls_prefetch_memory_free(struct ls_prefetch_memory *room)
{
    ls_pinned_free(&room->own);
    *room = (struct ls_prefetch_memory){0};
}

/* Stops decoding and drops what was decoded, until the next seek. NULL is nothing to stop. */
static void pause_decoding(struct ls_prefetcher *prefetcher)
{
    if (prefetcher == NULL)
        return;
    pthread_mutex_lock(&prefetcher->lock);
    ls_ring_drop(&prefetcher->ring);
    ls_sequence_stop(prefetcher->sequence);
    atomic_fetch_add(&prefetcher->waiting, 1);
    while (ls_ring_find(&prefetcher->ring, LS_RING_DECODING) != NULL)
        pthread_cond_wait(&prefetcher->done, &prefetcher->lock);
    atomic_fetch_sub(&prefetcher->waiting, 1);
    if (prefetcher->layout.batching.size_of != NULL)
        ls_ring_give_back(&prefetcher->ring);
    pthread_mutex_unlock(&prefetcher->lock);
    if (prefetcher->room != NULL && prefetcher->room->user == prefetcher)
        prefetcher->room->user = NULL;
}

/* Makes the room large enough for the first buffers. */
static int reserve_room(struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    struct ls_prefetch_memory *room = prefetcher->room;
    size_t bytes;
    if (!uses_room(prefetcher))
        return 0;
    LS_TRY(ls_item_largest(&prefetcher->layout, &bytes, error));
    bytes *= (size_t)prefetcher->ring.first_count; /* no more than there was memory for, or 4096 */
    if (bytes <= room->bytes)
        return 0;
    struct ls_pinned larger;
    if (!ls_pinned_create(&larger, prefetcher->ring.pinning, bytes))
        return ls_fail_memory(error, "decoded data");
    pause_decoding(room->user);
    ls_prefetch_memory_free(room);
    room->own = larger;
    room->bytes = bytes;
    return 0;
}

/* Makes the prefetcher the one that its room belongs to. Its own decoders rest. */
static void take_room(struct ls_prefetcher *prefetcher)
{
    size_t bytes = 0;
    if (prefetcher->room == NULL || prefetcher->room->user == prefetcher)
        return;
    pause_decoding(prefetcher->room->user);
    prefetcher->room->user = prefetcher;
    if (!uses_room(prefetcher))
        return;
    (void)ls_item_largest(&prefetcher->layout, &bytes, NULL); /* known since it was opened */
    ls_ring_share(&prefetcher->ring, prefetcher->room->own.memory, bytes);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static int start(const struct ls_prefetcher_options *options, struct ls_prefetcher *prefetcher,
                 struct ls_error *error)
{
    const struct ls_sequence_options sequence = {.batching = &prefetcher->layout.batching,
                                                 .share = options->share,
                                                 .updates_end = options->updates_end};
    LS_TRY(ls_batching_check(&options->batching, "data", error));
    LS_TRY(ls_item_layout_init(options, &prefetcher->layout, error));
    prefetcher->share = options->share;
    prefetcher->room = options->room;
    prefetcher->held = options->held;
    prefetcher->ring.pinning = options->pinning;
    prefetcher->ring.inputs = options->input_count;
    prefetcher->ring.datasets = options->dataset_count;
    LS_TRY(ls_sequence_open(&sequence, &prefetcher->sequence, error));
    int threads = options->threads > 0 ? options->threads : default_threads(&prefetcher->layout);
    prefetcher->decoders = ls_alloc((size_t)threads, sizeof *prefetcher->decoders);
    if (prefetcher->decoders == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    prefetcher->decoder_count = threads;
    int buffers;
    size_t bytes;
    LS_TRY(buffer_target(prefetcher, options->memory, &buffers, error));
    LS_TRY(ls_item_largest(&prefetcher->layout, &bytes, error));
    bool own = prefetcher->room == NULL && prefetcher->layout.batching.size_of == NULL;
    for (int i = 0; i < buffers; i++)
        LS_TRY(ls_ring_add(&prefetcher->ring, own ? bytes : 0, error));
    LS_TRY(ls_ring_fix_first(&prefetcher->ring, error));
    prefetcher->enough = (buffers + 1) / 2;
    LS_TRY(reserve_room(prefetcher, error));
    for (int i = 0; i < threads; i++)
        LS_TRY(start_decoder(prefetcher, &prefetcher->decoders[i], error));
    return 0;
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
        join_decoder(prefetcher, &prefetcher->decoders[i]);
    if (prefetcher->room != NULL && prefetcher->room->user == prefetcher)
        prefetcher->room->user = NULL;
    ls_ring_free(&prefetcher->ring);
    ls_sequence_close(prefetcher->sequence);
    ls_free(prefetcher->decoders);
    ls_item_layout_free(&prefetcher->layout);
    pthread_cond_destroy(&prefetcher->work);
    pthread_cond_destroy(&prefetcher->done);
    pthread_mutex_destroy(&prefetcher->lock);
    ls_free(prefetcher);
}

/* ---- What workers call ----------------------------------------------------------------------- */

void ls_prefetcher_seek(struct ls_prefetcher *prefetcher, int64_t update)
{
    take_room(prefetcher);
    pthread_mutex_lock(&prefetcher->lock);
    ls_ring_drop(&prefetcher->ring);
    ls_sequence_seek(prefetcher->sequence, update);
    pthread_cond_broadcast(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
}

void ls_prefetcher_request(struct ls_prefetcher *prefetcher, int64_t update, int index)
{
    pthread_mutex_lock(&prefetcher->lock);
    if (ls_ring_of(&prefetcher->ring, update, index) == NULL &&
        ls_sequence_request(prefetcher->sequence, update, index))
        pthread_cond_signal(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
}

/* With the lock held. An item that was found: hands it out, or says why not. */
static int hand_out(struct ls_prefetcher *prefetcher, struct ls_ring_buffer *buffer,
                    const struct ls_prefetch_item **item, struct ls_error *error)
{
    if (ls_ring_state(buffer) == LS_RING_READY) { /* its only taker is this one */
        ls_ring_set(&prefetcher->ring, buffer, LS_RING_HELD);
        *item = &buffer->item;
        return 0;
    }
    if (ls_ring_state(buffer) == LS_RING_HELD)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was taken twice", buffer->item.index,
                       buffer->item.update);
    if (buffer->error == NULL)
        return ls_fail_memory(error, "a message about damaged data");
    ls_error_add(error, buffer->error);
    return buffer->status;
}

/* With the lock held: waits for an item. */
static int take(struct ls_prefetcher *prefetcher, int64_t update, int index,
                const struct ls_prefetch_item **item, struct ls_error *error)
{
    struct ls_ring *ring = &prefetcher->ring;
    for (;;) {
        struct ls_ring_buffer *buffer = ls_ring_of(ring, update, index);
        if (buffer != NULL && ls_ring_state(buffer) != LS_RING_DECODING)
            return hand_out(prefetcher, buffer, item, error);
        if (buffer == NULL) {
            LS_TRY(ls_sequence_expect(prefetcher->sequence, update, index, error));
            if (ls_ring_find(ring, LS_RING_EMPTY) == NULL &&
                ls_ring_find(ring, LS_RING_DECODING) == NULL)
                LS_TRY(ls_ring_add(ring, 0, error));
            pthread_cond_broadcast(&prefetcher->work);
        }
        pthread_cond_wait(&prefetcher->done, &prefetcher->lock);
    }
}

int ls_prefetcher_take(struct ls_prefetcher *prefetcher, int64_t update, int index,
                       const struct ls_prefetch_item **item, struct ls_error *error)
{
    *item = NULL;
    struct ls_ring_buffer *buffer = ls_ring_grab(&prefetcher->ring, update, index);
    if (buffer != NULL) {
        *item = &buffer->item;
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
    struct ls_ring *ring = &prefetcher->ring;
    ls_ring_set(ring, item->buffer, LS_RING_EMPTY);
    bool worth = atomic_load(&ring->empty) >= prefetcher->enough ||
                 atomic_load(&prefetcher->waiting) > 0 || prefetcher->share.any;
    if (!worth || atomic_load(&prefetcher->idle) == 0)
        return;
    pthread_mutex_lock(&prefetcher->lock);
    pthread_cond_signal(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
}
