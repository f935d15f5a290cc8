/* The sequence of micro-batches that a prefetcher goes through: update by update, batch by batch.
 *
 * A batch is cut when its first micro-batch is claimed. Where sizes vary this reads headers, and
 * may fail; then no later micro-batch can be named, and takers of these get the error, until a seek
 * goes elsewhere. Micro-batches of other ranks are skipped.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/memory.h"
#include "data/prefetcher_inner.h"

enum { BATCHES_SEARCHED = 1000 };

int ls_position_open(struct ls_prefetcher *prefetcher, struct ls_error *error)
{
    struct ls_position *p = &prefetcher->position;
    size_t batches = (size_t)prefetcher->batching.iter_size;
    p->batches = ls_alloc(batches, sizeof *p->batches);
    prefetcher->check = ls_alloc(batches, sizeof *prefetcher->check);
    p->micro = ls_alloc((size_t)ls_batching_most(&prefetcher->batching, prefetcher->batching.batch),
                        sizeof *p->micro);
    p->error = ls_alloc(1, sizeof *p->error);
    if (p->batches == NULL || prefetcher->check == NULL || p->micro == NULL || p->error == NULL)
        return ls_fail_memory(error, "the micro-batches of a batch");
    return 0;
}

void ls_position_close(struct ls_prefetcher *prefetcher)
{
    ls_free(prefetcher->position.batches);
    ls_free(prefetcher->position.micro);
    ls_free(prefetcher->position.error);
    ls_free(prefetcher->check);
    ls_free(prefetcher->queue.items);
}

void ls_position_enter(struct ls_prefetcher *prefetcher, int64_t update)
{
    struct ls_position *p = &prefetcher->position;
    p->update = update;
    p->index = p->batch = 0;
    p->micro_count = p->next = 0;
    p->batch_count = update < prefetcher->updates_end
                         ? ls_batching_update(&prefetcher->batching, update, p->batches)
                         : 0;
}

void ls_position_go_to(struct ls_prefetcher *prefetcher, int64_t update)
{
    prefetcher->position.status = 0;
    prefetcher->position.wanted = -1;
    ls_error_clear(prefetcher->position.error);
    prefetcher->queue.count = 0;
    ls_position_enter(prefetcher, update);
}

/* Cuts the current batch and goes to the first micro-batch of it that is the prefetcher's. */
static int cut(struct ls_prefetcher *prefetcher)
{
    struct ls_position *p = &prefetcher->position;
    LS_TRY(ls_batching_cut(&prefetcher->batching, &p->batches[p->batch], p->micro, &p->micro_count,
                           p->error));
    ls_share_run(&prefetcher->share, p->micro_count, &p->next, &p->end);
    p->index += (int)p->next;
    return 0;
}

/* Goes on to the next batch, past what is left of this one. */
static void leave(struct ls_prefetcher *prefetcher)
{
    struct ls_position *p = &prefetcher->position;
    p->index += (int)(p->micro_count - p->next);
    p->micro_count = p->next = 0;
    if (++p->batch == p->batch_count)
        ls_position_enter(prefetcher, p->update + 1);
}

/* Makes `next` a micro-batch of the prefetcher's. A share may have nothing of many batches, or of
 * all that there ever will be: the search ends before it takes long, unless a taker waits. */
static bool find_next(struct ls_prefetcher *prefetcher)
{
    struct ls_position *p = &prefetcher->position;
    for (int batches = 0; prefetcher->started && p->status == 0 && p->batch_count > 0; batches++) {
        if (batches > BATCHES_SEARCHED && p->update > p->wanted)
            break;
        if (p->micro_count == 0)
            p->status = cut(prefetcher);
        if (p->status == 0 && p->next < p->end)
            return true;
        if (p->status == 0)
            leave(prefetcher);
    }
    return false;
}

bool ls_position_claim(struct ls_prefetcher *prefetcher, struct ls_prefetch_item *item)
{
    struct ls_position *p = &prefetcher->position;
    if (prefetcher->share.any)
        return ls_prefetch_queue_claim(prefetcher, item);
    if (!find_next(prefetcher)) {
        if (atomic_load(&prefetcher->waiting) > 0)
            pthread_cond_broadcast(&prefetcher->done);
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
        leave(prefetcher);
    return true;
}

/* How many micro-batches an update has at most: exact where sizes and groups play no part. Where
 * they do, the position skips what does not exist, so no taker waits for it forever. */
static int64_t most_of(struct ls_prefetcher *prefetcher, int64_t update)
{
    int64_t count = 0;
    int batches = ls_batching_update(&prefetcher->batching, update, prefetcher->check);
    for (int i = 0; i < batches; i++)
        count += ls_batching_most(&prefetcher->batching, prefetcher->check[i].count);
    return count;
}

int ls_position_expect(struct ls_prefetcher *prefetcher, int64_t update, int index,
                       struct ls_error *error)
{
    struct ls_position *p = &prefetcher->position;
    if (prefetcher->share.any)
        return ls_prefetch_queue_expect(prefetcher, update, index, error);
    bool exists = prefetcher->started && update >= 0 && update < prefetcher->updates_end &&
                  index >= 0 && index < most_of(prefetcher, update);
    bool passed = update < p->update || (update == p->update && index < p->index);
    if (!exists || passed)
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "micro-batch %d of update %" PRId64 " was asked for, which %s", index,
                       update, exists ? "has been handed out or never was" : "does not exist");
    if (p->status != 0)
        ls_prefetcher_report(p->error, error);
    p->wanted = update > p->wanted ? update : p->wanted;
    return p->status;
}
