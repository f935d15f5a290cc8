/* The transport over MPI: a module of its own for each MPI library, loaded by transport/launch.c.
 * It needs version 3 of MPI, whose collective operations can be under way while others compute.
 *
 * One lock guards every call, so that MPI_THREAD_SERIALIZED is enough; no call waits for other
 * ranks but those of `open` and `end`, so that no thread holds the lock for long. Each channel has
 * a communicator of its own, and so have messages.
 *
 * Blocks are sent as 32-bit words: a block may have 2^31 - 1 of them, 8 GiB.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport/transport.h"

enum { WORD = 4, ABORT_WAIT = 2 /* seconds */ };

enum { OUT_COUNT, OUT_PLACE, IN_COUNT, IN_PLACE, LISTS };

struct ls_transport_op {
    struct ls_transport_op *next; /* of those that are free */
    MPI_Request request;
    int lists[]; /* [list][rank]: MPI reads them until the operation is done */
};

/* A message under way. */
struct told {
    struct told *next;
    MPI_Request request;
    char data[];
};

struct mpi_transport {
    struct ls_transport transport;
    pthread_mutex_t lock; /* of all that follows, and of MPI */
    MPI_Comm channel[LS_CHANNELS], messages;
    struct ls_transport_op *free_ops;
    struct told *told;
    MPI_Request hearing; /* the next message from anybody, into `heard` */
    char heard[LS_TRANSPORT_MESSAGE];
    uint64_t *told_to, *heard_from, *meant_for; /* [rank]: messages; one allocation */
    bool ours;                                  /* MPI was not there before */
};

static struct mpi_transport *mpi_of(struct ls_transport *transport)
{
    return (struct mpi_transport *)transport; /* its first field */
}

/* Whether a call of MPI went well; says so in the transport's failure. */
static bool mpi_good(struct mpi_transport *mpi, int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    snprintf(mpi->transport.failure, sizeof mpi->transport.failure, "%s: %s", call, text);
    return false;
}

/* Blocks as MPI wants them. */
static bool mpi_convert(struct mpi_transport *mpi, const struct ls_transport_blocks *blocks,
                        int *count, int *place)
{
    for (int rank = 0; rank < mpi->transport.size; rank++) {
        size_t words = blocks->bytes[rank] / WORD, at = blocks->offset[rank] / WORD;
        if (words > INT_MAX || at > INT_MAX) {
            snprintf(mpi->transport.failure, sizeof mpi->transport.failure,
                     "a block of %zu bytes at %zu is beyond the 2^31 words that MPI counts",
                     blocks->bytes[rank], blocks->offset[rank]);
            return false;
        }
        count[rank] = (int)words;
        place[rank] = (int)at;
    }
    return true;
}

/* An operation with blocks in its lists, or NULL. */
static struct ls_transport_op *mpi_new_op(struct mpi_transport *mpi,
                                          const struct ls_transport_blocks *out,
                                          const struct ls_transport_blocks *in)
{
    size_t size = (size_t)mpi->transport.size;
    struct ls_transport_op *op = mpi->free_ops;
    if (op != NULL)
        mpi->free_ops = op->next;
    else
        op = calloc(1, sizeof *op + LISTS * size * sizeof(int));
    if (op == NULL) {
        snprintf(mpi->transport.failure, sizeof mpi->transport.failure,
                 "out of memory for an operation");
        return NULL;
    }
    int *lists = op->lists;
    if (mpi_convert(mpi, out, lists + OUT_COUNT * size, lists + OUT_PLACE * size) &&
        mpi_convert(mpi, in, lists + IN_COUNT * size, lists + IN_PLACE * size))
        return op;
    op->next = mpi->free_ops;
    mpi->free_ops = op;
    return NULL;
}

static int mpi_gather(struct ls_transport *transport, enum ls_channel channel, const void *mine,
                      void *all, const struct ls_transport_blocks *blocks,
                      struct ls_transport_op **result)
{
    struct mpi_transport *mpi = mpi_of(transport);
    size_t size = (size_t)transport->size;
    bool there = mine == (const char *)all + blocks->offset[transport->rank];
    pthread_mutex_lock(&mpi->lock);
    struct ls_transport_op *op = mpi_new_op(mpi, blocks, blocks);
    bool started =
        op != NULL &&
        mpi_good(mpi,
                 MPI_Iallgatherv(there ? MPI_IN_PLACE : mine,
                                 op->lists[IN_COUNT * size + (size_t)transport->rank], MPI_UINT32_T,
                                 all, op->lists + IN_COUNT * size, op->lists + IN_PLACE * size,
                                 MPI_UINT32_T, mpi->channel[channel], &op->request),
                 "MPI_Iallgatherv");
    pthread_mutex_unlock(&mpi->lock);
    *result = started ? op : NULL;
    return started ? 0 : -1;
}

static int mpi_exchange(struct ls_transport *transport, enum ls_channel channel, const void *out,
                        const struct ls_transport_blocks *out_blocks, void *in,
                        const struct ls_transport_blocks *in_blocks,
                        struct ls_transport_op **result)
{
    struct mpi_transport *mpi = mpi_of(transport);
    size_t size = (size_t)transport->size;
    pthread_mutex_lock(&mpi->lock);
    struct ls_transport_op *op = mpi_new_op(mpi, out_blocks, in_blocks);
    bool started = op != NULL &&
                   mpi_good(mpi,
                            MPI_Ialltoallv(out, op->lists + OUT_COUNT * size,
                                           op->lists + OUT_PLACE * size, MPI_UINT32_T, in,
                                           op->lists + IN_COUNT * size, op->lists + IN_PLACE * size,
                                           MPI_UINT32_T, mpi->channel[channel], &op->request),
                            "MPI_Ialltoallv");
    pthread_mutex_unlock(&mpi->lock);
    *result = started ? op : NULL;
    return started ? 0 : -1;
}

static enum ls_transport_result mpi_test(struct ls_transport *transport,
                                         struct ls_transport_op **op)
{
    struct mpi_transport *mpi = mpi_of(transport);
    int done = 0;
    pthread_mutex_lock(&mpi->lock);
    bool went = mpi_good(mpi, MPI_Test(&(*op)->request, &done, MPI_STATUS_IGNORE),
                         "an operation between all ranks");
    if (went && done) {
        (*op)->next = mpi->free_ops;
        mpi->free_ops = *op;
        *op = NULL;
    }
    pthread_mutex_unlock(&mpi->lock);
    return !went ? LS_TRANSPORT_FAILED : done ? LS_TRANSPORT_DONE : LS_TRANSPORT_RUNNING;
}

/* Frees the copies of messages that are through. */
static bool mpi_forget_told(struct mpi_transport *mpi)
{
    for (struct told **at = &mpi->told; *at != NULL;) {
        struct told *told = *at;
        int done = 0;
        if (!mpi_good(mpi, MPI_Test(&told->request, &done, MPI_STATUS_IGNORE), "a message"))
            return false;
        if (done) {
            *at = told->next;
            free(told);
        } else {
            at = &told->next;
        }
    }
    return true;
}

static bool mpi_send_copy(struct mpi_transport *mpi, int to, const void *message, size_t bytes)
{
    struct told *told = bytes <= LS_TRANSPORT_MESSAGE ? malloc(sizeof *told + bytes) : NULL;
    if (told == NULL) {
        snprintf(mpi->transport.failure, sizeof mpi->transport.failure,
                 bytes <= LS_TRANSPORT_MESSAGE ? "out of memory for a message"
                                               : "a message is too long");
        return false;
    }
    memcpy(told->data, message, bytes);
    if (!mpi_good(mpi,
                  MPI_Isend(told->data, (int)bytes, MPI_BYTE, to, 0, mpi->messages, &told->request),
                  "MPI_Isend")) {
        free(told);
        return false;
    }
    told->next = mpi->told;
    mpi->told = told;
    mpi->told_to[to]++;
    return true;
}

static int mpi_tell(struct ls_transport *transport, int to, const void *message, size_t bytes)
{
    struct mpi_transport *mpi = mpi_of(transport);
    pthread_mutex_lock(&mpi->lock);
    bool went = mpi_forget_told(mpi) && mpi_send_copy(mpi, to, message, bytes);
    pthread_mutex_unlock(&mpi->lock);
    return went ? 0 : -1;
}

static bool mpi_listen(struct mpi_transport *mpi)
{
    return mpi_good(mpi,
                    MPI_Irecv(mpi->heard, LS_TRANSPORT_MESSAGE, MPI_BYTE, MPI_ANY_SOURCE, 0,
                              mpi->messages, &mpi->hearing),
                    "MPI_Irecv");
}

/* Under the lock. */
static int mpi_next_message(struct mpi_transport *mpi, int *from, void *message, size_t room)
{
    MPI_Status status;
    int done = 0, bytes = 0;
    if (!mpi_good(mpi, MPI_Test(&mpi->hearing, &done, &status), "a message"))
        return -1;
    if (!done)
        return 0;
    if (!mpi_good(mpi, MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count"))
        return -1;
    if ((size_t)bytes > room)
        bytes = (int)room;
    memcpy(message, mpi->heard, (size_t)bytes);
    *from = status.MPI_SOURCE;
    mpi->heard_from[*from]++;
    return mpi_listen(mpi) ? bytes : -1;
}

static int mpi_hear(struct ls_transport *transport, int *from, void *message, size_t room)
{
    struct mpi_transport *mpi = mpi_of(transport);
    pthread_mutex_lock(&mpi->lock);
    int bytes = mpi_forget_told(mpi) ? mpi_next_message(mpi, from, message, room) : -1;
    pthread_mutex_unlock(&mpi->lock);
    return bytes;
}

/* Whether all that was told to this rank has been heard. */
static bool mpi_heard_all(const struct mpi_transport *mpi)
{
    for (int rank = 0; rank < mpi->transport.size; rank++)
        if (mpi->heard_from[rank] < mpi->meant_for[rank])
            return false;
    return true;
}

/* Receives messages that are no longer needed: some libraries complain of messages that are left,
 * or wait for them forever. The ranks exchange the numbers of messages they sent. */
static bool mpi_drain(struct mpi_transport *mpi)
{
    char message[LS_TRANSPORT_MESSAGE];
    MPI_Request counts;
    int from, counted = 0;
    if (!mpi_good(mpi,
                  MPI_Ialltoall(mpi->told_to, 1, MPI_UINT64_T, mpi->meant_for, 1, MPI_UINT64_T,
                                mpi->messages, &counts),
                  "MPI_Ialltoall"))
        return false;
    while (!counted || mpi->told != NULL || !mpi_heard_all(mpi)) {
        int bytes = mpi_next_message(mpi, &from, message, sizeof message);
        if (bytes < 0 || !mpi_forget_told(mpi))
            return false;
        if (!counted &&
            !mpi_good(mpi, MPI_Test(&counts, &counted, MPI_STATUS_IGNORE), "MPI_Ialltoall"))
            return false;
        if (bytes == 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return MPI_Cancel(&mpi->hearing) == MPI_SUCCESS &&
           MPI_Wait(&mpi->hearing, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static void mpi_end(struct ls_transport *transport)
{
    struct mpi_transport *mpi = mpi_of(transport);
    if (mpi_drain(mpi)) {
        for (int channel = 0; channel < LS_CHANNELS; channel++)
            MPI_Comm_free(&mpi->channel[channel]);
        MPI_Comm_free(&mpi->messages);
    }
    if (mpi->ours)
        MPI_Finalize();
    for (struct ls_transport_op *op = mpi->free_ops, *next; op != NULL; op = next) {
        next = op->next;
        free(op);
    }
    free(mpi->told_to);
    pthread_mutex_destroy(&mpi->lock);
    free(mpi);
}

/* Also where another thread is stuck in MPI and holds the lock. */
static void mpi_end_job(struct ls_transport *transport, int code)
{
    struct mpi_transport *mpi = mpi_of(transport);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_WAIT;
    (void)pthread_mutex_timedlock(&mpi->lock, &until);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

static const struct ls_transport_calls calls = {
    .gather = mpi_gather,
    .exchange = mpi_exchange,
    .test = mpi_test,
    .tell = mpi_tell,
    .hear = mpi_hear,
    .end = mpi_end,
    .abort = mpi_end_job,
};

/* "Open MPI v4.1.4" of "Open MPI v4.1.4, package: ...", "MPICH 4.0.2" of "MPICH Version: 4.0.2\n
 * MPICH Release date: ...". */
static void mpi_library_name(char *name, size_t room)
{
    static const char word[] = " Version:";
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    char *found = strstr(text, word);
    if (found == NULL)
        snprintf(name, room, "%s", text);
    else
        snprintf(name, room, "%.*s %s", (int)(found - text), text,
                 found + strlen(word) + strspn(found + strlen(word), " \t"));
}

/* MPI itself, with enough thread support. */
static bool mpi_initialize(struct mpi_transport *mpi)
{
    int there = 0, gone = 0, support = 0;
    MPI_Initialized(&there);
    MPI_Finalized(&gone);
    if (gone) {
        snprintf(mpi->transport.failure, sizeof mpi->transport.failure,
                 "a process can take part in one MPI job only, and this one's has ended");
        return false;
    }
    mpi->ours = !there;
    if (there) {
        MPI_Query_thread(&support);
    } else {
        if (!mpi_good(mpi, MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &support),
                      "MPI_Init_thread"))
            return false;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    if (support >= MPI_THREAD_SERIALIZED)
        return true;
    snprintf(mpi->transport.failure, sizeof mpi->transport.failure,
             there ? "MPI was initialized without MPI_THREAD_SERIALIZED"
                   : "this MPI library was built without support of threads "
                     "(MPI_THREAD_SERIALIZED)");
    return false;
}

static bool mpi_new_communicator(struct mpi_transport *mpi, MPI_Comm *communicator)
{
    return mpi_good(mpi, MPI_Comm_dup(MPI_COMM_WORLD, communicator), "MPI_Comm_dup") &&
           mpi_good(mpi, MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
}

static bool mpi_find_host(struct mpi_transport *mpi)
{
    struct ls_transport *transport = &mpi->transport;
    MPI_Comm host;
    if (gethostname(transport->host, sizeof transport->host - 1) != 0)
        snprintf(transport->host, sizeof transport->host, "unknown");
    if (!mpi_good(mpi,
                  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, transport->rank,
                                      MPI_INFO_NULL, &host),
                  "MPI_Comm_split_type"))
        return false;
    bool found = mpi_good(mpi, MPI_Comm_rank(host, &transport->host_rank), "MPI_Comm_rank") &&
                 mpi_good(mpi, MPI_Comm_size(host, &transport->host_size), "MPI_Comm_size");
    MPI_Comm_free(&host);
    return found;
}

static bool mpi_join(struct mpi_transport *mpi)
{
    if (!mpi_initialize(mpi))
        return false;
    /* A rank that took itself for another one would write that one's files. */
    if (!mpi_good(mpi, MPI_Comm_rank(MPI_COMM_WORLD, &mpi->transport.rank), "MPI_Comm_rank") ||
        !mpi_good(mpi, MPI_Comm_size(MPI_COMM_WORLD, &mpi->transport.size), "MPI_Comm_size"))
        return false;
    size_t size = (size_t)mpi->transport.size;
    mpi->told_to = calloc(3 * size, sizeof *mpi->told_to);
    if (mpi->told_to == NULL) {
        snprintf(mpi->transport.failure, sizeof mpi->transport.failure, "out of memory");
        return false;
    }
    mpi->heard_from = mpi->told_to + size;
    mpi->meant_for = mpi->told_to + 2 * size;
    bool made = mpi_new_communicator(mpi, &mpi->messages);
    for (int channel = 0; channel < LS_CHANNELS && made; channel++)
        made = mpi_new_communicator(mpi, &mpi->channel[channel]);
    return made && mpi_find_host(mpi) && mpi_listen(mpi);
}

__attribute__((visibility("default"))) ls_transport_open_function lockstep_transport_open;

struct ls_transport *lockstep_transport_open(int abi, char *message, size_t room)
{
    static char name[128];
    if (abi != LS_TRANSPORT_ABI) {
        snprintf(message, room, "this module was built for another version of Lockstep");
        return NULL;
    }
    struct mpi_transport *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) {
        snprintf(message, room, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&mpi->lock, NULL);
    mpi_library_name(name, sizeof name);
    mpi->transport.calls = &calls;
    mpi->transport.name = name;
    if (mpi_join(mpi))
        return &mpi->transport;
    snprintf(message, room, "%s: %s", name, mpi->transport.failure);
    free(mpi->told_to);
    free(mpi);
    return NULL;
}
