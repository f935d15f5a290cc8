/* The threads of a prefetcher: each claims the next micro-batch of the sequence when it finds an
 * EMPTY slot, and decodes it there, without the lock.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "base/thread.h"
#include "data/prefetcher_inner.h"
#include "data/source.h"

/* Where the tensors of a data set's samples go, by tensor, and how many bytes each has; NULL: not
 * wanted. Returns which are wanted. */
static uint32_t find_targets(const struct ls_prefetcher *prefetcher,
                             const struct ls_prefetch_item *item, int dataset, char **target,
                             size_t *bytes)
{
    uint32_t wanted = 0;
    for (int k = 0; k < LS_RECORD_TENSORS; k++)
        target[k] = NULL;
    for (int i = 0; i < prefetcher->input_count; i++) {
        if (prefetcher->inputs[i][0] != dataset)
            continue;
        int tensor = prefetcher->inputs[i][1];
        target[tensor] = item->input[i];
        bytes[tensor] = ls_prefetch_slot_sample_bytes(prefetcher, i, item->shape);
        wanted |= LS_TENSOR(tensor);
    }
    return wanted;
}

/* Decodes an item's samples of a data set and notes what was read. What no batch has is hashed. */
static int decode_dataset(struct ls_decoder *decoder, const struct ls_prefetch_item *item,
                          int dataset)
{
    char *target[LS_RECORD_TENSORS];
    size_t bytes[LS_RECORD_TENSORS] = {0};
    const struct ls_dataset *set = decoder->prefetcher->datasets[dataset];
    uint32_t wanted = find_targets(decoder->prefetcher, item, dataset, target, bytes);
    if (wanted == 0)
        return 0;
    struct ls_reader *reader = decoder->readers[dataset];
    struct ls_digests *digests = &item->digests[dataset];
    int64_t size = ls_dataset_size(set), record;
    int64_t begin = item->ordinal, end = begin + item->samples;
    int64_t all = end + ls_batching_left_out(&decoder->prefetcher->batching, end);
    uint64_t hash;
    *digests = (struct ls_digests){0};
    for (int64_t i = begin; i < end; i++) {
        LS_TRY(ls_reader_fetch(reader, i, (void *const *)target, &decoder->error));
        ls_reader_last(reader, &record, &hash);
        ls_digests_add(digests, begin, all, size, i, record, hash);
        digests->skipped += ls_reader_replaced(reader);
        for (int k = 0; k < ls_dataset_tensors(set); k++)
            target[k] = target[k] != NULL ? target[k] + bytes[k] : NULL;
    }
    for (int64_t i = end; i < all; i++) {
        LS_TRY(ls_reader_hash(reader, i, wanted, &record, &hash, &decoder->error));
        ls_digests_add(digests, begin, all, size, i, record, hash);
    }
    return 0;
}

static int decode(struct ls_decoder *decoder, struct ls_prefetch_slot *slot)
{
    struct ls_prefetcher *prefetcher = decoder->prefetcher;
    ls_error_clear(&decoder->error);
    LS_TRY(ls_prefetch_slot_fit(prefetcher, slot, &decoder->error));
    for (int d = 0; d < prefetcher->dataset_count; d++)
        LS_TRY(decode_dataset(decoder, &slot->item, d));
    return 0;
}

/* With the lock held: what was decoded becomes ready, unless a seek has overtaken it. */
static void finish(struct ls_decoder *decoder, struct ls_prefetch_slot *slot, int status)
{
    struct ls_prefetcher *prefetcher = decoder->prefetcher;
    if (slot->generation != atomic_load(&prefetcher->generation)) {
        ls_prefetch_slot_set(prefetcher, slot, EMPTY);
        pthread_cond_signal(&prefetcher->work);
    } else if (status == 0) {
        ls_prefetch_slot_set(prefetcher, slot, READY);
    } else {
        slot->status = status;
        if (slot->error == NULL)
            slot->error = ls_alloc(1, sizeof *slot->error);
        if (slot->error != NULL)
            *slot->error = decoder->error;
        ls_prefetch_slot_set(prefetcher, slot, FAILED);
    }
    if (atomic_load(&prefetcher->waiting) > 0)
        pthread_cond_broadcast(&prefetcher->done);
}

/* With the lock held: the next slot to decode into, or NULL. */
static struct ls_prefetch_slot *claim(struct ls_prefetcher *prefetcher)
{
    struct ls_prefetch_slot *slot = ls_prefetch_slot_in_state(prefetcher, EMPTY);
    if (slot == NULL || !ls_position_claim(prefetcher, &slot->item))
        return NULL;
    slot->generation = atomic_load(&prefetcher->generation);
    ls_prefetch_slot_set(prefetcher, slot, DECODING);
    return slot;
}

static void *decode_ahead(void *argument)
{
    struct ls_decoder *decoder = argument;
    struct ls_prefetcher *prefetcher = decoder->prefetcher;
    ls_unpin_thread();
    ls_set_float_mode();
    ls_enter_background();
    pthread_mutex_lock(&prefetcher->lock);
    while (!prefetcher->stop) {
        /* A thread that makes a slot EMPTY reads `idle` afterwards: one of the two sees the other.
         */
        atomic_fetch_add(&prefetcher->idle, 1);
        struct ls_prefetch_slot *slot = claim(prefetcher);
        if (slot == NULL)
            pthread_cond_wait(&prefetcher->work, &prefetcher->lock);
        atomic_fetch_sub(&prefetcher->idle, 1);
        if (slot == NULL)
            continue;
        pthread_mutex_unlock(&prefetcher->lock);
        int status = decode(decoder, slot);
        pthread_mutex_lock(&prefetcher->lock);
        finish(decoder, slot, status);
    }
    pthread_mutex_unlock(&prefetcher->lock);
    return NULL;
}

int ls_decoder_start(struct ls_prefetcher *prefetcher, struct ls_decoder *decoder,
                     struct ls_error *error)
{
    decoder->prefetcher = prefetcher;
    decoder->readers = ls_alloc((size_t)prefetcher->dataset_count, sizeof *decoder->readers);
    if (decoder->readers == NULL)
        return ls_fail_memory(error, "a prefetcher of data");
    for (int d = 0; d < prefetcher->dataset_count; d++)
        LS_TRY(ls_reader_open(prefetcher->datasets[d], &decoder->readers[d], error));
    int result = pthread_create(&decoder->thread, NULL, decode_ahead, decoder);
    if (result != 0)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "a thread to decode data could not be started (error %d)", result);
    decoder->running = true;
    return 0;
}

void ls_decoder_join(struct ls_prefetcher *prefetcher, struct ls_decoder *decoder)
{
    if (decoder->running)
        pthread_join(decoder->thread, NULL);
    for (int d = 0; decoder->readers != NULL && d < prefetcher->dataset_count; d++)
        ls_reader_close(decoder->readers[d]);
    ls_free(decoder->readers);
}
