/* Ranks within one process. See api/rank_threads.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/rank_threads.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "api/caller.h"
#include "base/memory.h"
#include "base/thread.h"
#include "transport/comm_job.h"
#include "transport/failure_detector.h"
#include "transport/local.h"

enum { PATIENCE = 5 /* seconds; a rank that fails as all do is here at once */ };

struct member {
    struct ls_rank_threads *threads;
    int rank, card;
    pthread_t thread; /* of all but rank 0 */
    bool has_thread;
    struct ls_comm *comm;
    struct ls_error *error;
    int status; /* of the call that was made last */
};

struct ls_rank_threads {
    int size;
    struct member *members;
    struct ls_transport **transports;
    pthread_mutex_t lock;  /* guards what follows */
    pthread_cond_t change; /* of anything below */
    uint64_t turn;         /* calls that were begun */
    int busy;              /* ranks that are in the call */
    bool stop;
    ls_rank_threads_call *call;
    void *user;
};

int ls_rank_threads_size(const struct ls_rank_threads *threads)
{
    return threads != NULL ? threads->size : 1;
}

struct ls_comm *ls_rank_threads_comm(const struct ls_rank_threads *threads, int rank)
{
    return threads->members[rank].comm;
}

/* With the lock held: after a failure, waits for the other ranks, which find the same or hear of
 * it. If they do not come, they wait for this one, which has left them. */
static void wait_for_others(struct member *member)
{
    struct ls_rank_threads *threads = member->threads;
    struct ls_transport *transport = threads->transports[member->rank];
    const uint64_t turn = threads->turn;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE;
    int result = 0;
    while (threads->turn == turn && threads->busy > 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&threads->change, &threads->lock, &until);
    if (threads->turn == turn && threads->busy > 0)
        transport->calls->abort(transport, member->status);
}

static void make_call(struct member *member, struct ls_error *error)
{
    struct ls_rank_threads *threads = member->threads;
    struct ls_transport *transport = threads->transports[member->rank];
    member->status = threads->call(threads->user, member->rank, error);
    pthread_mutex_lock(&threads->lock);
    threads->busy--;
    pthread_cond_broadcast(&threads->change);
    if (member->status == LOCKSTEP_LOST) /* no other rank may wait for it any longer */
        transport->calls->abort(transport, member->status);
    else if (member->status != 0 && member->status != LOCKSTEP_STOPPED)
        wait_for_others(member);
    pthread_mutex_unlock(&threads->lock);
}

static void *be_rank(void *argument)
{
    struct member *member = argument;
    struct ls_rank_threads *threads = member->threads;
    LS_OWN_MODE;
    ls_thread_set_card(member->card);
    ls_unpin_thread();
    pthread_mutex_lock(&threads->lock);
    for (uint64_t turn = 0; !threads->stop;) {
        if (threads->turn == turn) {
            pthread_cond_wait(&threads->change, &threads->lock);
            continue;
        }
        turn = threads->turn;
        pthread_mutex_unlock(&threads->lock);
        ls_error_clear(member->error);
        make_call(member, member->error);
        pthread_mutex_lock(&threads->lock);
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

/* The rank whose failure is to be told: the first that does not only suffer from another's. */
static const struct member *find_failure(const struct ls_rank_threads *threads)
{
    const struct member *suffers = &threads->members[0];
    for (int r = 0; r < threads->size; r++) {
        const struct member *member = &threads->members[r];
        if (member->status != 0 && member->status != LOCKSTEP_LOST)
            return member;
        if (suffers->status == 0)
            suffers = member;
    }
    return suffers;
}

int ls_rank_threads_run(struct ls_rank_threads *threads, ls_rank_threads_call *call, void *user,
                        struct ls_error *error)
{
    const int card = ls_thread_card();
    pthread_mutex_lock(&threads->lock);
    threads->call = call;
    threads->user = user;
    threads->busy = threads->size;
    threads->turn++;
    pthread_cond_broadcast(&threads->change);
    pthread_mutex_unlock(&threads->lock);
    ls_thread_set_card(threads->members[0].card);
    make_call(&threads->members[0], error);
    ls_thread_set_card(card);
    pthread_mutex_lock(&threads->lock);
    while (threads->busy > 0)
        pthread_cond_wait(&threads->change, &threads->lock);
    pthread_mutex_unlock(&threads->lock);
    const struct member *failed = find_failure(threads);
    if (failed->rank != 0 && error != NULL)
        *error = *failed->error;
    return failed->status;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

/* What ends a job of threads is told by its error. */
static void say_nothing(void *user, int status, const char *text)
{
    (void)user;
    (void)status;
    (void)text;
}

static int make_member(struct ls_rank_threads *threads, int rank, int card, struct ls_error *error)
{
    /* Threads of one process do not vanish: no silence is too long. */
    const struct ls_comm_options options = {.timeout = 0};
    struct member *member = &threads->members[rank];
    struct ls_transport *transport = threads->transports[rank];
    member->threads = threads;
    member->rank = rank;
    member->card = card;
    member->error = ls_alloc(1, sizeof *member->error);
    if (member->error == NULL)
        return ls_fail_memory(error, "ranks on several cards");
    LS_TRY(ls_comm_create(transport, &options, &member->comm, error));
    ls_detector_set_on_failure(member->comm->detector, say_nothing, NULL);
    return 0;
}

static int make_thread(struct member *member, struct ls_error *error)
{
    member->has_thread = ls_thread_create(&member->thread, be_rank, member) == 0;
    return member->has_thread
               ? 0
               : ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "no more threads can be made");
}

static int make_members(struct ls_rank_threads *threads, const int *cards, struct ls_error *error)
{
    threads->members = ls_alloc((size_t)threads->size, sizeof *threads->members);
    threads->transports = ls_alloc((size_t)threads->size, sizeof(struct ls_transport *));
    if (threads->members == NULL || threads->transports == NULL)
        return ls_fail_memory(error, "ranks on several cards");
    LS_TRY(ls_local_transports(threads->size, threads->transports, error));
    for (int r = 0; r < threads->size; r++)
        LS_TRY(make_member(threads, r, cards != NULL ? cards[r] : -1, error));
    for (int r = 1; r < threads->size; r++)
        LS_TRY(make_thread(&threads->members[r], error));
    return 0;
}

int ls_rank_threads_create(int size, const int *cards, struct ls_rank_threads **out,
                           struct ls_error *error)
{
    *out = NULL;
    struct ls_rank_threads *threads = ls_alloc(1, sizeof *threads);
    if (threads == NULL)
        return ls_fail_memory(error, "ranks on several cards");
    threads->size = size;
    pthread_mutex_init(&threads->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&threads->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const int status = make_members(threads, cards, error);
    if (status != 0)
        ls_rank_threads_free(threads);
    else
        *out = threads;
    return status;
}

static void end_member(struct ls_rank_threads *threads, int rank)
{
    struct member *member = &threads->members[rank];
    struct ls_transport *transport = threads->transports[rank];
    if (member->comm != NULL)
        ls_comm_end(member->comm);
    else if (transport != NULL)
        transport->calls->end(transport);
    ls_free(member->error);
}

void ls_rank_threads_free(struct ls_rank_threads *threads)
{
    if (threads == NULL)
        return;
    pthread_mutex_lock(&threads->lock);
    threads->stop = true;
    pthread_cond_broadcast(&threads->change);
    pthread_mutex_unlock(&threads->lock);
    const bool made = threads->members != NULL && threads->transports != NULL;
    for (int r = 1; made && r < threads->size; r++)
        if (threads->members[r].has_thread)
            pthread_join(threads->members[r].thread, NULL);
    for (int r = 0; made && r < threads->size; r++)
        end_member(threads, r);
    pthread_mutex_destroy(&threads->lock);
    pthread_cond_destroy(&threads->change);
    ls_free(threads->members);
    ls_free((void *)threads->transports);
    ls_free(threads);
}
