/* A prefetcher of any micro-batches: decodes those that are wanted, in that order. See
 * data/prefetcher_inner.h. SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/memory.h"
#include "data/prefetcher_inner.h"

static bool longer(struct ls_prefetch_queue *queue)
{
    size_t capacity = queue->capacity > 0 ? 2 * queue->capacity : 16;
    struct ls_prefetch_request *items = ls_alloc(capacity, sizeof *items);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < queue->count; i++)
        items[i] = queue->items[(queue->first + i) % queue->capacity];
    ls_free(queue->items);
    *queue =
        (struct ls_prefetch_queue){.items = items, .count = queue->count, .capacity = capacity};
    return true;
}

/* Adds it behind the others, or in front of them. */
static bool add(struct ls_prefetch_queue *queue, int64_t update, int index, bool front)
{
    if (queue->count == queue->capacity && !longer(queue))
        return false;
    if (front)
        queue->first = (queue->first + queue->capacity - 1) % queue->capacity;
    size_t at = (queue->first + (front ? 0 : queue->count)) % queue->capacity;
    queue->items[at] = (struct ls_prefetch_request){.update = update, .index = index};
    queue->count++;
    return true;
}

static bool is_wanted(const struct ls_prefetch_queue *queue, int64_t update, int index)
{
    for (size_t i = 0; i < queue->count; i++) {
        const struct ls_prefetch_request *want =
            &queue->items[(queue->first + i) % queue->capacity];
        if (want->update == update && want->index == index)
            return true;
    }
    return false;
}

void ls_prefetcher_request(struct ls_prefetcher *prefetcher, int64_t update, int index)
{
    pthread_mutex_lock(&prefetcher->lock);
    bool known = ls_prefetch_slot_of(prefetcher, update, index) != NULL ||
                 is_wanted(&prefetcher->queue, update, index);
    /* Without memory it is decoded when it is taken. */
    if (prefetcher->started && !known && add(&prefetcher->queue, update, index, false))
        pthread_cond_signal(&prefetcher->work);
    pthread_mutex_unlock(&prefetcher->lock);
}

/* Goes to the batch of a micro-batch; false: there is none, or position.status says why that is not
 * known. The position's index is that of the first micro-batch of its batch. */
static bool locate(struct ls_prefetcher *prefetcher, int64_t update, int index)
{
    struct ls_position *p = &prefetcher->position;
    if (update < 0 || update >= prefetcher->updates_end || index < 0 || p->status != 0)
        return false;
    if (p->update != update || index < p->index)
        ls_position_enter(prefetcher, update);
    while (p->batch < p->batch_count) {
        if (p->micro_count == 0)
            p->status = ls_batching_cut(&prefetcher->batching, &p->batches[p->batch], p->micro,
                                        &p->micro_count, p->error);
        if (p->status != 0)
            return false;
        if (index < p->index + p->micro_count)
            return true;
        p->index += (int)p->micro_count;
        p->micro_count = 0;
        p->batch++;
    }
    ls_position_enter(prefetcher, update);
    return false;
}

static void fill(struct ls_prefetch_item *item, const struct ls_position *p,
                 const struct ls_prefetch_request *want)
{
    const struct ls_micro *micro = &p->micro[want->index - p->index];
    item->update = want->update;
    item->index = want->index;
    item->ordinal = micro->ordinal;
    item->samples = micro->count;
    for (int i = 0; i < 3; i++)
        item->shape[i] = micro->shape[i];
}

bool ls_prefetch_queue_claim(struct ls_prefetcher *prefetcher, struct ls_prefetch_item *item)
{
    struct ls_prefetch_queue *queue = &prefetcher->queue;
    while (prefetcher->started && queue->count > 0) {
        struct ls_prefetch_request want = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        if (locate(prefetcher, want.update, want.index)) {
            fill(item, &prefetcher->position, &want);
            return true;
        }
        if (prefetcher->position.status != 0) { /* wake the takers: they report it */
            pthread_cond_broadcast(&prefetcher->done);
            return false;
        }
    }
    return false;
}

int ls_prefetch_queue_expect(struct ls_prefetcher *prefetcher, int64_t update, int index,
                             struct ls_error *error)
{
    struct ls_position *p = &prefetcher->position;
    bool exists = prefetcher->started && locate(prefetcher, update, index);
    if (p->status != 0) {
        ls_prefetcher_report(p->error, error);
        return p->status;
    }
    if (!exists)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was asked for, which does not exist",
                       index, update);
    if (!is_wanted(&prefetcher->queue, update, index) &&
        !add(&prefetcher->queue, update, index, true))
        return ls_fail_memory(error, "a prefetcher of data");
    return 0;
}
