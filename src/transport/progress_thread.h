/* The progress thread: drives the collectives of a rank while its workers compute.
 *
 * Collectives start in the order in which they were queued, the same on all ranks, each as soon as
 * it is ready and all before it have started. The progress thread sleeps while it has nothing to
 * do, and polls at growing intervals while a collective is under way, because it shares cores with
 * the workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_PROGRESS_THREAD_H
#define LS_TRANSPORT_PROGRESS_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/comm.h"

struct ls_timeline;

enum { LS_COLLECTIVES_UNDER_WAY = 4 }; /* collectives at a time */

enum ls_collective_state {
    LS_COLLECTIVE_IDLE,
    LS_COLLECTIVE_QUEUED,
    LS_COLLECTIVE_READY,
    LS_COLLECTIVE_SENT,
    LS_COLLECTIVE_DONE
};

struct ls_collective {
    /* By the progress thread: starts the operation (see struct ls_transport_calls), 0 or -1. */
    int (*start)(struct ls_collective *collective, struct ls_transport *transport,
                 struct ls_transport_op **op);
    /* (optional) By the progress thread: what became of it, in place of the transport's `test`. One
     * that FAILED has said so in transport->failure. */
    enum ls_transport_result (*test)(struct ls_collective *collective,
                                     struct ls_transport *transport);
    /* (optional) By the progress thread: uses what arrived. */
    void (*finish)(struct ls_collective *collective);
    void *user;
    size_t index;               /* the user's */
    const char *name;           /* for a trace; NULL: none */
    uint32_t number;            /* in the order in which all ranks queue them */
    int lane;                   /* of those under way at a time */
    uint64_t left;              /* when it was started, for a trace; else 0 */
    _Atomic int state;          /* enum ls_collective_state */
    struct ls_collective *next; /* the progress thread's */
    struct ls_transport_op *op;
};

/* `enter_thread` prepares the thread for computing; may be NULL. */
int ls_progress_thread_start(struct ls_comm *comm, void (*enter_thread)(void),
                             struct ls_progress_thread **progress_thread, struct ls_error *error);
/* Nothing may be under way. */
void ls_progress_thread_stop(struct ls_progress_thread *progress_thread);

/* Other ranks are lost, and what is queued or under way never ends: it is touched no more, and no
 * collective is started from now on. NULL: no effect. */
void ls_progress_thread_give_up(struct ls_progress_thread *progress_thread);

/* Exchanges are recorded in this trace (NULL: no longer). Nothing may be under way. */
void ls_progress_thread_trace(struct ls_progress_thread *progress_thread,
                              struct ls_timeline *trace);

/* Messages are expected (true): they are received within a fraction of a millisecond, until the
 * same call with false. Calls are counted. NULL: no effect. */
void ls_progress_thread_listen(struct ls_progress_thread *progress_thread, bool on);

/* Appends a collective that is IDLE or DONE; it lives until it is DONE. */
void ls_progress_thread_queue(struct ls_progress_thread *progress_thread,
                              struct ls_collective *collective);
/* Marks a queued collective as ready to start. Any thread. */
void ls_progress_thread_ready(struct ls_progress_thread *progress_thread,
                              struct ls_collective *collective);
/* Waits until a collective is DONE; at once if it was never queued. Any thread. */
int ls_progress_thread_wait(struct ls_progress_thread *progress_thread,
                            struct ls_collective *collective, struct ls_error *error);
static inline bool ls_collective_done(const struct ls_collective *collective)
{
    int state = atomic_load_explicit(&collective->state, memory_order_acquire);
    return state == LS_COLLECTIVE_DONE || state == LS_COLLECTIVE_IDLE;
}

#endif
