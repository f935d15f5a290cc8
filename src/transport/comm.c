/* Small exchanges between the ranks of a job. See transport/comm.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/comm.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/partition.h"
#include "base/memory.h"
#include "base/thread.h"
#include "transport/failure_end.h"
#include "transport/progress_thread.h"
#include "transport/failure_detector.h"

enum {
    SPINS = 2000,       /* questions before a waiting rank lets others on its core */
    YIELDS = 20,        /* and before it sleeps between questions */
    SLEEP_MAX = 200000, /* nanoseconds */
    LOST_WAIT = 3,      /* seconds for the failure detector to find out which rank is gone, when a
                           transport fails */
    ALIGNMENT = 4
};

/* ---- Shares ---------------------------------------------------------------------------------- */

int ls_comm_owner(const struct ls_comm *comm, int64_t index, int64_t count)
{
    return ls_partition_owner(comm->first, comm->size, index, count);
}

struct ls_share ls_comm_own(const struct ls_comm *comm)
{
    if (comm->dynamic)
        return (struct ls_share){.any = true};
    return (struct ls_share){
        .before = comm->first[comm->rank], .own = comm->workers, .all = comm->first[comm->size]};
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Between two questions: soon, while it may be a matter of microseconds; then seldom. */
static void comm_rest(int asked)
{
    if (asked < SPINS)
        return;
    if (asked < SPINS + YIELDS) {
        sched_yield();
        return;
    }
    long sleep = 20000L * (asked - SPINS - YIELDS + 1);
    struct timespec time = {.tv_nsec = sleep < SLEEP_MAX ? sleep : SLEEP_MAX};
    nanosleep(&time, NULL);
}

int ls_comm_lost(struct ls_comm *comm, struct ls_error *error)
{
    double first = 0, now = ls_detector_clock(comm->detector);
    if (atomic_compare_exchange_strong(&comm->lost_at, &first, now))
        first = now;
    comm->common = LOCKSTEP_LOST;
    while (!ls_detector_alarm(comm->detector) &&
           ls_detector_clock(comm->detector) - first < LOST_WAIT) {
        struct timespec time = {.tv_nsec = 10000000};
        nanosleep(&time, NULL);
        if (comm->progress_thread == NULL)
            ls_detector_poll(comm->detector);
    }
    if (ls_detector_alarm(comm->detector))
        return ls_detector_fail(comm->detector, error);
    return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "the connection to other ranks failed: %s",
                   comm->transport->failure);
}

/* Waits until an exchange is DONE, or a rank is lost. */
static int comm_wait_for(struct ls_comm *comm, struct ls_transport_op **op, struct ls_error *error)
{
    bool waiting = false;
    int status = 0;
    uint64_t start = ls_nanoseconds();
    for (int asked = 0;; asked++) {
        enum ls_transport_result result = comm->transport->calls->test(comm->transport, op);
        if (result == LS_TRANSPORT_DONE)
            break;
        if (result == LS_TRANSPORT_FAILED) {
            status = ls_comm_lost(comm, error);
            break;
        }
        comm_rest(asked);
        if (asked < SPINS)
            continue;
        if (!waiting)
            ls_detector_wait(comm->detector, waiting = true);
        if (comm->progress_thread == NULL)
            ls_detector_poll(comm->detector);
        if (ls_detector_alarm(comm->detector) || atomic_load(&comm->broken)) {
            status = ls_comm_lost(comm, error);
            break;
        }
    }
    if (waiting)
        ls_detector_wait(comm->detector, false);
    comm->waited[LS_WAIT_SMALL] += ls_nanoseconds() - start;
    return status;
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

static int comm_reserve(unsigned char **memory, size_t *size, size_t wanted, struct ls_error *error)
{
    if (wanted <= *size)
        return 0;
    ls_free_aligned(*memory);
    *size = 0;
    *memory = ls_alloc_aligned(wanted);
    if (*memory == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    *size = wanted;
    return 0;
}

/* Lays the blocks one behind the other; returns what they take together. */
static size_t comm_lay(const struct ls_comm *comm, const size_t *bytes, size_t *offset)
{
    size_t at = 0;
    for (int r = 0; r < comm->size; r++) {
        offset[r] = at;
        at += bytes[r];
    }
    return at;
}

static int comm_gather(struct ls_comm *comm, const void *mine, void *all, struct ls_error *error)
{
    const struct ls_transport_blocks blocks = {comm->bytes, comm->offset};
    struct ls_transport_op *op = NULL;
    atomic_fetch_add_explicit(&comm->sent[LS_TRAFFIC_SMALL],
                              comm->bytes[comm->rank] * (size_t)(comm->size - 1),
                              memory_order_relaxed);
    if (comm->transport->calls->gather(comm->transport, LS_CHANNEL_SMALL, mine, all, &blocks,
                                       &op) != 0)
        return ls_comm_lost(comm, error);
    return comm_wait_for(comm, &op, error);
}

int ls_comm_all_gather_items(struct ls_comm *comm, void *base, size_t stride, size_t bytes,
                             const int *owner, size_t count, struct ls_error *error)
{
    if (comm->size == 1 || bytes == 0 || count == 0)
        return 0;
    memset(comm->bytes, 0, (size_t)comm->size * sizeof *comm->bytes);
    for (size_t i = 0; i < count; i++)
        comm->bytes[owner[i]] += bytes;
    size_t all = comm_lay(comm, comm->bytes, comm->offset);
    LS_TRY(comm_reserve(&comm->in, &comm->in_size, all, error));
    unsigned char *items = base, *own = comm->in + comm->offset[comm->rank];
    for (size_t i = 0, n = 0; i < count; i++)
        if (owner[i] == comm->rank)
            memcpy(own + bytes * n++, items + i * stride, bytes);
    LS_TRY(comm_gather(comm, own, comm->in, error));
    for (size_t i = 0; i < count; i++) {
        size_t *at = &comm->offset[owner[i]];
        if (owner[i] != comm->rank)
            memcpy(items + i * stride, comm->in + *at, bytes);
        *at += bytes;
    }
    return 0;
}

int ls_comm_all_gather(struct ls_comm *comm, const void *mine, size_t bytes, void *all,
                       struct ls_error *error)
{
    if (comm->size == 1) {
        if (all != mine)
            memcpy(all, mine, bytes);
        return 0;
    }
    for (int r = 0; r < comm->size; r++)
        comm->bytes[r] = bytes;
    comm_lay(comm, comm->bytes, comm->offset);
    return comm_gather(comm, mine, all, error);
}

/* One rank's bytes to all. */
static int comm_broadcast_from(struct ls_comm *comm, int from, void *data, size_t bytes,
                               struct ls_error *error)
{
    memset(comm->bytes, 0, (size_t)comm->size * sizeof *comm->bytes);
    comm->bytes[from] = bytes;
    memset(comm->offset, 0, (size_t)comm->size * sizeof *comm->offset);
    return comm_gather(comm, data, data, error);
}

int ls_comm_broadcast(struct ls_comm *comm, void *data, size_t bytes, struct ls_error *error)
{
    return comm->size > 1 ? comm_broadcast_from(comm, 0, data, bytes, error) : 0;
}

int ls_comm_gather(struct ls_comm *comm, const void *mine, void *all, const struct ls_range *part,
                   size_t stride, struct ls_error *error)
{
    int ranks = comm->size;
    size_t own = (size_t)comm->rank * stride, bytes = part[own].end - part[own].begin;
    if (comm->rank == 0 && bytes > 0) /* it may lie there already */
        memmove((unsigned char *)all + part[0].begin, mine, bytes);
    if (ranks == 1)
        return 0;
    size_t *out = comm->bytes, *in = comm->bytes + ranks;
    size_t *out_offset = comm->offset, *in_offset = comm->offset + ranks;
    memset(comm->bytes, 0, 4 * (size_t)ranks * sizeof *comm->bytes);
    if (comm->rank != 0) {
        out[0] = bytes;
        comm->sent[LS_TRAFFIC_SMALL] += bytes;
    }
    for (int r = 1; r < ranks && comm->rank == 0; r++) {
        in[r] = part[(size_t)r * stride].end - part[(size_t)r * stride].begin;
        in_offset[r] = part[(size_t)r * stride].begin;
    }
    /* What was sent may lie in what is received. Open MPI takes one address for both to mean that
     * it is all to happen in place, so the side that has no bytes gets another one. */
    const void *source = comm->rank == 0 ? (const void *)comm->bytes : mine;
    void *target = comm->rank == 0 ? all : (void *)comm->offset;
    struct ls_transport_op *op = NULL;
    const struct ls_transport_blocks from = {out, out_offset}, to = {in, in_offset};
    if (comm->transport->calls->exchange(comm->transport, LS_CHANNEL_SMALL, source, &from, target,
                                         &to, &op) != 0)
        return ls_comm_lost(comm, error);
    return comm_wait_for(comm, &op, error);
}

/* ---- Agreement ------------------------------------------------------------------------------- */

/* What a rank says of its failure to the others. */
struct last_words {
    char host[64];
    struct ls_problem problem;
};

/* Texts of another rank end where it says, or where their room does. */
static void comm_repeat_words(struct last_words *words, int rank, int status,
                              struct ls_error *error)
{
    struct ls_problem *problem = &words->problem;
    problem->place[sizeof problem->place - 1] = '\0';
    problem->hint[sizeof problem->hint - 1] = '\0';
    problem->message[sizeof problem->message - 1] = '\0';
    ls_fail(error, status, problem->place, problem->hint, "%s (rank %d, host %.63s)",
            problem->message, rank, words->host);
}

int ls_comm_agree(struct ls_comm *comm, int status, struct ls_error *error)
{
    struct last_words words = {.host = ""};
    _Static_assert(sizeof words % ALIGNMENT == 0, "what transports carry");
    if (comm->size == 1)
        return ls_comm_common(comm, status);
    int32_t mine = status, *all = comm->statuses;
    int result = ls_comm_all_gather(comm, &mine, sizeof mine, all, error);
    int first = 0;
    while (result == 0 && first < comm->size && all[first] == 0)
        first++;
    if (result == 0 && first < comm->size) {
        result = all[first];
        snprintf(words.host, sizeof words.host, "%s", comm->transport->host);
        if (error != NULL && error->count > 0)
            words.problem = error->problems[0];
        int lost = comm_broadcast_from(comm, first, &words, sizeof words, error);
        if (lost != 0)
            result = lost;
        else if (status == 0)
            comm_repeat_words(&words, first, result, error);
    }
    return ls_comm_common(comm, result);
}

int ls_comm_common(struct ls_comm *comm, int status)
{
    comm->common = status;
    return status;
}

int ls_comm_conclude(struct ls_comm *comm, int status, const struct ls_error *error)
{
    bool common = comm->common == status;
    char text[2048] = "out of memory";
    comm->common = 0;
    if (status == 0 || status == LOCKSTEP_LOST || common || comm->size == 1)
        return status;
    if (error != NULL && error->count > 0)
        ls_error_format(error, text, sizeof text);
    ls_detector_abort(comm->detector, status, text);
    return status;
}

uint32_t ls_comm_request(struct ls_comm *comm, uint32_t bits)
{
    uint32_t agreed = comm->agreed;
    comm->agreed = 0;
    if (comm->size == 1)
        return agreed | bits;
    comm->requests |= bits;
    return agreed;
}
