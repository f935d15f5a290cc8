/* Transports between threads. See transport/local.h.
 *
 * The ranks' k-th operations on a channel meet: the first of them makes a meeting, the last one to
 * be DONE with it frees it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/local.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"

enum { OUT_BYTES, OUT_OFFSET, IN_BYTES, IN_OFFSET, LISTS };

struct ls_transport_op {
    struct meeting *meeting;
    bool gather, fetched;
    const unsigned char *out;
    unsigned char *in;
    size_t *lists[LISTS]; /* [rank] */
    uint64_t through;     /* when its bytes are, in nanoseconds of ls_nanoseconds */
    uint64_t due;         /* not DONE before */
};

struct meeting {
    enum ls_channel channel;
    uint64_t number; /* on its channel */
    int arrived, fetched, left;
    struct meeting *next;
    struct ls_transport_op ops[]; /* [rank]; their lists are behind them */
};

struct message {
    struct message *next;
    int from;
    uint64_t due;
    size_t bytes;
    unsigned char data[];
};

struct member {
    struct ls_transport transport;
    struct job *job;
    uint64_t started[LS_CHANNELS]; /* operations */
    uint64_t line;                 /* until when it sends or receives what has been started */
    bool muted;
    _Atomic bool blocked;
    struct message *first, *last; /* to this rank, in the order in which they were told */
};

struct job {
    pthread_mutex_t lock; /* of all that follows */
    int members;          /* whose transports have not ended */
    uint64_t latency;     /* nanoseconds */
    double rate;          /* bytes a second; 0: any */
    bool ended;
    int code;
    struct meeting *meetings;
    int size;
    struct member member[]; /* [rank] */
};

static struct member *local_member_of(struct ls_transport *transport)
{
    return (struct member *)transport; /* its first field */
}

/* The member that a call is made by, where it is not to wait for ever. */
static struct member *local_caller(struct ls_transport *transport)
{
    struct member *member = local_member_of(transport);
    while (atomic_load_explicit(&member->blocked, memory_order_relaxed))
        pause();
    return member;
}

/* The nanoseconds that bytes take. */
static uint64_t local_duration(const struct job *job, size_t bytes)
{
    return job->rate > 0 ? (uint64_t)((double)bytes / job->rate * 1e9) : 0;
}

static int local_fail(struct member *member, const char *text)
{
    snprintf(member->transport.failure, sizeof member->transport.failure, "%s", text);
    return -1;
}

static struct meeting *local_make_meeting(struct job *job, enum ls_channel channel, uint64_t number)
{
    size_t size = (size_t)job->size;
    size_t ops = size * sizeof(struct ls_transport_op);
    struct meeting *meeting =
        ls_alloc(1, sizeof *meeting + ops + size * LISTS * size * sizeof(size_t));
    if (meeting == NULL)
        return NULL;
    size_t *lists = (size_t *)(meeting->ops + size);
    for (size_t rank = 0; rank < size; rank++) {
        meeting->ops[rank].meeting = meeting;
        for (size_t list = 0; list < LISTS; list++)
            meeting->ops[rank].lists[list] = lists + (rank * LISTS + list) * size;
    }
    meeting->channel = channel;
    meeting->number = number;
    meeting->next = job->meetings;
    job->meetings = meeting;
    return meeting;
}

static struct meeting *local_next_meeting(struct member *member, enum ls_channel channel)
{
    struct meeting *meeting = member->job->meetings;
    uint64_t number = member->started[channel];
    while (meeting != NULL && (meeting->channel != channel || meeting->number != number))
        meeting = meeting->next;
    return meeting != NULL ? meeting : local_make_meeting(member->job, channel, number);
}

static void local_forget_meeting(struct job *job, struct meeting *meeting)
{
    for (struct meeting **at = &job->meetings; *at != NULL; at = &(*at)->next)
        if (*at == meeting) {
            *at = meeting->next;
            break;
        }
    ls_free(meeting);
}

/* Bytes to other ranks, or from them, whichever are more. */
static size_t local_load(const struct job *job, const struct meeting *meeting, int rank)
{
    const struct ls_transport_op *op = &meeting->ops[rank];
    size_t out = 0, in = 0;
    for (int other = 0; other < job->size; other++) {
        out += other != rank ? op->lists[OUT_BYTES][other] : 0;
        in += other != rank ? op->lists[IN_BYTES][other] : 0;
    }
    return out > in ? out : in;
}

/* All have arrived: says when each is DONE at the earliest, which is a latency after its own bytes
 * and those of all that send to it are through. */
static void local_set_dues(struct job *job, struct meeting *meeting)
{
    uint64_t now = ls_nanoseconds();
    for (int rank = 0; rank < job->size; rank++) {
        struct member *member = &job->member[rank];
        uint64_t time = local_duration(job, local_load(job, meeting, rank));
        member->line = (member->line > now ? member->line : now) + time;
        meeting->ops[rank].through =
            meeting->channel == LS_CHANNEL_SMALL ? now + time : member->line;
    }
    for (int rank = 0; rank < job->size; rank++) {
        struct ls_transport_op *op = &meeting->ops[rank];
        op->due = op->through;
        for (int from = 0; from < job->size; from++)
            if (op->lists[IN_BYTES][from] > 0 && op->due < meeting->ops[from].through)
                op->due = meeting->ops[from].through;
        op->due += job->latency;
    }
}

static void local_copy_lists(struct ls_transport_op *op, int size,
                             const struct ls_transport_blocks *out,
                             const struct ls_transport_blocks *in)
{
    size_t bytes = (size_t)size * sizeof(size_t);
    memcpy(op->lists[OUT_BYTES], out->bytes, bytes);
    memcpy(op->lists[OUT_OFFSET], out->offset, bytes);
    memcpy(op->lists[IN_BYTES], in->bytes, bytes);
    memcpy(op->lists[IN_OFFSET], in->offset, bytes);
}

/* With `out_blocks` NULL all ranks get the same block, this rank's of `in_blocks`. */
static int local_start(struct member *member, enum ls_channel channel, const void *out,
                       const struct ls_transport_blocks *out_blocks, void *in,
                       const struct ls_transport_blocks *in_blocks, struct ls_transport_op **result)
{
    struct job *job = member->job;
    if (job->ended)
        return local_fail(member, "the job has been ended");
    struct meeting *meeting = local_next_meeting(member, channel);
    if (meeting == NULL)
        return local_fail(member, "out of memory for an operation");
    struct ls_transport_op *op = &meeting->ops[member->transport.rank];
    op->gather = out_blocks == NULL;
    op->out = out;
    op->in = in;
    local_copy_lists(op, job->size, op->gather ? in_blocks : out_blocks, in_blocks);
    for (int rank = 0; op->gather && rank < job->size; rank++) {
        op->lists[OUT_BYTES][rank] = in_blocks->bytes[member->transport.rank];
        op->lists[OUT_OFFSET][rank] = 0;
    }
    member->started[channel]++;
    if (!member->muted && ++meeting->arrived == job->size)
        local_set_dues(job, meeting);
    *result = op;
    return 0;
}

static int local_gather(struct ls_transport *transport, enum ls_channel channel, const void *mine,
                        void *all, const struct ls_transport_blocks *blocks,
                        struct ls_transport_op **op)
{
    struct member *member = local_caller(transport);
    pthread_mutex_lock(&member->job->lock);
    int result = local_start(member, channel, mine, NULL, all, blocks, op);
    pthread_mutex_unlock(&member->job->lock);
    return result;
}

static int local_exchange(struct ls_transport *transport, enum ls_channel channel, const void *out,
                          const struct ls_transport_blocks *out_blocks, void *in,
                          const struct ls_transport_blocks *in_blocks, struct ls_transport_op **op)
{
    struct member *member = local_caller(transport);
    pthread_mutex_lock(&member->job->lock);
    int result = local_start(member, channel, out, out_blocks, in, in_blocks, op);
    pthread_mutex_unlock(&member->job->lock);
    return result;
}

/* Returns whether the ranks mean the same operation. */
static bool local_fetch(const struct meeting *meeting, int rank, int size)
{
    const struct ls_transport_op *op = &meeting->ops[rank];
    for (int r = 0; r < size; r++) {
        const struct ls_transport_op *from = &meeting->ops[r];
        size_t bytes = op->lists[IN_BYTES][r];
        if (from->gather != op->gather || from->lists[OUT_BYTES][rank] != bytes)
            return false;
        unsigned char *to = op->in + op->lists[IN_OFFSET][r];
        const unsigned char *data = from->out + from->lists[OUT_OFFSET][rank];
        if (bytes > 0 && to != data)
            memcpy(to, data, bytes);
    }
    return true;
}

/* This rank fetches whatever is there for it. Returns whether all was as it should be. */
static bool local_fetch_all(struct member *member)
{
    int size = member->job->size, rank = member->transport.rank;
    for (struct meeting *meeting = member->job->meetings; meeting; meeting = meeting->next) {
        struct ls_transport_op *op = &meeting->ops[rank];
        if (meeting->arrived < size || op->fetched)
            continue;
        if (!local_fetch(meeting, rank, size))
            return false;
        op->fetched = true;
        meeting->fetched++;
    }
    return true;
}

static enum ls_transport_result local_move_on(struct member *member, struct ls_transport_op *op)
{
    struct job *job = member->job;
    struct meeting *meeting = op->meeting;
    if (job->ended)
        return local_fail(member, "the job has been ended");
    if (!local_fetch_all(member))
        return local_fail(member, "ranks have started different operations, or of other sizes");
    if (meeting->fetched < job->size || ls_nanoseconds() < op->due)
        return LS_TRANSPORT_RUNNING;
    if (++meeting->left == job->size)
        local_forget_meeting(job, meeting);
    return LS_TRANSPORT_DONE;
}

static enum ls_transport_result local_test(struct ls_transport *transport,
                                           struct ls_transport_op **op)
{
    struct member *member = local_caller(transport);
    pthread_mutex_lock(&member->job->lock);
    enum ls_transport_result result = local_move_on(member, *op);
    pthread_mutex_unlock(&member->job->lock);
    if (result == LS_TRANSPORT_DONE)
        *op = NULL;
    return result;
}

static int local_tell(struct ls_transport *transport, int to, const void *data, size_t bytes)
{
    struct member *member = local_caller(transport);
    struct job *job = member->job;
    struct message *message = ls_alloc(1, sizeof *message + bytes);
    pthread_mutex_lock(&job->lock);
    int result = 0;
    if (message == NULL || bytes > LS_TRANSPORT_MESSAGE) {
        result = local_fail(member, message == NULL ? "out of memory for a message"
                                                    : "a message is too long");
        ls_free(message);
    } else if (member->muted) {
        ls_free(message);
    } else {
        *message = (struct message){
            .from = transport->rank, .due = ls_nanoseconds() + job->latency, .bytes = bytes};
        memcpy(message->data, data, bytes);
        struct member *hearer = &job->member[to];
        if (hearer->last != NULL)
            hearer->last->next = message;
        else
            hearer->first = message;
        hearer->last = message;
    }
    pthread_mutex_unlock(&job->lock);
    return result;
}

static int local_hear(struct ls_transport *transport, int *from, void *data, size_t room)
{
    struct member *member = local_caller(transport);
    struct job *job = member->job;
    size_t bytes = 0;
    pthread_mutex_lock(&job->lock);
    struct message *message = member->first;
    if (message != NULL && ls_nanoseconds() >= message->due) {
        member->first = message->next;
        if (member->first == NULL)
            member->last = NULL;
        *from = message->from;
        bytes = message->bytes < room ? message->bytes : room;
        memcpy(data, message->data, bytes);
        ls_free(message);
    }
    pthread_mutex_unlock(&job->lock);
    return (int)bytes;
}

static void local_free_job(struct job *job)
{
    for (struct meeting *next, *meeting = job->meetings; meeting != NULL; meeting = next) {
        next = meeting->next;
        ls_free(meeting);
    }
    for (int rank = 0; rank < job->size; rank++)
        for (struct message *next, *told = job->member[rank].first; told != NULL; told = next) {
            next = told->next;
            ls_free(told);
        }
    pthread_mutex_destroy(&job->lock);
    ls_free(job);
}

static void local_end(struct ls_transport *transport)
{
    struct job *job = local_member_of(transport)->job;
    pthread_mutex_lock(&job->lock);
    bool last = --job->members == 0;
    pthread_mutex_unlock(&job->lock);
    if (last)
        local_free_job(job);
}

static void local_end_job(struct ls_transport *transport, int code)
{
    struct job *job = local_member_of(transport)->job;
    pthread_mutex_lock(&job->lock);
    if (!job->ended)
        job->code = code;
    job->ended = true;
    pthread_mutex_unlock(&job->lock);
}

static const struct ls_transport_calls calls = {
    .gather = local_gather,
    .exchange = local_exchange,
    .test = local_test,
    .tell = local_tell,
    .hear = local_hear,
    .end = local_end,
    .abort = local_end_job,
};

int ls_local_transports(int size, struct ls_transport **transports, struct ls_error *error)
{
    struct job *job = ls_alloc(1, sizeof *job + (size_t)size * sizeof(struct member));
    if (job == NULL || pthread_mutex_init(&job->lock, NULL) != 0) {
        ls_free(job);
        return ls_fail_memory(error, "transports between threads");
    }
    job->size = job->members = size;
    for (int rank = 0; rank < size; rank++) {
        struct member *member = &job->member[rank];
        member->job = job;
        member->transport = (struct ls_transport){.calls = &calls,
                                                  .name = "threads",
                                                  .rank = rank,
                                                  .size = size,
                                                  .host_rank = rank,
                                                  .host_size = size,
                                                  .host = "localhost"};
        transports[rank] = &member->transport;
    }
    return 0;
}

void ls_local_delay(struct ls_transport *transport, double latency, double bytes_per_second)
{
    struct job *job = local_member_of(transport)->job;
    pthread_mutex_lock(&job->lock);
    job->latency = (uint64_t)(latency * 1e9);
    job->rate = bytes_per_second;
    pthread_mutex_unlock(&job->lock);
}

void ls_local_mute(struct ls_transport *transport)
{
    struct member *member = local_member_of(transport);
    pthread_mutex_lock(&member->job->lock);
    member->muted = true;
    pthread_mutex_unlock(&member->job->lock);
}

void ls_local_block(struct ls_transport *transport)
{
    atomic_store(&local_member_of(transport)->blocked, true);
}

bool ls_local_ended(struct ls_transport *transport, int *code)
{
    struct job *job = local_member_of(transport)->job;
    pthread_mutex_lock(&job->lock);
    bool ended = job->ended;
    if (code != NULL)
        *code = job->code;
    pthread_mutex_unlock(&job->lock);
    return ended;
}
