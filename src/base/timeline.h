/* A trace: what each thread did when, for people to look at. Optional, and nothing depends on it.
 *
 * Every thread that takes part writes to a track of its own, without locks, also while another one
 * reads: that sees the events up to some moment. Where a thread has no track, or the trace has no
 * room left, nothing is recorded. Names are borrowed: they outlive the trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_TIMELINE_H
#define LS_BASE_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/thread.h"

enum ls_timeline_kind {
    LS_TIMELINE_UPDATE,      /* number: of the update */
    LS_TIMELINE_MICRO_BATCH, /* number: of the micro-batch */
    LS_TIMELINE_FORWARD,     /* name: of the layer */
    LS_TIMELINE_BACKWARD,    /* the same */
    LS_TIMELINE_APPLY,       /* new weights */
    LS_TIMELINE_BARRIER,     /* waiting for other workers */
    LS_TIMELINE_DATA,        /* waiting for data */
    LS_TIMELINE_DECODE,      /* number: of samples */
    LS_TIMELINE_TEST,        /* a test phase */
    LS_TIMELINE_SNAPSHOT,    /* a snapshot, as far as training waits for it */
    LS_TIMELINE_EXCHANGE,    /* between ranks; number: in the order that all ranks have */
    LS_TIMELINE_READY        /* a moment: the exchange of that number may begin */
};

struct ls_timeline_event {
    uint64_t begin, end; /* ls_nanoseconds */
    const char *name;    /* NULL: the kind says enough */
    uint32_t number;
    uint32_t kind;
};

enum { LS_TIMELINE_BLOCK = 4096 /* events */ };
struct ls_timeline_block {
    struct ls_timeline_block *_Atomic next;
    _Atomic size_t count; /* events that are written */
    struct ls_timeline_event event[LS_TIMELINE_BLOCK];
};

/* A line of the picture: what one thread, or one exchange at a time, did. */
struct ls_timeline_track {
    struct ls_timeline *trace;
    char name[32];
    int number;
    struct ls_timeline_block *_Atomic first;
    struct ls_timeline_block *last; /* owner: the thread that writes */
    struct ls_timeline_track *next;
};

struct ls_timeline {
    pthread_mutex_t lock; /* guards the list of tracks */
    struct ls_timeline_track *tracks, **end;
    int count;
    _Atomic long blocks; /* that there is room for */
    _Atomic bool full;   /* nothing more is recorded */
    uint64_t begun;
};

int ls_timeline_create(size_t bytes, struct ls_timeline **trace, struct ls_error *error);
/* No thread may write to its tracks any more. */
void ls_timeline_free(struct ls_timeline *trace);
/* A track, or NULL (there is no trace, or no memory): then nothing is recorded there. */
struct ls_timeline_track *ls_timeline_track(struct ls_timeline *trace, const char *name);

/* Where the calling thread writes to; NULL: nowhere. */
extern _Thread_local struct ls_timeline_track *ls_timeline_here;
/* The trace of the calling thread, for threads that it starts; NULL: none. */
static inline struct ls_timeline *ls_timeline_of_thread(void)
{
    return ls_timeline_here != NULL ? ls_timeline_here->trace : NULL;
}

/* The time now; 0 where nothing is recorded. */
static inline uint64_t ls_timeline_start(void)
{
    return ls_timeline_here != NULL ? ls_nanoseconds() : 0;
}
/* Adds what the calling thread has done since `begin`; 0: nothing. Returns the time now, or 0. */
uint64_t ls_timeline_record(enum ls_timeline_kind kind, const char *name, uint32_t number,
                            uint64_t begin);
static inline uint64_t ls_timeline_add(enum ls_timeline_kind kind, const char *name,
                                       uint32_t number, uint64_t begin)
{
    return begin != 0 ? ls_timeline_record(kind, name, number, begin) : 0;
}
/* The same for any track (NULL: none), which one thread writes to at a time. */
void ls_timeline_put(struct ls_timeline_track *track, const struct ls_timeline_event *event);

#endif
