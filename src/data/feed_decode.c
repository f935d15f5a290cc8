/* The threads of a feed: each claims the next micro-batch of the sequence when it finds an EMPTY
 * slot, and decodes it there, without the lock.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "base/thread.h"
#include "data/feed_inner.h"

/* Where the samples of one kind (0 data, 1 label) of a data set go; NULL: nobody wants them. */
static float *input_of(const struct ls_feed *feed, const struct ls_feed_item *item, int dataset,
                       int kind, size_t *numbers)
{
    for (int i = 0; i < feed->input_count; i++)
        if (feed->inputs[i][0] == dataset && feed->inputs[i][1] == kind) {
            *numbers = ls_slot_numbers(feed, i, item);
            return item->input[i];
        }
    *numbers = 0;
    return NULL;
}

/* Decodes an item's samples of a data set and notes what was read. What no batch has is hashed. */
static int decode_dataset(struct ls_decoder *decoder, const struct ls_feed_item *item, int dataset)
{
    size_t data_size, label_size;
    float *data = input_of(decoder->feed, item, dataset, 0, &data_size);
    float *label = input_of(decoder->feed, item, dataset, 1, &label_size);
    if (data == NULL && label == NULL)
        return 0;
    struct ls_reader *reader = decoder->readers[dataset];
    struct ls_digests *digests = &item->digests[dataset];
    int64_t size = ls_dataset_size(decoder->feed->datasets[dataset]), record;
    int64_t begin = item->ordinal, end = begin + item->samples;
    int64_t all = end + ls_batching_left_out(&decoder->feed->batching, end);
    uint64_t hash;
    *digests = (struct ls_digests){0};
    for (int64_t i = begin; i < end; i++) {
        LS_TRY(ls_reader_fetch(reader, i, data, label, &decoder->error));
        ls_reader_last(reader, &record, &hash);
        ls_digests_add(digests, begin, all, size, i, record, hash);
        digests->skipped += ls_reader_replaced(reader);
        data = data != NULL ? data + data_size : NULL;
        label = label != NULL ? label + label_size : NULL;
    }
    for (int64_t i = end; i < all; i++) {
        LS_TRY(ls_reader_hash(reader, i, data != NULL, label != NULL, &record, &hash,
                              &decoder->error));
        ls_digests_add(digests, begin, all, size, i, record, hash);
    }
    return 0;
}

static int decode(struct ls_decoder *decoder, struct ls_slot *slot)
{
    struct ls_feed *feed = decoder->feed;
    ls_error_clear(&decoder->error);
    LS_TRY(ls_slot_fit(feed, slot, &decoder->error));
    for (int d = 0; d < feed->dataset_count; d++)
        LS_TRY(decode_dataset(decoder, &slot->item, d));
    return 0;
}

/* With the lock held: what was decoded becomes ready, unless a seek has overtaken it. */
static void finish(struct ls_decoder *decoder, struct ls_slot *slot, int status)
{
    struct ls_feed *feed = decoder->feed;
    if (slot->generation != atomic_load(&feed->generation)) {
        ls_slot_set(feed, slot, EMPTY);
        pthread_cond_signal(&feed->work);
    } else if (status == 0) {
        ls_slot_set(feed, slot, READY);
    } else {
        slot->status = status;
        if (slot->error == NULL)
            slot->error = ls_alloc(1, sizeof *slot->error);
        if (slot->error != NULL)
            *slot->error = decoder->error;
        ls_slot_set(feed, slot, FAILED);
    }
    if (atomic_load(&feed->waiting) > 0)
        pthread_cond_broadcast(&feed->done);
}

/* With the lock held: the next slot to decode into, or NULL. */
static struct ls_slot *claim(struct ls_feed *feed)
{
    struct ls_slot *slot = ls_slot_in_state(feed, EMPTY);
    if (slot == NULL || !ls_position_claim(feed, &slot->item))
        return NULL;
    slot->generation = atomic_load(&feed->generation);
    ls_slot_set(feed, slot, DECODING);
    return slot;
}

static void *decode_ahead(void *argument)
{
    struct ls_decoder *decoder = argument;
    struct ls_feed *feed = decoder->feed;
    ls_unpin_thread();
    ls_set_float_mode();
    ls_enter_background();
    pthread_mutex_lock(&feed->lock);
    while (!feed->stop) {
        /* Who makes a slot EMPTY looks at `idle` afterwards: one of the two sees the other. */
        atomic_fetch_add(&feed->idle, 1);
        struct ls_slot *slot = claim(feed);
        if (slot == NULL)
            pthread_cond_wait(&feed->work, &feed->lock);
        atomic_fetch_sub(&feed->idle, 1);
        if (slot == NULL)
            continue;
        pthread_mutex_unlock(&feed->lock);
        int status = decode(decoder, slot);
        pthread_mutex_lock(&feed->lock);
        finish(decoder, slot, status);
    }
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

int ls_decoder_start(struct ls_feed *feed, struct ls_decoder *decoder, struct ls_error *error)
{
    decoder->feed = feed;
    decoder->readers = ls_alloc((size_t)feed->dataset_count, sizeof *decoder->readers);
    if (decoder->readers == NULL)
        return ls_fail_memory(error, "a feed of data");
    for (int d = 0; d < feed->dataset_count; d++)
        LS_TRY(ls_reader_open(feed->datasets[d], &decoder->readers[d], error));
    int result = pthread_create(&decoder->thread, NULL, decode_ahead, decoder);
    if (result != 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "a thread to decode data could not be started (error %d)", result);
    decoder->running = true;
    return 0;
}

void ls_decoder_join(struct ls_feed *feed, struct ls_decoder *decoder)
{
    if (decoder->running)
        pthread_join(decoder->thread, NULL);
    for (int d = 0; decoder->readers != NULL && d < feed->dataset_count; d++)
        ls_reader_close(decoder->readers[d]);
    ls_free(decoder->readers);
}
