/* Tickets between ranks. See engine/tickets.h.
 *
 * Messages of one rank come in their order, so whoever is told that there are none left has heard
 * of all units that are its own. A rank may be a round ahead of rank 0: what it asks for then is
 * remembered. Nobody can be further ahead, because rank 0 takes part in the end of each round.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/tickets.h"

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

struct ls_tickets {
    struct ls_comm *comm;
    pthread_mutex_t lock; /* guards what follows */
    uint32_t round;
    size_t begin, end;
    void (*granted)(void *user, size_t unit);
    void *user;
    size_t *queue; /* a ring: units that are this rank's and that no worker has yet */
    size_t first, count, capacity;
    size_t asked;   /* tickets that were asked for and not answered */
    bool none_left; /* rank 0 says so */
    uint32_t
        *had; /* bits by unit of the round: those that this rank was granted; then all ranks' */
    size_t had_capacity;
    /* Rank 0's. */
    size_t next;       /* unit that nobody has */
    uint32_t *pending; /* by rank: tickets that were asked for in the next round */
};

static void hear(void *user, int from, const void *message, size_t bytes);

/* ---- Making them ----------------------------------------------------------------------------- */

int ls_tickets_create(struct ls_comm *comm, struct ls_tickets **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_tickets *tickets = ls_alloc(1, sizeof *tickets);
    if (tickets == NULL)
        return ls_fail_memory(error, "micro-batches of ranks");
    tickets->comm = comm;
    tickets->round = comm->rounds;
    tickets->none_left = true; /* until a round begins: what is heard now is of an earlier one */
    tickets->capacity = 2 * (size_t)comm->workers + 1;
    tickets->queue = ls_alloc(tickets->capacity, sizeof *tickets->queue);
    tickets->pending = ls_alloc((size_t)comm->size, sizeof *tickets->pending);
    pthread_mutex_init(&tickets->lock, NULL);
    if (tickets->queue == NULL || tickets->pending == NULL) {
        ls_tickets_free(tickets);
        return ls_fail_memory(error, "micro-batches of ranks");
    }
    ls_detector_set_on_message(comm->detector, hear, tickets);
    *out = tickets;
    return 0;
}

void ls_tickets_free(struct ls_tickets *tickets)
{
    if (tickets == NULL)
        return;
    ls_detector_set_on_message(tickets->comm->detector, NULL, NULL);
    pthread_mutex_destroy(&tickets->lock);
    ls_free(tickets->queue);
    ls_free(tickets->pending);
    ls_free(tickets->had);
    ls_free(tickets);
}

void ls_tickets_given(const struct ls_tickets *tickets, size_t *first, size_t *count)
{
    *first = (size_t)tickets->comm->first[tickets->comm->rank];
    *count = (size_t)tickets->comm->workers;
}

/* ---- Asking and granting: with the lock held ------------------------------------------------- */

static void receive(struct ls_tickets *tickets, size_t unit)
{
    size_t bit = unit - tickets->begin;
    tickets->queue[(tickets->first + tickets->count++) % tickets->capacity] = unit;
    tickets->had[bit / 32] |= UINT32_C(1) << bit % 32;
    tickets->granted(tickets->user, unit);
}

static void end_granting(struct ls_tickets *tickets)
{
    tickets->none_left = true;
    tickets->granted(tickets->user, SIZE_MAX);
}

/* Behind a message that did not go there is none: who hears the end of a round has heard all. */
static void send(struct ls_tickets *tickets, int to, const struct message *message)
{
    struct ls_transport *transport = tickets->comm->transport;
    if (atomic_load(&tickets->comm->broken) ||
        transport->calls->tell(transport, to, message, sizeof *message) != 0)
        atomic_store(&tickets->comm->broken, true);
    atomic_fetch_add_explicit(&tickets->comm->sent[LS_TRAFFIC_SMALL], sizeof *message,
                              memory_order_relaxed);
}

/* Rank 0's: answers what another rank asks for in a round, which may be over. */
static void grant(struct ls_tickets *tickets, int rank, uint32_t round, uint32_t count)
{
    struct message message = {.kind = GRANT, .round = round};
    for (; count > 0 && message.unit != NONE_LEFT; count--) {
        bool more = round == tickets->round && tickets->next < tickets->end;
        message.unit = more ? (int32_t)tickets->next++ : NONE_LEFT;
        send(tickets, rank, &message);
    }
}

static void ask(struct ls_tickets *tickets, size_t count)
{
    struct message message = {.kind = ASK, .round = tickets->round, .count = (uint32_t)count};
    if (tickets->comm->rank != 0) {
        send(tickets, 0, &message);
        tickets->asked += count;
        return;
    }
    for (; count > 0 && tickets->next < tickets->end; count--)
        receive(tickets, tickets->next++);
    if (LS_MUTANT(TICKET) && tickets->next < tickets->end)
        tickets->next--; /* given once more */
    if (LS_MUTANT(LOST) && tickets->next < tickets->end)
        tickets->next++; /* given to nobody */
    if (tickets->next == tickets->end)
        end_granting(tickets);
}

/* What is granted or asked for is one for each worker, besides those that they have. */
static void ask_ahead(struct ls_tickets *tickets)
{
    size_t ahead = tickets->count + tickets->asked, wanted = (size_t)tickets->comm->workers;
    if (!tickets->none_left && ahead < wanted)
        ask(tickets, wanted - ahead);
}

static void hear_grant(struct ls_tickets *tickets, const struct message *message)
{
    bool unit = message->unit >= 0 && (size_t)message->unit >= tickets->begin &&
                (size_t)message->unit < tickets->end && tickets->count < tickets->capacity;
    if (message->round != tickets->round)
        return; /* of a round that is over: it says that there are none left */
    if (message->unit == NONE_LEFT) {
        tickets->asked = 0;
        if (!tickets->none_left)
            end_granting(tickets);
    } else if (unit && tickets->asked > 0) {
        tickets->asked--;
        receive(tickets, (size_t)message->unit);
    }
}

/* By whatever thread hears messages (transport/failure_detector.h). */
static void hear(void *user, int from, const void *data, size_t bytes)
{
    struct ls_tickets *tickets = user;
    struct message message;
    if (bytes != sizeof message)
        return;
    memcpy(&message, data, sizeof message);
    pthread_mutex_lock(&tickets->lock);
    if (message.kind == GRANT && from == 0)
        hear_grant(tickets, &message);
    else if (message.kind == ASK && message.round == tickets->round + 1)
        tickets->pending[from] += message.count;
    else if (message.kind == ASK)
        grant(tickets, from, message.round, message.count);
    pthread_mutex_unlock(&tickets->lock);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static size_t words(const struct ls_tickets *tickets)
{
    return (tickets->end - tickets->begin + 31) / 32;
}

/* Room for the bits of this rank, and of all behind them. */
static int reserve(struct ls_tickets *tickets, size_t units, struct ls_error *error)
{
    size_t wanted = (units + 31) / 32 * ((size_t)tickets->comm->size + 1);
    if (wanted > tickets->had_capacity) {
        uint32_t *longer = ls_resize(tickets->had, wanted, sizeof *longer);
        if (longer == NULL)
            return ls_fail_memory(error, "micro-batches of ranks");
        tickets->had = longer;
        tickets->had_capacity = wanted;
    }
    return 0;
}

int ls_tickets_begin(struct ls_tickets *tickets, size_t begin, size_t end,
                     void (*granted)(void *user, size_t unit), void *user, struct ls_error *error)
{
    size_t all = (size_t)tickets->comm->first[tickets->comm->size], first, count;
    ls_tickets_given(tickets, &first, &count);
    pthread_mutex_lock(&tickets->lock);
    int status = reserve(tickets, end - begin, error);
    if (status == 0) {
        tickets->round = ++tickets->comm->rounds;
        tickets->begin = begin;
        tickets->end = end;
        tickets->granted = granted;
        tickets->user = user;
        tickets->first = tickets->count = tickets->asked = 0;
        tickets->next = all < end - begin ? begin + all : end;
        tickets->none_left = false;
        memset(tickets->had, 0, words(tickets) * sizeof *tickets->had);
        for (size_t i = first; i < first + count && i < end - begin; i++)
            receive(tickets, begin + i);
        if (tickets->next == end)
            end_granting(tickets);
        for (int r = 0; r < tickets->comm->size; r++) {
            grant(tickets, r, tickets->round, tickets->pending[r]);
            tickets->pending[r] = 0;
        }
    }
    pthread_mutex_unlock(&tickets->lock);
    ls_progress_thread_listen(tickets->comm->progress_thread, true);
    return status;
}

/* A unit that is there; true: there is one, or there are none left. */
static bool take(struct ls_tickets *tickets, size_t *unit)
{
    *unit = SIZE_MAX;
    pthread_mutex_lock(&tickets->lock);
    bool there = tickets->count > 0;
    if (there) {
        *unit = tickets->queue[tickets->first];
        tickets->first = (tickets->first + 1) % tickets->capacity;
        tickets->count--;
        ask_ahead(tickets);
    } else if (tickets->asked == 0) {
        ask_ahead(tickets);
    }
    bool done = there || (tickets->count == 0 && tickets->none_left);
    pthread_mutex_unlock(&tickets->lock);
    return done;
}

int ls_tickets_take(struct ls_tickets *tickets, size_t *unit, struct ls_error *error)
{
    struct ls_detector *detector = tickets->comm->detector;
    int status = 0, asked = 0;
    for (; status == 0 && !take(tickets, unit); asked++) {
        ls_detector_receive_now(detector);
        if (asked == SPINS)
            ls_detector_wait(detector, true);
        if (asked < SPINS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = REST}, NULL);
        if (atomic_load(&tickets->comm->broken) || ls_detector_alarm(detector))
            status = ls_comm_lost(tickets->comm, error);
    }
    if (asked > SPINS)
        ls_detector_wait(detector, false);
    return status;
}

int ls_tickets_end(struct ls_tickets *tickets, int *owners, struct ls_error *error)
{
    size_t each = words(tickets), units = tickets->end - tickets->begin;
    uint32_t *all = tickets->had + each;
    int status = ls_comm_all_gather(tickets->comm, tickets->had, each * sizeof *all, all, error);
    ls_progress_thread_listen(tickets->comm->progress_thread, false);
    LS_TRY(status);
    for (size_t i = 0; i < units; i++) {
        int found = 0;
        for (int r = 0; r < tickets->comm->size; r++)
            if ((all[(size_t)r * each + i / 32] >> i % 32 & 1) != 0) {
                owners[tickets->begin + i] = r;
                found++;
            }
        if (found != 1)
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "micro-batch %zu was given to %d ranks", tickets->begin + i, found);
    }
    return 0;
}
