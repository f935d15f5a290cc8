/* The sequence of micro-batches that a feed goes through: update by update, batch by batch.
 *
 * A batch is cut when its first micro-batch is claimed. Where sizes vary that may read headers, and
 * may fail; then nothing behind that place can be named, and whoever wants it is told why, until a
 * seek leads somewhere else. Of each batch those micro-batches are passed that others have.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/memory.h"
#include "data/feed_inner.h"

enum { BATCHES_SEARCHED = 1000 };

int ls_position_open(struct ls_feed *feed, struct ls_error *error)
{
    struct ls_position *p = &feed->position;
    size_t batches = (size_t)feed->batching.iter_size;
    p->batches = ls_alloc(batches, sizeof *p->batches);
    feed->check = ls_alloc(batches, sizeof *feed->check);
    p->micro =
        ls_alloc((size_t)ls_batching_most(&feed->batching, feed->batching.batch), sizeof *p->micro);
    p->error = ls_alloc(1, sizeof *p->error);
    if (p->batches == NULL || feed->check == NULL || p->micro == NULL || p->error == NULL)
        return ls_fail_memory(error, "the micro-batches of a batch");
    return 0;
}

void ls_position_close(struct ls_feed *feed)
{
    ls_free(feed->position.batches);
    ls_free(feed->position.micro);
    ls_free(feed->position.error);
    ls_free(feed->check);
    ls_free(feed->wants.items);
}

void ls_position_enter(struct ls_feed *feed, int64_t update)
{
    struct ls_position *p = &feed->position;
    p->update = update;
    p->index = p->batch = 0;
    p->micro_count = p->next = 0;
    p->batch_count =
        update < feed->updates_end ? ls_batching_update(&feed->batching, update, p->batches) : 0;
}

void ls_position_go_to(struct ls_feed *feed, int64_t update)
{
    feed->position.status = 0;
    feed->position.wanted = -1;
    ls_error_clear(feed->position.error);
    feed->wants.count = 0;
    ls_position_enter(feed, update);
}

/* Cuts the current batch and goes to the first micro-batch of it that is the feed's. */
static int cut(struct ls_feed *feed)
{
    struct ls_position *p = &feed->position;
    LS_TRY(ls_batching_cut(&feed->batching, &p->batches[p->batch], p->micro, &p->micro_count,
                           p->error));
    ls_share_run(&feed->share, p->micro_count, &p->next, &p->end);
    p->index += (int)p->next;
    return 0;
}

/* Goes on to the next batch, past what is left of this one. */
static void leave(struct ls_feed *feed)
{
    struct ls_position *p = &feed->position;
    p->index += (int)(p->micro_count - p->next);
    p->micro_count = p->next = 0;
    if (++p->batch == p->batch_count)
        ls_position_enter(feed, p->update + 1);
}

/* Makes `next` a micro-batch of the feed's. A share may have nothing of many batches, or of all
 * that there ever will be: the search ends before it takes long, unless somebody waits. */
static bool find_next(struct ls_feed *feed)
{
    struct ls_position *p = &feed->position;
    for (int batches = 0; feed->started && p->status == 0 && p->batch_count > 0; batches++) {
        if (batches > BATCHES_SEARCHED && p->update > p->wanted)
            break;
        if (p->micro_count == 0)
            p->status = cut(feed);
        if (p->status == 0 && p->next < p->end)
            return true;
        if (p->status == 0)
            leave(feed);
    }
    return false;
}

bool ls_position_claim(struct ls_feed *feed, struct ls_feed_item *item)
{
    struct ls_position *p = &feed->position;
    if (feed->share.any)
        return ls_wants_claim(feed, item);
    if (!find_next(feed)) {
        if (atomic_load(&feed->waiting) > 0)
            pthread_cond_broadcast(&feed->done);
        return false;
    }
    const struct ls_micro *micro = &p->micro[p->next];
    item->update = p->update;
    item->index = p->index++;
    item->ordinal = micro->ordinal;
    item->samples = micro->count;
    for (int i = 0; i < 3; i++)
        item->shape[i] = micro->shape[i];
    if (++p->next == p->end)
        leave(feed);
    return true;
}

/* How many micro-batches an update has at most: exact where sizes and groups play no part. Where
 * they do, the position passes what does not exist, so nobody waits for it forever. */
static int64_t most_of(struct ls_feed *feed, int64_t update)
{
    int64_t count = 0;
    int batches = ls_batching_update(&feed->batching, update, feed->check);
    for (int i = 0; i < batches; i++)
        count += ls_batching_most(&feed->batching, feed->check[i].count);
    return count;
}

int ls_position_expect(struct ls_feed *feed, int64_t update, int index, struct ls_error *error)
{
    struct ls_position *p = &feed->position;
    if (feed->share.any)
        return ls_wants_expect(feed, update, index, error);
    bool exists = feed->started && update >= 0 && update < feed->updates_end && index >= 0 &&
                  index < most_of(feed, update);
    bool passed = update < p->update || (update == p->update && index < p->index);
    if (!exists || passed)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was asked for, which %s", index,
                       update, exists ? "has been handed out or never was" : "does not exist");
    if (p->status != 0)
        ls_feed_report(p->error, error);
    p->wanted = update > p->wanted ? update : p->wanted;
    return p->status;
}
