/* A thread pool: the threads that work together on one training or test. The calling thread is
 * worker 0. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_THREAD_POOL_H
#define LS_ENGINE_THREAD_POOL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"

struct ls_thread_pool;
struct ls_profiler;
struct ls_timeline;

/* Starts workers - 1 threads; `enter_thread`, which may be NULL, is called first thing in each. */
int ls_thread_pool_create(int workers, void (*enter_thread)(void), struct ls_thread_pool **pool,
                          struct ls_error *error);
void ls_thread_pool_free(struct ls_thread_pool *pool);

/* The calling thread becomes worker 0 (pinned, with the floating-point mode of workers) until
 * leave, which restores what it found. Calls may nest. */
void ls_thread_pool_enter(struct ls_thread_pool *pool);
void ls_thread_pool_leave(struct ls_thread_pool *pool);

/* Runs task(argument, worker) on all workers and returns when all are done. Only between enter and
 * leave. */
void ls_thread_pool_run(struct ls_thread_pool *pool, void (*task)(void *argument, int worker),
                        void *argument);
/* Within a task, called by all workers: waits until all have come here. What any of them wrote
 * before is seen by all afterwards. */
void ls_thread_pool_barrier(struct ls_thread_pool *pool);

/* The calling thread's error, cleared, for a worker to fill; the next call returns the same one.
 * (There is one for each thread, because it is large.) */
struct ls_error *ls_worker_error(void);
/* What went wrong in a task that several workers run: the failure that was noted first is kept. */
struct ls_worker_failure {
    _Atomic int status;     /* 0: none */
    struct ls_error *error; /* gets what the worker says; may be NULL */
};
/* Ends a worker's part of the task: with 0, or with a failure that its own error describes. */
void ls_worker_failure_note(struct ls_worker_failure *failure, int status,
                            const struct ls_error *error);

/* From now on (NULL: no longer) what tasks and meetings take is added to a profiler for as many
 * workers; ls_thread_pool_profiler is for code that counts more. Not while workers run. */
void ls_thread_pool_profile(struct ls_thread_pool *pool, struct ls_profiler *profiler);
struct ls_profiler *ls_thread_pool_profiler(const struct ls_thread_pool *pool);

/* What workers do goes to tracks of this trace, which outlives the pool, from the next task on;
 * that of worker 0 is the calling thread's. Not while workers run. */
void ls_thread_pool_trace(struct ls_thread_pool *pool, struct ls_timeline *trace);

#endif
