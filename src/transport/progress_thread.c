/* The progress thread. See transport/progress_thread.h.
 *
 * One thread at a time drives: it starts collectives that are ready and tests those under way.
 * Usually that is the progress thread, which polls at intervals. A worker that has to wait for a
 * collective drives instead, without pauses, on its own core.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/progress_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "base/timeline.h"
#include "transport/failure_detector.h"

enum {
    FIRST_REST = 20000, /* nanoseconds between polls, at first */
    LONGEST_REST = 200000,
    IDLE_REST = 200000000, /* while no collective is queued: for the failure detector */
    LISTENING_REST = 300000,
    SPINS = 200 /* rounds of a waiting worker before it lets others on its core */
};

struct ls_progress_thread {
    struct ls_comm *comm;
    void (*enter_thread)(void);
    pthread_t thread;
    pthread_mutex_t lock;              /* guards what follows */
    pthread_cond_t work;               /* something became ready, or it is time to stop */
    pthread_cond_t done;               /* a collective arrived */
    struct ls_collective *head, *tail; /* queued, not yet on their way; the head goes next */
    int listening;                     /* calls that expect messages */
    bool stop;
    _Atomic bool failed; /* the transport has; set without the lock */
    bool driven;         /* by some thread; what follows is its own then */
    struct ls_collective *sent[LS_COLLECTIVES_UNDER_WAY];
    int sent_count;
    uint64_t since;  /* when the first of them left */
    uint32_t queued; /* collectives, while there is a trace */
    struct ls_timeline_track *tracks[LS_COLLECTIVES_UNDER_WAY]; /* NULL: nothing is recorded */
    bool taken[LS_COLLECTIVES_UNDER_WAY]; /* by a collective under way, whose lane it is */
};

static int progress_state_of(const struct ls_collective *collective)
{
    return atomic_load_explicit(&collective->state, memory_order_acquire);
}

static void progress_set_state(struct ls_collective *collective, enum ls_collective_state state)
{
    atomic_store_explicit(&collective->state, state, memory_order_release);
}

/* A collective leaves: it gets a track of its own among those under way. */
static void progress_trace_begin(struct ls_progress_thread *progress_thread,
                                 struct ls_collective *collective)
{
    collective->lane = 0;
    while (progress_thread->taken[collective->lane]) /* one is free: at most as many are sent */
        collective->lane++;
    progress_thread->taken[collective->lane] = true;
    collective->left = progress_thread->tracks[collective->lane] != NULL ? ls_nanoseconds() : 0;
}

static void progress_trace_end(struct ls_progress_thread *progress_thread,
                               const struct ls_collective *collective)
{
    progress_thread->taken[collective->lane] = false;
    if (collective->left == 0)
        return;
    const struct ls_timeline_event event = {.begin = collective->left,
                                            .end = ls_nanoseconds(),
                                            .name = collective->name,
                                            .number = collective->number,
                                            .kind = LS_TIMELINE_EXCHANGE};
    ls_timeline_put(progress_thread->tracks[collective->lane], &event);
}

/* Starts collectives that are ready. The lock is held, except while an operation is started. */
static void progress_send_ready(struct ls_progress_thread *progress_thread)
{
    while (progress_thread->head != NULL &&
           progress_state_of(progress_thread->head) == LS_COLLECTIVE_READY &&
           progress_thread->sent_count < LS_COLLECTIVES_UNDER_WAY && !progress_thread->failed) {
        struct ls_collective *collective = progress_thread->head;
        progress_thread->head = collective->next;
        if (progress_thread->head == NULL)
            progress_thread->tail = NULL;
        collective->op = NULL;
        progress_set_state(collective, LS_COLLECTIVE_SENT);
        if (progress_thread->sent_count == 0)
            progress_thread->since = ls_nanoseconds();
        progress_thread->sent[progress_thread->sent_count++] = collective;
        progress_trace_begin(progress_thread, collective);
        pthread_mutex_unlock(&progress_thread->lock);
        int result =
            collective->start(collective, progress_thread->comm->transport, &collective->op);
        pthread_mutex_lock(&progress_thread->lock);
        if (result != 0)
            progress_thread->failed = true;
    }
}

/* Tests collectives under way, without the lock. Returns whether any arrived. */
static bool progress_ask(struct ls_progress_thread *progress_thread)
{
    bool arrived = false;
    struct ls_transport *transport = progress_thread->comm->transport;
    for (int i = 0; i < progress_thread->sent_count && !progress_thread->failed;) {
        struct ls_collective *collective = progress_thread->sent[i];
        enum ls_transport_result result = collective->test != NULL
                                              ? collective->test(collective, transport)
                                              : transport->calls->test(transport, &collective->op);
        if (result == LS_TRANSPORT_RUNNING) {
            i++;
            continue;
        }
        if (result == LS_TRANSPORT_FAILED) {
            progress_thread->failed = true;
            break;
        }
        if (collective->finish != NULL)
            collective->finish(collective);
        progress_trace_end(progress_thread, collective);
        for (int k = i + 1; k < progress_thread->sent_count; k++)
            progress_thread->sent[k - 1] = progress_thread->sent[k];
        if (--progress_thread->sent_count == 0)
            progress_thread->comm->under_way += ls_nanoseconds() - progress_thread->since;
        progress_set_state(collective, LS_COLLECTIVE_DONE);
        arrived = true;
    }
    return arrived;
}

/* One round of progress. The lock is held (but released while it works) and no other thread drives.
 * Returns whether anything has arrived. */
static bool progress_drive(struct ls_progress_thread *progress_thread)
{
    progress_thread->driven = true;
    progress_send_ready(progress_thread);
    pthread_mutex_unlock(&progress_thread->lock);
    bool arrived = progress_ask(progress_thread);
    pthread_mutex_lock(&progress_thread->lock);
    progress_thread->driven = false;
    if (arrived || progress_thread->failed)
        pthread_cond_broadcast(&progress_thread->done);
    return arrived;
}

static struct timespec progress_soon(long nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* With the lock held: whether there is anything to drive. */
static bool progress_has_work(const struct ls_progress_thread *progress_thread)
{
    bool ready = progress_thread->head != NULL &&
                 progress_state_of(progress_thread->head) == LS_COLLECTIVE_READY;
    return !progress_thread->failed && !progress_thread->driven &&
           (ready || progress_thread->sent_count > 0);
}

static void *progress_carry(void *argument)
{
    struct ls_progress_thread *progress_thread = argument;
    long pause = FIRST_REST;
    ls_unpin_thread();
    if (progress_thread->enter_thread != NULL)
        progress_thread->enter_thread();
    pthread_mutex_lock(&progress_thread->lock);
    while (!progress_thread->stop) {
        bool work = progress_has_work(progress_thread);
        if (work && progress_drive(progress_thread)) {
            pause = FIRST_REST;
            continue;
        }
        bool listening = progress_thread->listening > 0;
        pthread_mutex_unlock(&progress_thread->lock);
        ls_detector_poll(progress_thread->comm->detector);
        if (listening)
            ls_detector_receive_now(progress_thread->comm->detector);
        pthread_mutex_lock(&progress_thread->lock);
        if (progress_thread->stop || (!work && progress_has_work(progress_thread)))
            continue;
        struct timespec until = progress_soon(work        ? pause
                                              : listening ? LISTENING_REST
                                                          : IDLE_REST);
        pthread_cond_timedwait(&progress_thread->work, &progress_thread->lock, &until);
        pause = work && pause < LONGEST_REST ? pause + pause / 2 : FIRST_REST;
    }
    pthread_mutex_unlock(&progress_thread->lock);
    return NULL;
}

int ls_progress_thread_start(struct ls_comm *comm, void (*enter_thread)(void),
                             struct ls_progress_thread **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_progress_thread *progress_thread = ls_alloc(1, sizeof *progress_thread);
    if (progress_thread == NULL)
        return ls_fail_memory(error, "a progress thread between ranks");
    progress_thread->comm = comm;
    progress_thread->enter_thread = enter_thread;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&progress_thread->lock, NULL);
    pthread_cond_init(&progress_thread->work, &monotonic);
    pthread_cond_init(&progress_thread->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int result = ls_thread_create(&progress_thread->thread, progress_carry, progress_thread);
    if (result == 0) {
        *out = progress_thread;
        return 0;
    }
    pthread_cond_destroy(&progress_thread->work);
    pthread_cond_destroy(&progress_thread->done);
    pthread_mutex_destroy(&progress_thread->lock);
    ls_free(progress_thread);
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                   "a thread to exchange data between ranks could not be started (error %d)",
                   result);
}

void ls_progress_thread_stop(struct ls_progress_thread *progress_thread)
{
    if (progress_thread == NULL)
        return;
    pthread_mutex_lock(&progress_thread->lock);
    progress_thread->stop = true;
    pthread_cond_signal(&progress_thread->work);
    pthread_mutex_unlock(&progress_thread->lock);
    pthread_join(progress_thread->thread, NULL);
    pthread_cond_destroy(&progress_thread->work);
    pthread_cond_destroy(&progress_thread->done);
    pthread_mutex_destroy(&progress_thread->lock);
    ls_free(progress_thread);
}

void ls_progress_thread_give_up(struct ls_progress_thread *progress_thread)
{
    if (progress_thread == NULL)
        return;
    pthread_mutex_lock(&progress_thread->lock);
    progress_thread->failed = true;
    while (progress_thread->driven) {
        struct timespec until = progress_soon(1000000);
        pthread_cond_timedwait(&progress_thread->done, &progress_thread->lock, &until);
    }
    progress_thread->head = progress_thread->tail = NULL;
    progress_thread->sent_count = 0;
    pthread_mutex_unlock(&progress_thread->lock);
}

void ls_progress_thread_listen(struct ls_progress_thread *progress_thread, bool on)
{
    if (progress_thread == NULL)
        return;
    pthread_mutex_lock(&progress_thread->lock);
    progress_thread->listening += on ? 1 : -1;
    if (on)
        pthread_cond_signal(&progress_thread->work);
    pthread_mutex_unlock(&progress_thread->lock);
}

void ls_progress_thread_queue(struct ls_progress_thread *progress_thread,
                              struct ls_collective *collective)
{
    pthread_mutex_lock(&progress_thread->lock);
    collective->next = NULL;
    collective->number = progress_thread->queued++;
    progress_set_state(collective, LS_COLLECTIVE_QUEUED);
    if (progress_thread->tail != NULL)
        progress_thread->tail->next = collective;
    else
        progress_thread->head = collective;
    progress_thread->tail = collective;
    pthread_mutex_unlock(&progress_thread->lock);
}

void ls_progress_thread_ready(struct ls_progress_thread *progress_thread,
                              struct ls_collective *collective)
{
    pthread_mutex_lock(&progress_thread->lock);
    if (progress_state_of(collective) == LS_COLLECTIVE_QUEUED) {
        ls_timeline_add(LS_TIMELINE_READY, NULL, collective->number, ls_timeline_start());
        progress_set_state(collective, LS_COLLECTIVE_READY);
        if (progress_thread->head == collective)
            pthread_cond_signal(&progress_thread->work);
    }
    pthread_mutex_unlock(&progress_thread->lock);
}

/* One round of a waiting thread, with the lock held. Returns whether the wait is over. */
static bool progress_wait_a_round(struct ls_progress_thread *progress_thread, int round)
{
    if (progress_thread->driven) { /* another one waits as well */
        struct timespec until = progress_soon(1000000);
        pthread_cond_timedwait(&progress_thread->done, &progress_thread->lock, &until);
    } else if (!progress_drive(progress_thread) && round > SPINS) {
        long rest = 2000L * (round - SPINS);
        struct timespec until = progress_soon(rest < LONGEST_REST ? rest : LONGEST_REST);
        pthread_cond_timedwait(&progress_thread->work, &progress_thread->lock, &until);
    }
    return progress_thread->failed || ls_detector_alarm(progress_thread->comm->detector);
}

int ls_progress_thread_wait(struct ls_progress_thread *progress_thread,
                            struct ls_collective *collective, struct ls_error *error)
{
    bool lost = false;
    if (ls_collective_done(collective))
        return 0;
    ls_detector_wait(progress_thread->comm->detector, true);
    pthread_mutex_lock(&progress_thread->lock);
    for (int round = 0; !ls_collective_done(collective) && !lost; round++)
        lost = progress_wait_a_round(progress_thread, round);
    if (progress_has_work(progress_thread)) /* the progress thread goes on with the rest */
        pthread_cond_signal(&progress_thread->work);
    pthread_mutex_unlock(&progress_thread->lock);
    ls_detector_wait(progress_thread->comm->detector, false);
    return lost && !ls_collective_done(collective) ? ls_comm_lost(progress_thread->comm, error) : 0;
}

void ls_progress_thread_trace(struct ls_progress_thread *progress_thread, struct ls_timeline *trace)
{
    char name[32];
    if (progress_thread == NULL)
        return;
    pthread_mutex_lock(&progress_thread->lock);
    progress_thread->queued = 0;
    for (int i = 0; i < LS_COLLECTIVES_UNDER_WAY; i++) {
        snprintf(name, sizeof name, "reducer %d", i);
        progress_thread->tracks[i] = ls_timeline_track(trace, name);
    }
    pthread_mutex_unlock(&progress_thread->lock);
}
