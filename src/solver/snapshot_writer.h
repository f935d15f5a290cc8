/* The thread that writes a training's snapshots from copies, while the training goes on; one at a
 * time, on rank 0. solver/snapshots.h decides when.
 *
 * What is written is the writer's from ls_snapshot_writer_start until ls_snapshot_writer_wait; all
 * else belongs to the thread that trains, which calls these functions.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_SNAPSHOT_WRITER_H
#define LS_SOLVER_SNAPSHOT_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "solver/checkpoint.h"

/* A snapshot and what became of it. */
struct ls_written {
    int64_t iteration;
    int status;              /* of writing it */
    struct ls_error problem; /* why it failed */
    struct ls_error besides; /* what went wrong besides, which does not harm it */
    bool best;               /* it is the best one so far */
    double score;            /* and what it scored */
};

struct ls_snapshot_writer {
    const struct ls_trainer *trainer;
    struct ls_staged staged;  /* the copy */
    struct ls_written latest; /* `best` and `score` with the lock while it is being written */
    pthread_t thread;
    bool has_thread; /* and it must be joined */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic bool done;       /* by the thread; changed with the lock */
    _Atomic uint64_t pieces; /* that were written */
};

void ls_snapshot_writer_init(struct ls_snapshot_writer *writer, const struct ls_trainer *trainer);
/* Waits for the thread. */
void ls_snapshot_writer_free(struct ls_snapshot_writer *writer);

/* Begins to write the copy (`staged`) as the snapshot of latest.iteration: in a thread or, where
 * none can be had, here. */
void ls_snapshot_writer_start(struct ls_snapshot_writer *writer);
/* Whether the thread is done, and has not been waited for. */
bool ls_snapshot_writer_is_done(const struct ls_snapshot_writer *writer);
/* Waits for the thread: `latest` is complete then, and the copy is free again. While the thread
 * gets on, the failure detector sees that this rank does. */
void ls_snapshot_writer_wait(struct ls_snapshot_writer *writer);
/* The snapshot that is being written is the best one so far, with this score; false: none is being
 * written any more. */
bool ls_snapshot_writer_mark_best(struct ls_snapshot_writer *writer, double score);

/* The snapshot of latest.iteration has been written: older ones may go. What fails here does not
 * harm it (latest.besides). */
void ls_snapshot_writer_prune(struct ls_snapshot_writer *writer);

#endif
