/* Exchanges between cards: NCCL's. See device/collectives.h.
 *
 * The communicator does not block the host: a call may be "in progress" when it returns, and until
 * it is no longer, NCCL takes no other and nothing may be recorded behind it. So what is given
 * waits in a list, and each test brings the first of it on. A rank that is lost leaves exchanges
 * that never end, which ncclCommAbort gives up.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <nccl.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "ops/cuda/card.h"
#include "ops/cuda/device.h"

_Static_assert((int)LS_CONNECTION_ID >= (int)NCCL_UNIQUE_ID_BYTES, "a name has room");

static const double patience = 120; /* seconds for all ranks to connect */
static const double parting = 10;   /* and to part */

enum { LANES = LS_CONNECTION_LANES };

enum state { IDLE, GIVEN, ISSUED, RECORDED };

/* An exchange of a lane. */
struct exchange {
    enum state state;
    bool sums; /* else weights */
    void *data;
    const size_t *cut;
    struct ls_event *const *after;
    int count;
    cudaEvent_t over;
};

struct ls_connection {
    ncclComm_t comm;
    cudaStream_t stream;
    int card, rank, size;
    struct exchange lane[LANES];
    int order[LANES]; /* lanes that are not RECORDED, in the order in which they were given */
    int waiting;
};

/* 0, or fails with what NCCL said. */
static int check(const struct ls_connection *connection, ncclResult_t code, const char *what,
                 struct ls_error *error)
{
    if (code == ncclSuccess || code == ncclInProgress)
        return 0;
    const char *more = connection->comm != NULL ? ncclGetLastError(connection->comm) : NULL;
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL,
                   "LOCKSTEP_EXCHANGE=host in the environment exchanges over the host's memory",
                   "card %d could not %s: NCCL: %s%s%s", connection->card, what,
                   ncclGetErrorString(code), more != NULL && more[0] != '\0' ? ": " : "",
                   more != NULL ? more : "");
}

/* Waits until NCCL has done what it has begun. */
static int settle(const struct ls_connection *connection, double seconds, const char *what,
                  struct ls_error *error)
{
    const double begun = ls_clock();
    for (;;) {
        ncclResult_t state = ncclSuccess;
        LS_TRY(check(connection, ncclCommGetAsyncError(connection->comm, &state), what, error));
        LS_TRY(check(connection, state, what, error));
        if (state == ncclSuccess)
            return 0;
        if (ls_clock() - begun > seconds)
            return ls_fail(error, LOCKSTEP_LOST, NULL, NULL,
                           "card %d could not %s within %.0f seconds", connection->card, what,
                           seconds);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static int place(unsigned char out[LS_CONNECTION_PLACE], struct ls_error *error)
{
    struct cudaDeviceProp properties;
    int card = 0;
    LS_TRY(ls_card_enter(error));
    LS_TRY(ls_card_check(cudaGetDevice(&card), "be found", error));
    LS_TRY(ls_card_check(cudaGetDeviceProperties(&properties, card), "be asked", error));
    memcpy(out, properties.uuid.bytes, LS_CONNECTION_PLACE);
    return 0;
}

static int name(unsigned char out[LS_CONNECTION_ID], struct ls_error *error)
{
    ncclUniqueId id;
    struct ls_connection none = {.card = -1};
    LS_TRY(ls_card_enter(error));
    (void)cudaGetDevice(&none.card);
    LS_TRY(check(&none, ncclGetUniqueId(&id), "begin an exchange between cards", error));
    memcpy(out, id.internal, sizeof id.internal);
    return 0;
}

static void leave(struct ls_connection *connection, bool lost)
{
    (void)ls_card_enter(NULL);
    if (connection->comm != NULL) {
        if (!lost && check(connection, ncclCommFinalize(connection->comm), "part", NULL) == 0 &&
            settle(connection, parting, "part", NULL) == 0)
            (void)ncclCommDestroy(connection->comm);
        else
            (void)ncclCommAbort(connection->comm);
    }
    for (int i = 0; i < LANES; i++)
        if (connection->lane[i].over != NULL)
            (void)cudaEventDestroy(connection->lane[i].over);
    if (connection->stream != NULL)
        (void)cudaStreamDestroy(connection->stream);
    ls_free(connection);
}

static int connect(struct ls_connection *connection, const unsigned char *id,
                   struct ls_error *error)
{
    ncclUniqueId unique;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    memcpy(unique.internal, id, sizeof unique.internal);
    LS_TRY(ls_card_enter(error));
    LS_TRY(ls_card_check(cudaGetDevice(&connection->card), "be found", error));
    LS_TRY(ls_card_check(cudaStreamCreateWithFlags(&connection->stream, cudaStreamNonBlocking),
                         "make a stream", error));
    for (int i = 0; i < LANES; i++)
        LS_TRY(ls_card_check(
            cudaEventCreateWithFlags(&connection->lane[i].over, cudaEventDisableTiming),
            "make an event", error));
    LS_TRY(check(connection,
                 ncclCommInitRankConfig(&connection->comm, connection->size, unique,
                                        connection->rank, &config),
                 "connect to the other ranks' cards", error));
    return settle(connection, patience, "connect to the other ranks' cards", error);
}

static int join(const unsigned char id[LS_CONNECTION_ID], int rank, int size,
                struct ls_connection **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_connection *connection = ls_alloc(1, sizeof *connection);
    if (connection == NULL)
        return ls_fail_memory(error, "an exchange between cards");
    connection->rank = rank;
    connection->size = size;
    connection->card = -1;
    const int status = connect(connection, id, error);
    if (status != 0)
        leave(connection, true);
    else
        *out = connection;
    return status;
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

/* The length that all parts have, if they have one. */
static bool equal_parts(const struct ls_connection *connection, const size_t *cut, size_t *part)
{
    *part = cut[1] - cut[0];
    for (int r = 1; r < connection->size; r++)
        if (cut[r + 1] - cut[r] != *part)
            return false;
    return true;
}

/* Parts of one length are one collective; others a group of as many as there are ranks. */
static ncclResult_t issue_sums(struct ls_connection *connection, const struct exchange *exchange)
{
    int64_t *sums = exchange->data;
    const size_t *cut = exchange->cut;
    size_t part;
    if (equal_parts(connection, cut, &part))
        return ncclReduceScatter(sums + cut[0], sums + cut[connection->rank], part, ncclInt64,
                                 ncclSum, connection->comm, connection->stream);
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess)
        return code;
    for (int r = 0; r < connection->size; r++)
        if (cut[r + 1] > cut[r] && (code == ncclSuccess || code == ncclInProgress))
            code = ncclReduce(sums + cut[r], sums + cut[r], cut[r + 1] - cut[r], ncclInt64, ncclSum,
                              r, connection->comm, connection->stream);
    const ncclResult_t end = ncclGroupEnd();
    return code != ncclSuccess && code != ncclInProgress ? code : end;
}

static ncclResult_t issue_weights(struct ls_connection *connection, const struct exchange *exchange)
{
    float *numbers = exchange->data;
    const size_t *cut = exchange->cut;
    size_t part;
    if (equal_parts(connection, cut, &part))
        return ncclAllGather(numbers + cut[connection->rank], numbers + cut[0], part, ncclFloat32,
                             connection->comm, connection->stream);
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess)
        return code;
    for (int r = 0; r < connection->size; r++)
        if (cut[r + 1] > cut[r] && (code == ncclSuccess || code == ncclInProgress))
            code = ncclBroadcast(numbers + cut[r], numbers + cut[r], cut[r + 1] - cut[r],
                                 ncclFloat32, r, connection->comm, connection->stream);
    const ncclResult_t end = ncclGroupEnd();
    return code != ncclSuccess && code != ncclInProgress ? code : end;
}

static int issue(struct ls_connection *connection, struct exchange *exchange,
                 struct ls_error *error)
{
    const char *what = exchange->sums ? "add up sums with the other ranks' cards"
                                      : "get weights of the other ranks' cards";
    for (int i = 0; i < exchange->count && !LS_MUTANT(EARLY); i++)
        LS_TRY(ls_card_check(
            cudaStreamWaitEvent(connection->stream, (cudaEvent_t)(void *)exchange->after[i], 0),
            "wait for gradients", error));
    exchange->state = ISSUED;
    return check(connection,
                 exchange->sums ? issue_sums(connection, exchange)
                                : issue_weights(connection, exchange),
                 what, error);
}

/* Brings on what was given, as far as NCCL takes it now. */
static int bring_on(struct ls_connection *connection, struct ls_error *error)
{
    while (connection->waiting > 0) {
        ncclResult_t state = ncclSuccess;
        struct exchange *first = &connection->lane[connection->order[0]];
        if (first->state == GIVEN)
            LS_TRY(issue(connection, first, error));
        const ncclResult_t code = ncclCommGetAsyncError(connection->comm, &state);
        LS_TRY(check(connection, code, "exchange with the other ranks' cards", error));
        LS_TRY(check(connection, state, "exchange with the other ranks' cards", error));
        if (state == ncclInProgress)
            return 0;
        LS_TRY(ls_card_check(cudaEventRecord(first->over, connection->stream), "record an event",
                             error));
        first->state = RECORDED;
        connection->waiting--;
        for (int i = 0; i < connection->waiting; i++)
            connection->order[i] = connection->order[i + 1];
    }
    return 0;
}

static int give(struct ls_connection *connection, int lane, const struct exchange *what,
                struct ls_error *error)
{
    struct exchange *exchange = &connection->lane[lane];
    cudaEvent_t over = exchange->over;
    *exchange = *what;
    exchange->over = over;
    exchange->state = GIVEN;
    connection->order[connection->waiting++] = lane;
    LS_TRY(ls_card_enter(error));
    return bring_on(connection, error);
}

static int reduce(struct ls_connection *connection, int lane, int64_t *sums, const size_t *cut,
                  struct ls_event *const *after, int count, struct ls_error *error)
{
    const struct exchange what = {
        .sums = true, .data = sums, .cut = cut, .after = after, .count = count};
    return give(connection, lane, &what, error);
}

static int gather(struct ls_connection *connection, int lane, float *numbers, const size_t *cut,
                  struct ls_event *const *after, int count, struct ls_error *error)
{
    const struct exchange what = {.data = numbers, .cut = cut, .after = after, .count = count};
    return give(connection, lane, &what, error);
}

static enum ls_exchange_state test(struct ls_connection *connection, int lane,
                                   struct ls_error *error)
{
    struct exchange *exchange = &connection->lane[lane];
    ncclResult_t state = ncclSuccess;
    if (ls_card_enter(error) != 0 || bring_on(connection, error) != 0)
        return LS_EXCHANGE_FAILED;
    if (exchange->state != RECORDED)
        return LS_EXCHANGE_RUNNING;
    cudaError_t code = LS_MUTANT(HASTY) ? cudaSuccess : cudaEventQuery(exchange->over);
    if (code == cudaSuccess) {
        exchange->state = IDLE;
        return LS_EXCHANGE_DONE;
    }
    if (code != cudaErrorNotReady) {
        (void)ls_card_check(code, "exchange with the other ranks' cards", error);
        return LS_EXCHANGE_FAILED;
    }
    (void)cudaGetLastError(); /* "not ready" would be the next launch's */
    const ncclResult_t asked = ncclCommGetAsyncError(connection->comm, &state);
    if (check(connection, asked, "exchange with the other ranks' cards", error) != 0 ||
        check(connection, state, "exchange with the other ranks' cards", error) != 0)
        return LS_EXCHANGE_FAILED;
    return LS_EXCHANGE_RUNNING;
}

const struct ls_device_collectives ls_card_collectives = {
    .place = place,
    .name = name,
    .join = join,
    .leave = leave,
    .reduce = reduce,
    .gather = gather,
    .test = test,
};
