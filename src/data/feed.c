/* The feed: threads that decode micro-batches in the order in which they will be wanted.
 *
 * Memory is a set of slots, each with room for one micro-batch:
 *
 *   EMPTY -> DECODING -> READY -> HELD -> EMPTY          (or DECODING -> FAILED until the next
 * seek)
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
 * One lock guards everything; decoding happens outside of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/feed.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/source.h"

enum slot_state { EMPTY, DECODING, READY, HELD, FAILED };

struct slot {
    struct ls_feed_item item; /* first: items are slots to their takers */
    enum slot_state state;
    uint64_t generation; /* of the seek that it was claimed under */
    float *memory;
    int status;             /* FAILED: why */
    struct ls_error *error; /* FAILED: more about it; NULL if there was no memory for that */
};

/* The next micro-batch to claim. */
struct position {
    int64_t update;
    int index;     /* over all batches of the update */
    int batch;     /* which of `batches` */
    int64_t micro; /* which micro-batch of that */
    int batch_count;
    struct ls_batch *batches; /* of `update` */
};

struct decoder {
    struct ls_feed *feed;
    pthread_t thread;
    bool running;
    struct ls_reader **readers; /* one for each data set */
    struct ls_error error;
};

struct ls_feed {
    struct ls_dataset **datasets;
    int dataset_count;
    int (*inputs)[2];
    int input_count;
    size_t *offset; /* of each input in a slot's memory, in floats; then the whole size */
    struct ls_batching batching;
    int64_t updates_end;
    struct decoder *decoders;
    int decoder_count;

    pthread_mutex_t lock;
    pthread_cond_t work; /* for decoders: a slot became EMPTY, a seek, the end */
    pthread_cond_t done; /* for takers: a slot left DECODING, cancelled */
    struct slot **slots;
    int slot_count;
    size_t slot_capacity;
    struct position next;
    struct ls_batch *check; /* room for the batches of an update */
    uint64_t generation;
    bool started, stop, cancelled;
};

/* ---- The sequence ---- */

static void go_to(struct ls_feed *feed, int64_t update)
{
    struct position *p = &feed->next;
    p->update = update;
    p->index = p->batch = 0;
    p->micro = 0;
    p->batch_count =
        update < feed->updates_end ? ls_batching_update(&feed->batching, update, p->batches) : 0;
}

static bool at_end(const struct ls_feed *feed)
{
    return !feed->started || feed->next.batch_count == 0;
}

/* Names the next micro-batch in `item` and goes on to the one behind it. */
static void claim_item(struct ls_feed *feed, struct ls_feed_item *item)
{
    struct position *p = &feed->next;
    const struct ls_batch *batch = &p->batches[p->batch];
    int64_t n = ls_micro_batch_count(batch->count, feed->batching.micro_batch);
    struct ls_batch micro = ls_micro_batch(batch, n, p->micro);
    item->update = p->update;
    item->index = p->index++;
    item->ordinal = micro.ordinal;
    item->samples = micro.count;
    if (++p->micro < n)
        return;
    p->micro = 0;
    if (++p->batch == p->batch_count)
        go_to(feed, p->update + 1);
}

/* How many micro-batches an update has. */
static int64_t micro_batches_of(struct ls_feed *feed, int64_t update)
{
    int64_t count = 0;
    int batches = ls_batching_update(&feed->batching, update, feed->check);
    for (int i = 0; i < batches; i++)
        count += ls_micro_batch_count(feed->check[i].count, feed->batching.micro_batch);
    return count;
}

/* ---- Slots ---- */

static int add_slot(struct ls_feed *feed, struct ls_error *error)
{
    struct slot *slot = ls_alloc(1, sizeof *slot);
    if (slot != NULL) {
        slot->memory = ls_alloc_aligned(feed->offset[feed->input_count] * sizeof(float));
        slot->item.input = ls_alloc((size_t)feed->input_count + 1, sizeof *slot->item.input);
    }
    if (slot == NULL || slot->memory == NULL || slot->item.input == NULL ||
        !LS_GROW(feed->slots, feed->slot_count, feed->slot_capacity)) {
        if (slot != NULL) {
            ls_free_aligned(slot->memory);
            ls_free(slot->item.input);
        }
        ls_free(slot);
        return ls_fail_memory(error, "decoded data");
    }
    for (int i = 0; i < feed->input_count; i++)
        slot->item.input[i] = slot->memory + feed->offset[i];
    feed->slots[feed->slot_count++] = slot;
    return 0;
}

static void free_slot(struct slot *slot)
{
    ls_free_aligned(slot->memory);
    ls_free(slot->item.input);
    ls_free(slot->error);
    ls_free(slot);
}

static struct slot *find_state(const struct ls_feed *feed, enum slot_state state)
{
    for (int i = 0; i < feed->slot_count; i++)
        if (feed->slots[i]->state == state)
            return feed->slots[i];
    return NULL;
}

static struct slot *find_item(const struct ls_feed *feed, int64_t update, int index)
{
    for (int i = 0; i < feed->slot_count; i++) {
        struct slot *slot = feed->slots[i];
        if (slot->state != EMPTY && slot->generation == feed->generation &&
            slot->item.update == update && slot->item.index == index)
            return slot;
    }
    return NULL;
}

/* ---- Decoding ---- */

/* Numbers that a sample has in an input. */
static size_t input_size(const struct ls_feed *feed, int input)
{
    if (feed->inputs[input][1] != 0)
        return 1; /* a label */
    return (size_t)ls_record_size(ls_dataset_shape(feed->datasets[feed->inputs[input][0]]));
}

/* Where sample `sample` of one kind (0 data, 1 label) of a data set goes; NULL: nobody wants it. */
static float *sample_at(const struct ls_feed *feed, const struct ls_feed_item *item, int dataset,
                        int kind, int64_t sample)
{
    for (int i = 0; i < feed->input_count; i++)
        if (feed->inputs[i][0] == dataset && feed->inputs[i][1] == kind)
            return item->input[i] + (size_t)sample * input_size(feed, i);
    return NULL;
}

static int decode(struct decoder *decoder, const struct ls_feed_item *item)
{
    struct ls_feed *feed = decoder->feed;
    ls_error_clear(&decoder->error);
    for (int d = 0; d < feed->dataset_count; d++)
        for (int64_t i = 0; i < item->samples; i++) {
            float *data = sample_at(feed, item, d, 0, i);
            float *label = sample_at(feed, item, d, 1, i);
            if (data == NULL && label == NULL)
                break;
            LS_TRY(ls_reader_fetch(decoder->readers[d], item->ordinal + i, data, label,
                                   &decoder->error));
        }
    return 0;
}

/* With the lock held: what was decoded becomes ready, unless a seek has overtaken it. */
static void finish(struct decoder *decoder, struct slot *slot, int status)
{
    struct ls_feed *feed = decoder->feed;
    if (slot->generation != feed->generation) {
        slot->state = EMPTY;
        pthread_cond_signal(&feed->work);
    } else if (status == 0) {
        slot->state = READY;
    } else {
        slot->state = FAILED;
        slot->status = status;
        if (slot->error == NULL)
            slot->error = ls_alloc(1, sizeof *slot->error);
        if (slot->error != NULL)
            *slot->error = decoder->error;
    }
    pthread_cond_broadcast(&feed->done);
}

static void *decode_ahead(void *argument)
{
    struct decoder *decoder = argument;
    struct ls_feed *feed = decoder->feed;
    ls_unpin_thread();
    ls_set_float_mode();
    pthread_mutex_lock(&feed->lock);
    while (!feed->stop) {
        struct slot *slot = at_end(feed) ? NULL : find_state(feed, EMPTY);
        if (slot == NULL) {
            pthread_cond_wait(&feed->work, &feed->lock);
            continue;
        }
        slot->state = DECODING;
        slot->generation = feed->generation;
        claim_item(feed, &slot->item);
        pthread_mutex_unlock(&feed->lock);
        int status = decode(decoder, &slot->item);
        pthread_mutex_lock(&feed->lock);
        finish(decoder, slot, status);
    }
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

/* ---- Opening and closing ---- */

static int copy_options(const struct ls_feed_options *options, struct ls_feed *feed,
                        struct ls_error *error)
{
    size_t inputs = (size_t)options->input_count;
    size_t datasets = (size_t)options->dataset_count;
    feed->batching = options->batching;
    feed->updates_end = options->updates_end;
    feed->dataset_count = options->dataset_count;
    feed->input_count = options->input_count;
    feed->datasets = ls_alloc(datasets, sizeof *feed->datasets);
    feed->inputs = ls_alloc(inputs, sizeof *feed->inputs);
    feed->offset = ls_alloc(inputs + 1, sizeof *feed->offset);
    feed->next.batches = ls_alloc((size_t)feed->batching.iter_size, sizeof *feed->next.batches);
    feed->check = ls_alloc((size_t)feed->batching.iter_size, sizeof *feed->check);
    if (feed->datasets == NULL || feed->inputs == NULL || feed->offset == NULL ||
        feed->next.batches == NULL || feed->check == NULL)
        return ls_fail_memory(error, "a feed of data");
    for (size_t i = 0; i < datasets; i++)
        feed->datasets[i] = options->datasets[i];
    int64_t samples = feed->batching.batch < feed->batching.micro_batch
                          ? feed->batching.batch
                          : feed->batching.micro_batch;
    for (size_t i = 0; i < inputs; i++) {
        feed->inputs[i][0] = options->inputs[i][0];
        feed->inputs[i][1] = options->inputs[i][1];
        int64_t numbers;
        if (!ls_multiply(samples, (int64_t)input_size(feed, (int)i), &numbers) ||
            numbers > INT64_C(1) << 40)
            return ls_fail_memory(error, "a micro-batch");
        feed->offset[i + 1] = feed->offset[i] + (((size_t)numbers + 15) & ~(size_t)15);
    }
    return 0;
}

/* How many slots: what the budget allows (by default the `prefetch` batches of the data sets, at
 * most 256 MiB), at least two and one more than threads. */
static int slot_target(const struct ls_feed *feed, size_t memory)
{
    size_t slot = feed->offset[feed->input_count] * sizeof(float) + 1;
    int64_t prefetch = 1;
    for (int i = 0; i < feed->dataset_count; i++)
        if (ls_dataset_prefetch(feed->datasets[i]) > prefetch)
            prefetch = ls_dataset_prefetch(feed->datasets[i]);
    int64_t per_batch = ls_micro_batch_count(feed->batching.batch, feed->batching.micro_batch);
    int64_t slots = (int64_t)((memory > 0 ? memory : (size_t)256 << 20) / slot);
    if (memory == 0 && slots / prefetch > per_batch)
        slots = prefetch * per_batch;
    int64_t least = feed->decoder_count + 1;
    slots = slots < least ? least : slots;
    return slots > 4096 ? 4096 : (int)slots;
}

static int default_threads(const struct ls_feed *feed)
{
    int cores = ls_cpu_count();
    for (int i = 0; i < feed->dataset_count; i++)
        if (ls_dataset_encoded(feed->datasets[i]))
            return cores > 32 ? 32 : cores;
    return 1 + cores / 8;
}

static int start_decoder(struct ls_feed *feed, struct decoder *decoder, struct ls_error *error)
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

static int start(const struct ls_feed_options *options, struct ls_feed *feed,
                 struct ls_error *error)
{
    LS_TRY(ls_batching_check(&options->batching, "data", error));
    LS_TRY(copy_options(options, feed, error));
    int threads = options->threads > 0 ? options->threads : default_threads(feed);
    feed->decoders = ls_alloc((size_t)threads, sizeof *feed->decoders);
    if (feed->decoders == NULL)
        return ls_fail_memory(error, "a feed of data");
    feed->decoder_count = threads;
    for (int slots = slot_target(feed, options->memory); slots > 0; slots--)
        LS_TRY(add_slot(feed, error));
    for (int i = 0; i < threads; i++)
        LS_TRY(start_decoder(feed, &feed->decoders[i], error));
    return 0;
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

static void stop_decoder(struct ls_feed *feed, struct decoder *decoder)
{
    if (decoder->running)
        pthread_join(decoder->thread, NULL);
    for (int d = 0; decoder->readers != NULL && d < feed->dataset_count; d++)
        ls_reader_close(decoder->readers[d]);
    ls_free(decoder->readers);
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
        stop_decoder(feed, &feed->decoders[i]);
    for (int i = 0; i < feed->slot_count; i++)
        free_slot(feed->slots[i]);
    ls_free(feed->slots);
    ls_free(feed->decoders);
    ls_free(feed->datasets);
    ls_free(feed->inputs);
    ls_free(feed->offset);
    ls_free(feed->next.batches);
    ls_free(feed->check);
    pthread_cond_destroy(&feed->work);
    pthread_cond_destroy(&feed->done);
    pthread_mutex_destroy(&feed->lock);
    ls_free(feed);
}

/* ---- What workers call ---- */

void ls_feed_seek(struct ls_feed *feed, int64_t update)
{
    pthread_mutex_lock(&feed->lock);
    feed->generation++;
    feed->started = true;
    feed->cancelled = false;
    for (int i = 0; i < feed->slot_count; i++)
        if (feed->slots[i]->state == READY || feed->slots[i]->state == FAILED)
            feed->slots[i]->state = EMPTY;
    go_to(feed, update);
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
}

void ls_feed_cancel(struct ls_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->cancelled = true;
    pthread_cond_broadcast(&feed->done);
    pthread_mutex_unlock(&feed->lock);
}

/* Whether a micro-batch will come; else the caller has lost count. */
static int check_wanted(struct ls_feed *feed, int64_t update, int index, struct ls_error *error)
{
    bool exists = feed->started && update >= 0 && update < feed->updates_end && index >= 0 &&
                  index < micro_batches_of(feed, update);
    bool passed =
        update < feed->next.update || (update == feed->next.update && index < feed->next.index);
    if (exists && !passed)
        return 0;
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                   "micro-batch %d of update %" PRId64 " was asked for, which %s", index, update,
                   exists ? "has been handed out" : "does not exist");
}

/* An item that was found: hands it out, or says why not. */
static int hand_out(struct slot *slot, const struct ls_feed_item **item, struct ls_error *error)
{
    if (slot->state == READY) {
        slot->state = HELD;
        *item = &slot->item;
        return 0;
    }
    if (slot->state == HELD)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was taken twice", slot->item.index,
                       slot->item.update);
    if (slot->error == NULL)
        return ls_fail_memory(error, "a message about damaged data");
    for (int i = 0; i < slot->error->count; i++) {
        const struct ls_problem *problem = &slot->error->problems[i];
        ls_fail(error, problem->status, problem->place, problem->hint, "%s", problem->message);
    }
    return slot->status;
}

static int take(struct ls_feed *feed, int64_t update, int index, const struct ls_feed_item **item,
                struct ls_error *error)
{
    for (;;) {
        if (feed->cancelled)
            return ls_fail(error, LOCKSTEP_STOPPED, NULL, NULL, "the feed of data was stopped");
        struct slot *slot = find_item(feed, update, index);
        if (slot != NULL && slot->state != DECODING)
            return hand_out(slot, item, error);
        if (slot == NULL) {
            LS_TRY(check_wanted(feed, update, index, error));
            if (find_state(feed, EMPTY) == NULL && find_state(feed, DECODING) == NULL) {
                LS_TRY(add_slot(feed, error));
                pthread_cond_signal(&feed->work);
            }
        }
        pthread_cond_wait(&feed->done, &feed->lock);
    }
}

int ls_feed_take(struct ls_feed *feed, int64_t update, int index, const struct ls_feed_item **item,
                 struct ls_error *error)
{
    *item = NULL;
    pthread_mutex_lock(&feed->lock);
    int status = take(feed, update, index, item, error);
    pthread_mutex_unlock(&feed->lock);
    return status;
}

void ls_feed_release(struct ls_feed *feed, const struct ls_feed_item *item)
{
    struct slot *slot = (struct slot *)(uintptr_t)item;
    pthread_mutex_lock(&feed->lock);
    slot->state = EMPTY;
    pthread_cond_signal(&feed->work);
    pthread_mutex_unlock(&feed->lock);
}
