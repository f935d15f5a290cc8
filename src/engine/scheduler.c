/* Which worker runs which micro-batch. See engine/scheduler.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/scheduler.h"

#include "base/memory.h"
#include "engine/work_queue.h"

int ls_scheduler_create(struct ls_scheduler *scheduler, int rank, int workers, size_t units,
                        struct ls_error *error)
{
    *scheduler = (struct ls_scheduler){.rank = rank, .workers = workers};
    scheduler->own = ls_alloc(units + 1, sizeof *scheduler->own);
    return scheduler->own != NULL ? 0 : ls_fail_memory(error, "a pass");
}

void ls_scheduler_free(struct ls_scheduler *scheduler)
{
    ls_free(scheduler->own);
    scheduler->own = NULL;
}

void ls_scheduler_assign(int rank, struct ls_unit *units, const struct ls_wave *waves,
                         size_t wave_count)
{
    for (size_t i = 0; i < wave_count; i++) {
        int slots = 0;
        for (size_t unit = waves[i].begin; unit < waves[i].end; unit++)
            units[unit].slot = units[unit].rank == rank ? slots++ : -1;
    }
}

void ls_scheduler_begin(struct ls_scheduler *scheduler, const struct ls_unit *units, size_t count)
{
    scheduler->units = units;
    scheduler->own_count = 0;
    for (size_t unit = 0; unit < count; unit++)
        if (units[unit].slot >= 0)
            scheduler->own[scheduler->own_count++] = unit;
    scheduler->granted = 0;
    atomic_store(&scheduler->next, 0);
}

/* The sizes of a batch's micro-batches differ by at most one sample; taken in the order 12, 13, 12,
 * 13 ... one of two workers would get all the larger ones. So within each run of units, two for
 * every worker, those with the most samples are taken first. Runs are short, because data are
 * decoded in order. */
size_t ls_scheduler_take(struct ls_scheduler *scheduler)
{
    size_t turn = atomic_fetch_add_explicit(&scheduler->next, 1, memory_order_relaxed);
    if (turn >= scheduler->own_count)
        return SIZE_MAX;
    size_t run = 2 * (size_t)scheduler->workers, begin = turn / run * run, left = turn - begin;
    size_t end = begin + run < scheduler->own_count ? begin + run : scheduler->own_count;
    const size_t *own = scheduler->own;
    int64_t most = 0;
    for (size_t i = begin; i < end; i++) {
        int64_t samples = scheduler->units[own[i]].range.count;
        most = samples > most ? samples : most;
    }
    for (int larger = 1; larger >= 0; larger--)
        for (size_t i = begin; i < end; i++)
            if ((scheduler->units[own[i]].range.count == most) == larger && left-- == 0)
                return own[i];
    return own[turn];
}

size_t ls_scheduler_next(const struct ls_scheduler *scheduler, const struct ls_wave *wave,
                         size_t unit, int worker)
{
    for (; unit < wave->end; unit++) {
        int slot = scheduler->units[unit].slot;
        if (slot >= 0 && (worker < 0 || slot % scheduler->workers == worker))
            return unit;
    }
    return wave->end;
}

size_t ls_scheduler_before(const struct ls_scheduler *scheduler, const struct ls_wave *wave,
                           size_t unit, int worker)
{
    for (; unit > wave->begin; unit--) {
        int slot = scheduler->units[unit - 1].slot;
        if (slot >= 0 && slot % scheduler->workers == worker)
            return unit - 1;
    }
    return wave->end;
}

/* ---- The work queue -------------------------------------------------------------------------- */

/* The queue calls it for each unit that this rank gets. */
static void scheduler_granted(void *user, size_t unit)
{
    struct ls_scheduler *scheduler = user;
    const struct ls_scheduler_listener *listener = &scheduler->listener;
    if (unit == SIZE_MAX) {
        listener->all_known(listener->user);
        return;
    }
    scheduler->granted++;
    listener->want(listener->user, unit, false);
}

int ls_scheduler_open_round(struct ls_scheduler *scheduler, const struct ls_wave *round,
                            const struct ls_scheduler_listener *listener, struct ls_error *error)
{
    scheduler->listener = *listener;
    scheduler->round_end = round->end;
    int status = ls_work_queue_begin(scheduler->queue, round->begin, round->end, scheduler_granted,
                                     scheduler, error);
    scheduler->open = status == 0;
    return status;
}

int ls_scheduler_take_granted(struct ls_scheduler *scheduler, size_t *unit, struct ls_error *error)
{
    return ls_work_queue_take(scheduler->queue, unit, error);
}

void ls_scheduler_look_ahead(const struct ls_scheduler *scheduler, const struct ls_wave *next,
                             bool next_update)
{
    const struct ls_scheduler_listener *listener = &scheduler->listener;
    size_t first, count;
    ls_work_queue_given(scheduler->queue, &first, &count);
    for (size_t i = first; i < first + count; i++)
        if (next->begin + i < next->end)
            listener->want(listener->user, next->begin + i, false);
        else if (next_update)
            listener->want(listener->user, i, true);
}
