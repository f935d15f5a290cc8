/* The scheduler: which rank, and which of its workers, runs which micro-batch of a pass.
 *
 * No rule here changes a bit: gradients are summed as integers, and records are merged along a tree
 * over the numbers of the micro-batches.
 *
 * Ranks: each has a part of every batch, in proportion to its workers; or, with a work queue
 *   (engine/work_queue.h), ranks take micro-batches as they get free.
 * Workers: where micro-batches do not wait for each other, a worker takes the next one as it gets
 *   free. Where those of a wave go through the net together, number i of the rank's belongs to
 *   worker i mod W, whose memory it keeps (its slot).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_SCHEDULER_H
#define LS_ENGINE_SCHEDULER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/batching.h"

struct ls_net_plan;
struct ls_work_queue;

/* A micro-batch of the pass at hand. */
struct ls_unit {
    int64_t update; /* the prefetcher's: which update (a test: which batch) */
    int index;      /* the prefetcher's: which micro-batch of it */
    struct ls_batch range;
    int64_t row; /* of the update's samples, batch by batch: which is its first */
    struct ls_net_plan *plan;
    int rank;    /* of the job: whose it is where they are partitioned */
    int slot;    /* of this rank's units of the wave, its number; -1: another rank's */
    bool broken; /* a kernel failed: no later step of it runs */
    bool kept;   /* this rank's device keeps its record (engine/records.h) */
};

/* Micro-batches that go through the net together, where they exchange partial results. */
struct ls_wave {
    size_t begin, end; /* units */
};

/* What is to be done about units of the work queue. `want`: this rank will run unit `unit` of the
 * pass or, with `next_update`, one of the first of the next update: its data can be decoded.
 * `all_known`: no more units of the round will come to this rank. Any thread, one at a time. */
struct ls_scheduler_listener {
    void (*want)(void *user, size_t unit, bool next_update);
    void (*all_known)(void *user);
    void *user;
};

struct ls_scheduler {
    int rank, workers;
    struct ls_work_queue *queue; /* NULL: micro-batches are partitioned */
    const struct ls_unit *units; /* of the pass */
    size_t *own;                 /* this rank's units, in order */
    size_t own_count;
    _Atomic size_t next; /* of `own` */
    /* With a work queue. */
    bool open;        /* units can be taken, */
    size_t round_end; /* those before this one */
    int granted;      /* to this rank in this pass; by the thread that receives grants */
    struct ls_scheduler_listener listener;
};

/* For at most `units` in a pass. `queue` may be NULL, and is set before the first pass. */
int ls_scheduler_create(struct ls_scheduler *scheduler, int rank, int workers, size_t units,
                        struct ls_error *error);
void ls_scheduler_free(struct ls_scheduler *scheduler);

/* Gives this rank's units of each wave their slots, by their ranks. */
void ls_scheduler_assign(int rank, struct ls_unit *units, const struct ls_wave *waves,
                         size_t wave_count);
/* Begins a pass over units that are assigned. */
void ls_scheduler_begin(struct ls_scheduler *scheduler, const struct ls_unit *units, size_t count);

/* For a worker that gets free: the next of this rank's units; SIZE_MAX: there are none left. Any
 * thread. */
size_t ls_scheduler_take(struct ls_scheduler *scheduler);
/* In a wave: the worker's next unit, `unit` itself or a later one; wave->end: none. LS_ANY_WORKER:
 * the rank's next. */
enum { LS_ANY_WORKER = -1 };
size_t ls_scheduler_next(const struct ls_scheduler *scheduler, const struct ls_wave *wave,
                         size_t unit, int worker);
/* The same backwards: the worker's last unit in front of `unit`; wave->end: none. */
size_t ls_scheduler_before(const struct ls_scheduler *scheduler, const struct ls_wave *wave,
                           size_t unit, int worker);

/* A round of the work queue, by one thread, before others take units of it. */
int ls_scheduler_open_round(struct ls_scheduler *scheduler, const struct ls_wave *round,
                            const struct ls_scheduler_listener *listener, struct ls_error *error);
/* The next unit for a worker; SIZE_MAX: none is left. */
int ls_scheduler_take_granted(struct ls_scheduler *scheduler, size_t *unit, struct ls_error *error);
/* After a round: requests what this rank will be given first in `next`, the round that follows, as
 * far as it goes; in the next update, where there is no more in this one and `next_update` says
 * that it begins with as large a round. Nothing else, for what is not taken stays in memory. */
void ls_scheduler_look_ahead(const struct ls_scheduler *scheduler, const struct ls_wave *next,
                             bool next_update);

#endif
