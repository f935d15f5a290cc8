/* The work queue between ranks. See engine/work_queue.h.
 *
 * Messages of one rank arrive in order, so a rank that is told that no units are left knows all of
 * its own. A rank may be one round ahead of rank 0, which remembers its requests until then. No
 * rank can be further ahead, because rank 0 takes part in the end of each round.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/work_queue.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "transport/progress_thread.h"
#include "transport/failure_detector.h"

enum { ASK = LS_MESSAGE_OTHERS, GRANT };
enum { NONE_LEFT = -1, SPINS = 200, REST = 50000 /* nanoseconds */ };

struct message {
    uint32_t kind, round;
    int32_t unit;   /* GRANT: the unit, or NONE_LEFT */
    uint32_t count; /* ASK: how many are wanted */
};

struct ls_work_queue {
    struct ls_comm *comm;
    pthread_mutex_t lock; /* guards what follows */
    uint32_t round;
    size_t begin, end;
    void (*granted)(void *user, size_t unit);
    void *user;
    size_t *queue; /* a ring: units that are this rank's and that no worker has yet */
    size_t first, count, capacity;
    size_t asked;   /* micro-batches that were asked for and not answered */
    bool none_left; /* rank 0 says so */
    uint32_t
        *had; /* bits by unit of the round: those that this rank was granted; then all ranks' */
    size_t had_capacity;
    /* Rank 0's. */
    size_t next;       /* the first unit not yet granted */
    uint32_t *pending; /* by rank: micro-batches that were asked for in the next round */
};

static void queue_hear(void *user, int from, const void *message, size_t bytes);

/* ---- Making them ----------------------------------------------------------------------------- */

int ls_work_queue_create(struct ls_comm *comm, struct ls_work_queue **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_work_queue *queue = ls_alloc(1, sizeof *queue);
    if (queue == NULL)
        return ls_fail_memory(error, "micro-batches of ranks");
    queue->comm = comm;
    queue->round = comm->rounds;
    queue->none_left = true; /* until a round begins: messages before that are of an earlier one */
    queue->capacity = 2 * (size_t)comm->workers + 1;
    queue->queue = ls_alloc(queue->capacity, sizeof *queue->queue);
    queue->pending = ls_alloc((size_t)comm->size, sizeof *queue->pending);
    pthread_mutex_init(&queue->lock, NULL);
    if (queue->queue == NULL || queue->pending == NULL) {
        ls_work_queue_free(queue);
        return ls_fail_memory(error, "micro-batches of ranks");
    }
    ls_detector_set_on_message(comm->detector, queue_hear, queue);
    *out = queue;
    return 0;
}

void ls_work_queue_free(struct ls_work_queue *queue)
{
    if (queue == NULL)
        return;
    ls_detector_set_on_message(queue->comm->detector, NULL, NULL);
    pthread_mutex_destroy(&queue->lock);
    ls_free(queue->queue);
    ls_free(queue->pending);
    ls_free(queue->had);
    ls_free(queue);
}

void ls_work_queue_given(const struct ls_work_queue *queue, size_t *first, size_t *count)
{
    *first = (size_t)queue->comm->first[queue->comm->rank];
    *count = (size_t)queue->comm->workers;
}

/* ---- Asking and granting: with the lock held ------------------------------------------------- */

static void queue_receive(struct ls_work_queue *queue, size_t unit)
{
    size_t bit = unit - queue->begin;
    queue->queue[(queue->first + queue->count++) % queue->capacity] = unit;
    queue->had[bit / 32] |= UINT32_C(1) << bit % 32;
    queue->granted(queue->user, unit);
}

static void queue_end_granting(struct ls_work_queue *queue)
{
    queue->none_left = true;
    queue->granted(queue->user, SIZE_MAX);
}

/* No message follows one that failed: a rank that gets the end of a round has got all of them. */
static void queue_send(struct ls_work_queue *queue, int to, const struct message *message)
{
    struct ls_transport *transport = queue->comm->transport;
    if (atomic_load(&queue->comm->broken) ||
        transport->calls->tell(transport, to, message, sizeof *message) != 0)
        atomic_store(&queue->comm->broken, true);
    atomic_fetch_add_explicit(&queue->comm->sent[LS_TRAFFIC_SMALL], sizeof *message,
                              memory_order_relaxed);
}

/* Rank 0's: answers what another rank asks for in a round, which may be over. */
static void queue_grant(struct ls_work_queue *queue, int rank, uint32_t round, uint32_t count)
{
    struct message message = {.kind = GRANT, .round = round};
    for (; count > 0 && message.unit != NONE_LEFT; count--) {
        bool more = round == queue->round && queue->next < queue->end;
        message.unit = more ? (int32_t)queue->next++ : NONE_LEFT;
        queue_send(queue, rank, &message);
    }
}

static void queue_ask(struct ls_work_queue *queue, size_t count)
{
    struct message message = {.kind = ASK, .round = queue->round, .count = (uint32_t)count};
    if (queue->comm->rank != 0) {
        queue_send(queue, 0, &message);
        queue->asked += count;
        return;
    }
    for (; count > 0 && queue->next < queue->end; count--)
        queue_receive(queue, queue->next++);
    if (LS_MUTANT(GRANT) && queue->next < queue->end)
        queue->next--; /* given once more */
    if (LS_MUTANT(LOST) && queue->next < queue->end)
        queue->next++; /* given to no rank */
    if (queue->next == queue->end)
        queue_end_granting(queue);
}

/* What is granted or asked for is one for each worker, besides those that they have. */
static void queue_ask_ahead(struct ls_work_queue *queue)
{
    size_t ahead = queue->count + queue->asked, wanted = (size_t)queue->comm->workers;
    if (!queue->none_left && ahead < wanted)
        queue_ask(queue, wanted - ahead);
}

static void queue_hear_grant(struct ls_work_queue *queue, const struct message *message)
{
    bool unit = message->unit >= 0 && (size_t)message->unit >= queue->begin &&
                (size_t)message->unit < queue->end && queue->count < queue->capacity;
    if (message->round != queue->round)
        return; /* of a round that is over: it says that there are none left */
    if (message->unit == NONE_LEFT) {
        queue->asked = 0;
        if (!queue->none_left)
            queue_end_granting(queue);
    } else if (unit && queue->asked > 0) {
        queue->asked--;
        queue_receive(queue, (size_t)message->unit);
    }
}

/* By whatever thread hears messages (transport/failure_detector.h). */
static void queue_hear(void *user, int from, const void *data, size_t bytes)
{
    struct ls_work_queue *queue = user;
    struct message message;
    if (bytes != sizeof message)
        return;
    memcpy(&message, data, sizeof message);
    pthread_mutex_lock(&queue->lock);
    if (message.kind == GRANT && from == 0)
        queue_hear_grant(queue, &message);
    else if (message.kind == ASK && message.round == queue->round + 1)
        queue->pending[from] += message.count;
    else if (message.kind == ASK)
        queue_grant(queue, from, message.round, message.count);
    pthread_mutex_unlock(&queue->lock);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static size_t queue_words(const struct ls_work_queue *queue)
{
    return (queue->end - queue->begin + 31) / 32;
}

/* Room for the bits of this rank, and of all behind them. */
static int queue_reserve(struct ls_work_queue *queue, size_t units, struct ls_error *error)
{
    size_t wanted = (units + 31) / 32 * ((size_t)queue->comm->size + 1);
    if (wanted > queue->had_capacity) {
        uint32_t *longer = ls_resize(queue->had, wanted, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(error, "micro-batches of ranks");
        queue->had = longer;
        queue->had_capacity = wanted;
    }
    return 0;
}

int ls_work_queue_begin(struct ls_work_queue *queue, size_t begin, size_t end,
                        void (*granted)(void *user, size_t unit), void *user,
                        struct ls_error *error)
{
    size_t all = (size_t)queue->comm->first[queue->comm->size], first, count;
    ls_work_queue_given(queue, &first, &count);
    pthread_mutex_lock(&queue->lock);
    int status = queue_reserve(queue, end - begin, error);
    if (status == 0) {
        queue->round = ++queue->comm->rounds;
        queue->begin = begin;
        queue->end = end;
        queue->granted = granted;
        queue->user = user;
        queue->first = queue->count = queue->asked = 0;
        queue->next = all < end - begin ? begin + all : end;
        queue->none_left = false;
        memset(queue->had, 0, queue_words(queue) * sizeof *queue->had);
        for (size_t i = first; i < first + count && i < end - begin; i++)
            queue_receive(queue, begin + i);
        if (queue->next == end)
            queue_end_granting(queue);
        for (int r = 0; r < queue->comm->size; r++) {
            queue_grant(queue, r, queue->round, queue->pending[r]);
            queue->pending[r] = 0;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    ls_progress_thread_listen(queue->comm->progress_thread, true);
    return status;
}

/* A unit that is there; true: there is one, or there are none left. */
static bool queue_take(struct ls_work_queue *queue, size_t *unit)
{
    *unit = SIZE_MAX;
    pthread_mutex_lock(&queue->lock);
    bool there = queue->count > 0;
    if (there) {
        *unit = queue->queue[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        queue_ask_ahead(queue);
    } else if (queue->asked == 0) {
        queue_ask_ahead(queue);
    }
    bool done = there || (queue->count == 0 && queue->none_left);
    pthread_mutex_unlock(&queue->lock);
    return done;
}

int ls_work_queue_take(struct ls_work_queue *queue, size_t *unit, struct ls_error *error)
{
    struct ls_detector *detector = queue->comm->detector;
    int status = 0, asked = 0;
    for (; status == 0 && !queue_take(queue, unit); asked++) {
        ls_detector_receive_now(detector);
        if (asked == SPINS)
            ls_detector_wait(detector, true);
        if (asked < SPINS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = REST}, NULL);
        if (atomic_load(&queue->comm->broken) || ls_detector_alarm(detector))
            status = ls_comm_lost(queue->comm, error);
    }
    if (asked > SPINS)
        ls_detector_wait(detector, false);
    return status;
}

int ls_work_queue_end(struct ls_work_queue *queue, int *owners, struct ls_error *error)
{
    size_t each = queue_words(queue), units = queue->end - queue->begin;
    uint32_t *all = queue->had + each;
    int status = ls_comm_all_gather(queue->comm, queue->had, each * sizeof *all, all, error);
    ls_progress_thread_listen(queue->comm->progress_thread, false);
    LS_TRY(status);
    for (size_t i = 0; i < units; i++) {
        int found = 0;
        for (int r = 0; r < queue->comm->size; r++)
            if ((all[(size_t)r * each + i / 32] >> i % 32 & 1) != 0) {
                owners[queue->begin + i] = r;
                found++;
            }
        if (found != 1)
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "micro-batch %zu was given to %d ranks", queue->begin + i, found);
    }
    return 0;
}
