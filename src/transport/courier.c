/* The courier. See transport/courier.h.
 *
 * One thread at a time drives: it sends what is ready and asks about what is under way. That is the
 * courier's own thread, which asks at intervals, unless a worker has nothing better to do than to
 * wait for a parcel: then it drives itself, without rest, on the core that it has.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/courier.h"

#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "transport/watch.h"

enum {
    FIRST_REST = 20000, /* nanoseconds between questions, at first */
    LONGEST_REST = 200000,
    IDLE_REST = 200000000, /* while there is nothing to carry: for the watch */
    LISTENING_REST = 300000,
    SPINS = 200 /* rounds of a waiting worker before it lets others on its core */
};

struct ls_courier {
    struct ls_peers *peers;
    void (*enter_thread)(void);
    pthread_t thread;
    pthread_mutex_t lock;          /* guards what follows */
    pthread_cond_t work;           /* something became ready, or it is time to stop */
    pthread_cond_t done;           /* a parcel arrived */
    struct ls_parcel *head, *tail; /* queued, not yet on their way; the head goes next */
    int listening;                 /* who waits for messages */
    bool stop, failed;
    bool driven; /* by some thread; what follows is its own then */
    struct ls_parcel *sent[LS_COURIER_UNDER_WAY];
    int sent_count;
    uint64_t since; /* when the first of them left */
};

static int state_of(const struct ls_parcel *parcel)
{
    return atomic_load_explicit(&parcel->state, memory_order_acquire);
}

static void set_state(struct ls_parcel *parcel, enum ls_parcel_state state)
{
    atomic_store_explicit(&parcel->state, state, memory_order_release);
}

/* With the lock held, except while operations are started: sends what may go. */
static void send_ready(struct ls_courier *courier)
{
    while (courier->head != NULL && state_of(courier->head) == LS_PARCEL_READY &&
           courier->sent_count < LS_COURIER_UNDER_WAY && !courier->failed) {
        struct ls_parcel *parcel = courier->head;
        courier->head = parcel->next;
        if (courier->head == NULL)
            courier->tail = NULL;
        parcel->op = NULL;
        set_state(parcel, LS_PARCEL_SENT);
        if (courier->sent_count == 0)
            courier->since = ls_nanoseconds();
        courier->sent[courier->sent_count++] = parcel;
        pthread_mutex_unlock(&courier->lock);
        int result = parcel->start(parcel, courier->peers->link, &parcel->op);
        pthread_mutex_lock(&courier->lock);
        courier->failed |= result != 0;
    }
}

/* Asks about what is under way, without the lock; whether anything arrived. */
static bool ask(struct ls_courier *courier)
{
    bool arrived = false;
    struct ls_link *link = courier->peers->link;
    for (int i = 0; i < courier->sent_count && !courier->failed;) {
        struct ls_parcel *parcel = courier->sent[i];
        enum ls_link_result result = link->calls->test(link, &parcel->op);
        if (result == LS_LINK_RUNNING) {
            i++;
            continue;
        }
        if (result == LS_LINK_FAILED) {
            courier->failed = true;
            break;
        }
        if (parcel->finish != NULL)
            parcel->finish(parcel);
        for (int k = i + 1; k < courier->sent_count; k++)
            courier->sent[k - 1] = courier->sent[k];
        if (--courier->sent_count == 0)
            courier->peers->under_way += ls_nanoseconds() - courier->since;
        set_state(parcel, LS_PARCEL_DONE);
        arrived = true;
    }
    return arrived;
}

/* With the lock held, except while it works, and nobody driving: one round. Whether anything has
 * arrived. */
static bool drive(struct ls_courier *courier)
{
    courier->driven = true;
    send_ready(courier);
    pthread_mutex_unlock(&courier->lock);
    bool arrived = ask(courier);
    pthread_mutex_lock(&courier->lock);
    courier->driven = false;
    if (arrived || courier->failed)
        pthread_cond_broadcast(&courier->done);
    return arrived;
}

static struct timespec soon(long nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* With the lock held: whether there is anything to drive. */
static bool has_work(const struct ls_courier *courier)
{
    bool ready = courier->head != NULL && state_of(courier->head) == LS_PARCEL_READY;
    return !courier->failed && !courier->driven && (ready || courier->sent_count > 0);
}

static void *carry(void *argument)
{
    struct ls_courier *courier = argument;
    long pause = FIRST_REST;
    ls_unpin_thread();
    if (courier->enter_thread != NULL)
        courier->enter_thread();
    pthread_mutex_lock(&courier->lock);
    while (!courier->stop) {
        bool work = has_work(courier);
        if (work && drive(courier)) {
            pause = FIRST_REST;
            continue;
        }
        bool listening = courier->listening > 0;
        pthread_mutex_unlock(&courier->lock);
        ls_watch_turn(courier->peers->watch);
        if (listening)
            ls_watch_hear_now(courier->peers->watch);
        pthread_mutex_lock(&courier->lock);
        if (courier->stop || (!work && has_work(courier)))
            continue;
        struct timespec until = soon(work ? pause : listening ? LISTENING_REST : IDLE_REST);
        pthread_cond_timedwait(&courier->work, &courier->lock, &until);
        pause = work && pause < LONGEST_REST ? pause + pause / 2 : FIRST_REST;
    }
    pthread_mutex_unlock(&courier->lock);
    return NULL;
}

int ls_courier_start(struct ls_peers *peers, void (*enter_thread)(void), struct ls_courier **out,
                     struct ls_error *error)
{
    *out = NULL;
    struct ls_courier *courier = ls_alloc(1, sizeof *courier);
    if (courier == NULL)
        return ls_fail_memory(error, "a courier between ranks");
    courier->peers = peers;
    courier->enter_thread = enter_thread;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&courier->lock, NULL);
    pthread_cond_init(&courier->work, &monotonic);
    pthread_cond_init(&courier->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int result = pthread_create(&courier->thread, NULL, carry, courier);
    if (result == 0) {
        *out = courier;
        return 0;
    }
    pthread_cond_destroy(&courier->work);
    pthread_cond_destroy(&courier->done);
    pthread_mutex_destroy(&courier->lock);
    ls_free(courier);
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                   "a thread to exchange data between ranks could not be started (error %d)",
                   result);
}

void ls_courier_stop(struct ls_courier *courier)
{
    if (courier == NULL)
        return;
    pthread_mutex_lock(&courier->lock);
    courier->stop = true;
    pthread_cond_signal(&courier->work);
    pthread_mutex_unlock(&courier->lock);
    pthread_join(courier->thread, NULL);
    pthread_cond_destroy(&courier->work);
    pthread_cond_destroy(&courier->done);
    pthread_mutex_destroy(&courier->lock);
    ls_free(courier);
}

void ls_courier_listen(struct ls_courier *courier, bool on)
{
    if (courier == NULL)
        return;
    pthread_mutex_lock(&courier->lock);
    courier->listening += on ? 1 : -1;
    if (on)
        pthread_cond_signal(&courier->work);
    pthread_mutex_unlock(&courier->lock);
}

void ls_courier_queue(struct ls_courier *courier, struct ls_parcel *parcel)
{
    pthread_mutex_lock(&courier->lock);
    parcel->next = NULL;
    set_state(parcel, LS_PARCEL_QUEUED);
    if (courier->tail != NULL)
        courier->tail->next = parcel;
    else
        courier->head = parcel;
    courier->tail = parcel;
    pthread_mutex_unlock(&courier->lock);
}

void ls_courier_ready(struct ls_courier *courier, struct ls_parcel *parcel)
{
    pthread_mutex_lock(&courier->lock);
    if (state_of(parcel) == LS_PARCEL_QUEUED) {
        set_state(parcel, LS_PARCEL_READY);
        if (courier->head == parcel)
            pthread_cond_signal(&courier->work);
    }
    pthread_mutex_unlock(&courier->lock);
}

/* With the lock held: a round of somebody who waits. Whether nobody needs to wait any longer. */
static bool wait_a_round(struct ls_courier *courier, int round)
{
    if (courier->driven) { /* another one waits as well */
        struct timespec until = soon(1000000);
        pthread_cond_timedwait(&courier->done, &courier->lock, &until);
    } else if (!drive(courier) && round > SPINS) {
        long rest = 2000L * (round - SPINS);
        struct timespec until = soon(rest < LONGEST_REST ? rest : LONGEST_REST);
        pthread_cond_timedwait(&courier->work, &courier->lock, &until);
    }
    return courier->failed || ls_watch_alarm(courier->peers->watch);
}

int ls_courier_wait(struct ls_courier *courier, struct ls_parcel *parcel, struct ls_error *error)
{
    bool lost = false;
    if (ls_parcel_done(parcel))
        return 0;
    ls_watch_wait(courier->peers->watch, true);
    pthread_mutex_lock(&courier->lock);
    for (int round = 0; !ls_parcel_done(parcel) && !lost; round++)
        lost = wait_a_round(courier, round);
    if (has_work(courier)) /* the courier's thread goes on with the rest */
        pthread_cond_signal(&courier->work);
    pthread_mutex_unlock(&courier->lock);
    ls_watch_wait(courier->peers->watch, false);
    return lost && !ls_parcel_done(parcel) ? ls_peers_lost(courier->peers, error) : 0;
}
