/* A feed of any micro-batches: decodes those that are wanted, in that order. See data/feed_inner.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/memory.h"
#include "data/feed_inner.h"

static bool longer(struct ls_wants *wants)
{
    size_t capacity = wants->capacity > 0 ? 2 * wants->capacity : 16;
    struct ls_want *items = ls_alloc(capacity, sizeof *items);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < wants->count; i++)
        items[i] = wants->items[(wants->first + i) % wants->capacity];
    ls_free(wants->items);
    *wants = (struct ls_wants){.items = items, .count = wants->count, .capacity = capacity};
    return true;
}

/* Adds it behind the others, or in front of them. */
static bool add(struct ls_wants *wants, int64_t update, int index, bool front)
{
    if (wants->count == wants->capacity && !longer(wants))
        return false;
    if (front)
        wants->first = (wants->first + wants->capacity - 1) % wants->capacity;
    size_t at = (wants->first + (front ? 0 : wants->count)) % wants->capacity;
    wants->items[at] = (struct ls_want){.update = update, .index = index};
    wants->count++;
    return true;
}

static bool is_wanted(const struct ls_wants *wants, int64_t update, int index)
{
    for (size_t i = 0; i < wants->count; i++) {
        const struct ls_want *want = &wants->items[(wants->first + i) % wants->capacity];
        if (want->update == update && want->index == index)
            return true;
    }
    return false;
}

void ls_feed_want(struct ls_feed *feed, int64_t update, int index)
{
    pthread_mutex_lock(&feed->lock);
    bool known = ls_slot_of(feed, update, index) != NULL || is_wanted(&feed->wants, update, index);
    /* Without memory it is decoded when it is taken. */
    if (feed->started && !known && add(&feed->wants, update, index, false))
        pthread_cond_signal(&feed->work);
    pthread_mutex_unlock(&feed->lock);
}

/* Goes to the batch of a micro-batch; false: there is none, or position.status says why that is not
 * known. The position's index is that of the first micro-batch of its batch. */
static bool locate(struct ls_feed *feed, int64_t update, int index)
{
    struct ls_position *p = &feed->position;
    if (update < 0 || update >= feed->updates_end || index < 0 || p->status != 0)
        return false;
    if (p->update != update || index < p->index)
        ls_position_enter(feed, update);
    while (p->batch < p->batch_count) {
        if (p->micro_count == 0)
            p->status = ls_batching_cut(&feed->batching, &p->batches[p->batch], p->micro,
                                        &p->micro_count, p->error);
        if (p->status != 0)
            return false;
        if (index < p->index + p->micro_count)
            return true;
        p->index += (int)p->micro_count;
        p->micro_count = 0;
        p->batch++;
    }
    ls_position_enter(feed, update);
    return false;
}

static void fill(struct ls_feed_item *item, const struct ls_position *p, const struct ls_want *want)
{
    const struct ls_micro *micro = &p->micro[want->index - p->index];
    item->update = want->update;
    item->index = want->index;
    item->ordinal = micro->ordinal;
    item->samples = micro->count;
    for (int i = 0; i < 3; i++)
        item->shape[i] = micro->shape[i];
}

bool ls_wants_claim(struct ls_feed *feed, struct ls_feed_item *item)
{
    struct ls_wants *wants = &feed->wants;
    while (feed->started && wants->count > 0) {
        struct ls_want want = wants->items[wants->first];
        wants->first = (wants->first + 1) % wants->capacity;
        wants->count--;
        if (locate(feed, want.update, want.index)) {
            fill(item, &feed->position, &want);
            return true;
        }
        if (feed->position.status != 0) { /* whoever waits for it is told so */
            pthread_cond_broadcast(&feed->done);
            return false;
        }
    }
    return false;
}

int ls_wants_expect(struct ls_feed *feed, int64_t update, int index, struct ls_error *error)
{
    struct ls_position *p = &feed->position;
    bool exists = feed->started && locate(feed, update, index);
    if (p->status != 0) {
        ls_feed_report(p->error, error);
        return p->status;
    }
    if (!exists)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was asked for, which does not exist",
                       index, update);
    if (!is_wanted(&feed->wants, update, index) && !add(&feed->wants, update, index, true))
        return ls_fail_memory(error, "a feed of data");
    return 0;
}
