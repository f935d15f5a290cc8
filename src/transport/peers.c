/* Small exchanges between the ranks of a job. See transport/peers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/peers.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/deal.h"
#include "base/memory.h"
#include "base/thread.h"
#include "transport/progress_thread.h"
#include "transport/watch.h"

enum {
    SPINS = 2000,       /* questions before a waiting rank lets others on its core */
    YIELDS = 20,        /* and before it sleeps between questions */
    SLEEP_MAX = 200000, /* nanoseconds */
    LOST_WAIT = 3,      /* seconds for the watch to find out who is gone, when a link fails */
    ALIGNMENT = 4
};

/* ---- A job's beginning and end --------------------------------------------------------------- */

static void release(struct ls_peers *peers)
{
    ls_watch_free(peers->watch);
    ls_free(peers->first);
    ls_free(peers->bytes);
    ls_free(peers->statuses);
    ls_free_aligned(peers->out);
    ls_free_aligned(peers->in);
    ls_free(peers);
}

int ls_peers_create(struct ls_link *link, const struct ls_peers_options *options,
                    struct ls_peers **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_peers *peers = ls_alloc(1, sizeof *peers);
    int status = peers == NULL ? ls_fail_memory(error, "a job") : 0;
    if (status == 0) {
        peers->link = link;
        peers->rank = link->rank;
        peers->size = link->size;
        peers->timeout = options->timeout;
        peers->dynamic = options->dynamic;
        peers->first = ls_alloc((size_t)link->size + 1, sizeof *peers->first);
        peers->bytes = ls_alloc(4 * (size_t)link->size, sizeof *peers->bytes);
        peers->offset = peers->bytes != NULL ? peers->bytes + 2 * link->size : NULL;
        peers->statuses = ls_alloc((size_t)link->size, sizeof *peers->statuses);
        if (peers->first == NULL || peers->bytes == NULL || peers->statuses == NULL)
            status = ls_fail_memory(error, "a job");
    }
    if (status == 0)
        status = ls_watch_create(link, options->timeout, &peers->watch, error);
    if (status == 0) {
        *out = peers;
        return 0;
    }
    if (peers != NULL)
        release(peers);
    link->calls->abort(link, status);
    return status;
}

int ls_peers_start(struct ls_peers *peers, int workers, void (*enter_thread)(void),
                   struct ls_error *error)
{
    int status = 0;
    peers->workers = workers;
    if (peers->progress_thread == NULL)
        status = ls_progress_thread_start(peers, enter_thread, &peers->progress_thread, error);
    int mine = status == 0 ? workers : 0; /* the others wait for this in any case */
    int lost = ls_peers_gather(peers, &mine, sizeof mine, peers->first + 1, error);
    for (int r = 0; r < peers->size && lost == 0; r++)
        peers->first[r + 1] += peers->first[r];
    return status != 0 ? status : lost;
}

void ls_peers_end(struct ls_peers *peers)
{
    if (peers == NULL)
        return;
    ls_progress_thread_stop(peers->progress_thread);
    peers->link->calls->end(peers->link);
    release(peers);
}

int ls_peers_dealt(const struct ls_peers *peers, int64_t index, int64_t count)
{
    return ls_dealt(peers->first, peers->size, index, count);
}

struct ls_share ls_peers_own(const struct ls_peers *peers)
{
    if (!ls_peers_several(peers) || peers->dynamic)
        return (struct ls_share){.any = ls_peers_several(peers)};
    return (struct ls_share){.before = peers->first[peers->rank],
                             .own = peers->workers,
                             .all = peers->first[peers->size]};
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Between two questions: soon, while it may be a matter of microseconds; then seldom. */
static void rest(int asked)
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

int ls_peers_lost(struct ls_peers *peers, struct ls_error *error)
{
    double deadline = ls_clock() + LOST_WAIT;
    while (!ls_watch_alarm(peers->watch) && ls_clock() < deadline) {
        struct timespec time = {.tv_nsec = 10000000};
        nanosleep(&time, NULL);
        if (peers->progress_thread == NULL)
            ls_watch_turn(peers->watch);
    }
    if (ls_watch_alarm(peers->watch))
        return ls_watch_fail(peers->watch, error);
    return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "the connection to other ranks failed: %s",
                   peers->link->failure);
}

/* Waits until an exchange is DONE, or somebody is lost. */
static int wait_for(struct ls_peers *peers, struct ls_link_op **op, struct ls_error *error)
{
    bool waiting = false;
    int status = 0;
    uint64_t start = ls_nanoseconds();
    for (int asked = 0;; asked++) {
        enum ls_link_result result = peers->link->calls->test(peers->link, op);
        if (result == LS_LINK_DONE)
            break;
        if (result == LS_LINK_FAILED) {
            status = ls_peers_lost(peers, error);
            break;
        }
        rest(asked);
        if (asked < SPINS)
            continue;
        if (!waiting)
            ls_watch_wait(peers->watch, waiting = true);
        if (peers->progress_thread == NULL)
            ls_watch_turn(peers->watch);
        if (ls_watch_alarm(peers->watch) || atomic_load(&peers->broken)) {
            status = ls_peers_lost(peers, error);
            break;
        }
    }
    if (waiting)
        ls_watch_wait(peers->watch, false);
    peers->waited[LS_WAIT_SMALL] += ls_nanoseconds() - start;
    return status;
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

static int reserve(unsigned char **memory, size_t *size, size_t wanted, struct ls_error *error)
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
static size_t lay(const struct ls_peers *peers, const size_t *bytes, size_t *offset)
{
    size_t at = 0;
    for (int r = 0; r < peers->size; r++) {
        offset[r] = at;
        at += bytes[r];
    }
    return at;
}

static int gather(struct ls_peers *peers, const void *mine, void *all, struct ls_error *error)
{
    const struct ls_link_blocks blocks = {peers->bytes, peers->offset};
    struct ls_link_op *op = NULL;
    atomic_fetch_add_explicit(&peers->sent[LS_TRAFFIC_SMALL],
                              peers->bytes[peers->rank] * (size_t)(peers->size - 1),
                              memory_order_relaxed);
    if (peers->link->calls->gather(peers->link, LS_CHANNEL_SMALL, mine, all, &blocks, &op) != 0)
        return ls_peers_lost(peers, error);
    return wait_for(peers, &op, error);
}

int ls_peers_share(struct ls_peers *peers, void *base, size_t stride, size_t bytes,
                   const int *owner, size_t count, struct ls_error *error)
{
    if (!ls_peers_several(peers) || bytes == 0 || count == 0)
        return 0;
    memset(peers->bytes, 0, (size_t)peers->size * sizeof *peers->bytes);
    for (size_t i = 0; i < count; i++)
        peers->bytes[owner[i]] += bytes;
    size_t all = lay(peers, peers->bytes, peers->offset);
    LS_TRY(reserve(&peers->in, &peers->in_size, all, error));
    unsigned char *items = base, *own = peers->in + peers->offset[peers->rank];
    for (size_t i = 0, n = 0; i < count; i++)
        if (owner[i] == peers->rank)
            memcpy(own + bytes * n++, items + i * stride, bytes);
    LS_TRY(gather(peers, own, peers->in, error));
    for (size_t i = 0; i < count; i++) {
        size_t *at = &peers->offset[owner[i]];
        if (owner[i] != peers->rank)
            memcpy(items + i * stride, peers->in + *at, bytes);
        *at += bytes;
    }
    return 0;
}

int ls_peers_gather(struct ls_peers *peers, const void *mine, size_t bytes, void *all,
                    struct ls_error *error)
{
    if (!ls_peers_several(peers)) {
        memcpy(all, mine, bytes);
        return 0;
    }
    for (int r = 0; r < peers->size; r++)
        peers->bytes[r] = bytes;
    lay(peers, peers->bytes, peers->offset);
    return gather(peers, mine, all, error);
}

/* One rank's bytes to all. */
static int broadcast_from(struct ls_peers *peers, int from, void *data, size_t bytes,
                          struct ls_error *error)
{
    memset(peers->bytes, 0, (size_t)peers->size * sizeof *peers->bytes);
    peers->bytes[from] = bytes;
    memset(peers->offset, 0, (size_t)peers->size * sizeof *peers->offset);
    return gather(peers, data, data, error);
}

int ls_peers_broadcast(struct ls_peers *peers, void *data, size_t bytes, struct ls_error *error)
{
    return ls_peers_several(peers) ? broadcast_from(peers, 0, data, bytes, error) : 0;
}

int ls_peers_collect(struct ls_peers *peers, const void *mine, void *all,
                     const struct ls_range *part, size_t stride, struct ls_error *error)
{
    int ranks = ls_peers_several(peers) ? peers->size : 1;
    size_t own = (size_t)ls_peers_rank(peers) * stride, bytes = part[own].end - part[own].begin;
    if (ls_peers_rank(peers) == 0 && bytes > 0) /* it may lie there already */
        memmove((unsigned char *)all + part[0].begin, mine, bytes);
    if (ranks == 1)
        return 0;
    size_t *out = peers->bytes, *in = peers->bytes + ranks;
    size_t *out_offset = peers->offset, *in_offset = peers->offset + ranks;
    memset(peers->bytes, 0, 4 * (size_t)ranks * sizeof *peers->bytes);
    if (peers->rank != 0) {
        out[0] = bytes;
        peers->sent[LS_TRAFFIC_SMALL] += bytes;
    }
    for (int r = 1; r < ranks && peers->rank == 0; r++) {
        in[r] = part[(size_t)r * stride].end - part[(size_t)r * stride].begin;
        in_offset[r] = part[(size_t)r * stride].begin;
    }
    struct ls_link_op *op = NULL;
    const struct ls_link_blocks from = {out, out_offset}, to = {in, in_offset};
    if (peers->link->calls->exchange(peers->link, LS_CHANNEL_SMALL, mine, &from, all, &to, &op) !=
        0)
        return ls_peers_lost(peers, error);
    return wait_for(peers, &op, error);
}

/* ---- Agreement ------------------------------------------------------------------------------- */

/* What a rank says of its failure to the others. */
struct last_words {
    char host[64];
    struct ls_problem problem;
};

/* Texts of another rank end where it says, or where their room does. */
static void repeat_words(struct last_words *words, int rank, int status, struct ls_error *error)
{
    struct ls_problem *problem = &words->problem;
    problem->place[sizeof problem->place - 1] = '\0';
    problem->hint[sizeof problem->hint - 1] = '\0';
    problem->message[sizeof problem->message - 1] = '\0';
    ls_fail(error, status, problem->place, problem->hint, "%s (rank %d, host %.63s)",
            problem->message, rank, words->host);
}

int ls_peers_agree(struct ls_peers *peers, int status, struct ls_error *error)
{
    struct last_words words = {.host = ""};
    _Static_assert(sizeof words % ALIGNMENT == 0, "what links carry");
    if (!ls_peers_several(peers))
        return status;
    int32_t mine = status, *all = peers->statuses;
    int result = ls_peers_gather(peers, &mine, sizeof mine, all, error);
    int first = 0;
    while (result == 0 && first < peers->size && all[first] == 0)
        first++;
    if (result == 0 && first < peers->size) {
        result = all[first];
        snprintf(words.host, sizeof words.host, "%s", peers->link->host);
        if (error != NULL && error->count > 0)
            words.problem = error->problems[0];
        int lost = broadcast_from(peers, first, &words, sizeof words, error);
        if (lost != 0)
            result = lost;
        else if (status == 0)
            repeat_words(&words, first, result, error);
    }
    return result;
}

int ls_peers_lone_failure(struct ls_peers *peers, int status, const struct ls_error *error)
{
    char text[2048] = "out of memory";
    if (status == 0 || status == LOCKSTEP_LOST || !ls_peers_several(peers))
        return status;
    if (error != NULL && error->count > 0)
        ls_error_format(error, text, sizeof text);
    ls_watch_give_up(peers->watch, status, text);
    return status;
}
