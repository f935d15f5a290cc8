/* Worker threads. See engine/thread_pool.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/thread_pool.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "base/timeline.h"
#include "engine/profiler.h"

struct member {
    struct ls_thread_pool *pool;
    int worker;
    pthread_t thread;
    struct ls_timeline_track *track; /* NULL: nothing is recorded */
};

/* Threads wait at the gate until all of them exist: a barrier cannot be left again. */
enum gate { GATE_CLOSED, GATE_OPEN, GATE_GO_HOME };

struct ls_thread_pool {
    int workers;
    int threads; /* started */
    pthread_mutex_t gate_lock;
    pthread_cond_t gate_moved;
    enum gate gate;
    void (*enter_thread)(void);
    struct member *members;
    struct ls_barrier begin, end, middle;
    void (*task)(void *argument, int worker); /* NULL: go home */
    void *argument;
    struct ls_profiler *profiler; /* NULL: no profiling */
    bool pin;
    int entered;
    fenv_t caller_mode; /* of the calling thread, between enter and leave */
    cpu_set_t caller_cores;
    struct ls_timeline_track *caller_track; /* where the calling thread wrote to before */
};

struct ls_error *ls_worker_error(void)
{
    static _Thread_local struct ls_error error;
    ls_error_clear(&error);
    return &error;
}

void ls_worker_failure_note(struct ls_worker_failure *failure, int status,
                            const struct ls_error *error)
{
    int none = 0;
    if (status != 0 && atomic_compare_exchange_strong(&failure->status, &none, status))
        ls_error_add(failure->error, error);
}

static _Thread_local int this_worker; /* of the thread's task */

static void pool_do_task(const struct ls_thread_pool *pool, int worker)
{
    this_worker = worker;
    uint64_t start = ls_profiler_start(pool->profiler);
    pool->task(pool->argument, worker);
    if (pool->profiler != NULL)
        pool->profiler->worker[worker].working += ls_nanoseconds() - start;
}

static void *pool_work(void *argument)
{
    struct member *member = argument;
    struct ls_thread_pool *pool = member->pool;
    if (pool->pin)
        ls_pin_thread(member->worker);
    if (pool->enter_thread != NULL)
        pool->enter_thread();
    if (LS_MUTANT(DENORMALS)) /* workers other than the first keep them */
        fesetenv(FE_DFL_ENV);
    pthread_mutex_lock(&pool->gate_lock);
    while (pool->gate == GATE_CLOSED)
        pthread_cond_wait(&pool->gate_moved, &pool->gate_lock);
    bool open = pool->gate == GATE_OPEN;
    pthread_mutex_unlock(&pool->gate_lock);
    while (open) {
        ls_barrier_wait(&pool->begin);
        if (pool->task == NULL)
            return NULL;
        ls_timeline_here = member->track;
        pool_do_task(pool, member->worker);
        uint64_t start = ls_timeline_start();
        ls_barrier_wait(&pool->end);
        ls_timeline_add(LS_TIMELINE_BARRIER, NULL, 0, start);
    }
    return NULL;
}

static void pool_move_gate(struct ls_thread_pool *pool, enum gate gate)
{
    pthread_mutex_lock(&pool->gate_lock);
    pool->gate = gate;
    pthread_cond_broadcast(&pool->gate_moved);
    pthread_mutex_unlock(&pool->gate_lock);
}

int ls_thread_pool_create(int workers, void (*enter_thread)(void), struct ls_thread_pool **out,
                          struct ls_error *error)
{
    *out = NULL;
    struct ls_thread_pool *pool = ls_alloc(1, sizeof *pool);
    if (pool == NULL)
        return ls_fail_memory(error, "workers");
    pool->workers = workers;
    pool->enter_thread = enter_thread;
    pool->pin = ls_fill_cores(workers); /* else the system should move them as it likes */
    ls_barrier_init(&pool->begin, workers);
    ls_barrier_init(&pool->end, workers);
    ls_barrier_init(&pool->middle, workers);
    pthread_mutex_init(&pool->gate_lock, NULL);
    pthread_cond_init(&pool->gate_moved, NULL);
    pool->members = ls_alloc((size_t)workers, sizeof *pool->members);
    int status = pool->members == NULL ? ls_fail_memory(error, "workers") : 0;
    for (int i = 1; i < workers && status == 0; i++) {
        struct member *member = &pool->members[i];
        *member = (struct member){.pool = pool, .worker = i};
        if (ls_thread_create(&member->thread, pool_work, member) == 0)
            pool->threads++;
        else
            status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, "use fewer workers",
                             "cannot start thread %d of %d", i + 1, workers);
    }
    if (status != 0) {
        ls_thread_pool_free(pool);
        return status;
    }
    pool_move_gate(pool, GATE_OPEN);
    *out = pool;
    return 0;
}

void ls_thread_pool_free(struct ls_thread_pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->gate == GATE_CLOSED) {
        pool_move_gate(pool, GATE_GO_HOME);
    } else if (pool->workers > 1) {
        pool->task = NULL;
        ls_barrier_wait(&pool->begin);
    }
    for (int i = 1; pool->members != NULL && i <= pool->threads; i++)
        pthread_join(pool->members[i].thread, NULL);
    pthread_cond_destroy(&pool->gate_moved);
    pthread_mutex_destroy(&pool->gate_lock);
    ls_free(pool->members);
    ls_free(pool);
}

void ls_thread_pool_enter(struct ls_thread_pool *pool)
{
    if (pool->entered++ > 0)
        return;
    fegetenv(&pool->caller_mode);
    pthread_getaffinity_np(pthread_self(), sizeof pool->caller_cores, &pool->caller_cores);
    if (pool->pin)
        ls_pin_thread(0);
    if (pool->enter_thread != NULL)
        pool->enter_thread();
    pool->caller_track = ls_timeline_here;
    ls_timeline_here = pool->members[0].track;
}

void ls_thread_pool_leave(struct ls_thread_pool *pool)
{
    if (--pool->entered > 0)
        return;
    ls_timeline_here = pool->caller_track;
    fesetenv(&pool->caller_mode);
    pthread_setaffinity_np(pthread_self(), sizeof pool->caller_cores, &pool->caller_cores);
}

void ls_thread_pool_run(struct ls_thread_pool *pool, void (*task)(void *argument, int worker),
                        void *argument)
{
    uint64_t start = ls_profiler_start(pool->profiler);
    pool->task = task;
    pool->argument = argument;
    if (pool->workers > 1)
        ls_barrier_wait(&pool->begin);
    pool_do_task(pool, 0);
    uint64_t waiting = ls_timeline_start();
    if (pool->workers > 1)
        ls_barrier_wait(&pool->end);
    ls_timeline_add(LS_TIMELINE_BARRIER, NULL, 0, waiting);
    if (pool->profiler != NULL)
        pool->profiler->tasks += ls_nanoseconds() - start;
}

void ls_thread_pool_barrier(struct ls_thread_pool *pool)
{
    uint64_t start = ls_profiler_start(pool->profiler), waiting = ls_timeline_start();
    if (pool->workers > 1)
        ls_barrier_wait(&pool->middle);
    ls_timeline_add(LS_TIMELINE_BARRIER, NULL, 0, waiting);
    if (pool->profiler != NULL)
        pool->profiler->worker[this_worker].barriers += ls_nanoseconds() - start;
}

void ls_thread_pool_profile(struct ls_thread_pool *pool, struct ls_profiler *profiler)
{
    pool->profiler = profiler;
}

struct ls_profiler *ls_thread_pool_profiler(const struct ls_thread_pool *pool)
{
    return pool->profiler;
}

void ls_thread_pool_trace(struct ls_thread_pool *pool, struct ls_timeline *trace)
{
    char name[32];
    pool->members[0].track = ls_timeline_here;
    for (int w = 1; w < pool->workers; w++) {
        snprintf(name, sizeof name, "worker %d", w);
        pool->members[w].track = ls_timeline_track(trace, name);
    }
}
