/* Recording what threads do. See base/timeline.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/timeline.h"

#include <stdio.h>

#include "base/memory.h"

_Thread_local struct ls_timeline_track *ls_timeline_here;

int ls_timeline_create(size_t bytes, struct ls_timeline **out, struct ls_error *error)
{
    struct ls_timeline *trace = *out = ls_alloc(1, sizeof *trace);
    if (trace == NULL)
        return ls_fail_memory(error, "a trace");
    pthread_mutex_init(&trace->lock, NULL);
    trace->end = &trace->tracks;
    trace->begun = ls_nanoseconds();
    atomic_init(&trace->blocks, (long)(bytes / sizeof(struct ls_timeline_block)));
    return 0;
}

static void free_track(struct ls_timeline_track *track)
{
    for (struct ls_timeline_block *block = track->first; block != NULL;) {
        struct ls_timeline_block *next = block->next;
        ls_free(block);
        block = next;
    }
    ls_free(track);
}

void ls_timeline_free(struct ls_timeline *trace)
{
    if (trace == NULL)
        return;
    for (struct ls_timeline_track *track = trace->tracks; track != NULL;) {
        struct ls_timeline_track *next = track->next;
        free_track(track);
        track = next;
    }
    pthread_mutex_destroy(&trace->lock);
    ls_free(trace);
}

struct ls_timeline_track *ls_timeline_track(struct ls_timeline *trace, const char *name)
{
    struct ls_timeline_track *track = trace != NULL ? ls_alloc(1, sizeof *track) : NULL;
    if (track == NULL)
        return NULL;
    track->trace = trace;
    snprintf(track->name, sizeof track->name, "%s", name);
    pthread_mutex_lock(&trace->lock);
    track->number = trace->count++;
    *trace->end = track;
    trace->end = &track->next;
    pthread_mutex_unlock(&trace->lock);
    return track;
}

/* Room for one more event; NULL: there is none, and from now on there is none on any track. */
static struct ls_timeline_block *room_of(struct ls_timeline_track *track)
{
    struct ls_timeline *trace = track->trace;
    if (track->last != NULL &&
        atomic_load_explicit(&track->last->count, memory_order_relaxed) < LS_TIMELINE_BLOCK)
        return track->last;
    struct ls_timeline_block *block =
        atomic_fetch_sub(&trace->blocks, 1) > 0 ? ls_alloc(1, sizeof *block) : NULL;
    if (block == NULL) {
        atomic_store(&trace->full, true);
        return NULL;
    }
    if (track->last != NULL)
        track->last->next = block;
    else
        track->first = block;
    return track->last = block;
}

void ls_timeline_put(struct ls_timeline_track *track, const struct ls_timeline_event *event)
{
    if (track == NULL || atomic_load_explicit(&track->trace->full, memory_order_relaxed))
        return;
    struct ls_timeline_block *block = room_of(track);
    if (block == NULL)
        return;
    const size_t at = atomic_load_explicit(&block->count, memory_order_relaxed);
    block->event[at] = *event;
    atomic_store_explicit(&block->count, at + 1, memory_order_release);
}

uint64_t ls_timeline_record(enum ls_timeline_kind kind, const char *name, uint32_t number,
                            uint64_t begin)
{
    struct ls_timeline_event event = {
        .begin = begin, .end = ls_nanoseconds(), .name = name, .number = number, .kind = kind};
    ls_timeline_put(ls_timeline_here, &event);
    return event.end;
}
