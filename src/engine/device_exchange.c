/* Between devices. See engine/device_exchange.h. SPDX-License-Identifier: BSD-2-Clause */
#include "engine/device_exchange.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "transport/failure_detector.h"
#include "transport/progress_thread.h"

_Static_assert((int)LS_CONNECTION_LANES >= (int)LS_COLLECTIVES_UNDER_WAY, "each has a lane");

struct ls_device_exchange {
    const struct ls_device_collectives *calls;
    struct ls_connection *connection;
    struct ls_comm *comm;
    _Atomic int under_way;
    _Atomic bool failed;
    struct ls_error error; /* of the call that is made; one thread at a time makes them */
};

/* What each rank says before they connect. */
struct place {
    int32_t status, wanted;
    unsigned char place[LS_CONNECTION_PLACE];
};

static bool device_exchange_is_wanted(void)
{
    const char *way = getenv("LOCKSTEP_EXCHANGE");
    return way == NULL || strcmp(way, "host") != 0;
}

/* Whether each rank has a device of its own. */
static bool device_exchange_is_possible(const struct place *places, int size)
{
    for (int r = 0; r < size; r++) {
        if (!places[r].wanted)
            return false;
        for (int q = 0; q < r; q++)
            if (memcmp(places[q].place, places[r].place, sizeof places[r].place) == 0)
                return false;
    }
    return true;
}

static int device_exchange_ask(const struct ls_device_collectives *calls, struct ls_comm *comm,
                               bool *possible, struct ls_error *error)
{
    struct place mine = {.wanted = device_exchange_is_wanted()};
    struct place *all = ls_alloc((size_t)comm->size, sizeof *all);
    int status = all == NULL ? ls_fail_memory(error, "an exchange between ranks")
                             : calls->place(mine.place, error);
    status = ls_comm_agree(comm, status, error);
    if (status == 0)
        status = ls_comm_all_gather(comm, &mine, sizeof mine, all, error);
    *possible = status == 0 && device_exchange_is_possible(all, comm->size);
    ls_free(all);
    return status;
}

static int device_exchange_join(struct ls_device_exchange *exchange, struct ls_error *error)
{
    struct ls_comm *comm = exchange->comm;
    unsigned char id[LS_CONNECTION_ID] = {0};
    int status = comm->rank == 0 ? exchange->calls->name(id, error) : 0;
    LS_TRY(ls_comm_agree(comm, status, error)); /* a rank that waits for a name waits for ever */
    LS_TRY(ls_comm_broadcast(comm, id, sizeof id, error));
    status = exchange->calls->join(id, comm->rank, comm->size, &exchange->connection, error);
    return ls_comm_agree(comm, status, error);
}

int ls_device_exchange_create(const struct ls_device *device, struct ls_comm *comm,
                              struct ls_device_exchange **out, struct ls_error *error)
{
    bool possible = false;
    *out = NULL;
    if (device->collectives == NULL || comm->size == 1)
        return 0;
    LS_TRY(device_exchange_ask(device->collectives, comm, &possible, error));
    if (!possible)
        return 0;
    struct ls_device_exchange *exchange = ls_alloc(1, sizeof *exchange);
    int status = exchange != NULL ? 0 : ls_fail_memory(error, "an exchange between ranks");
    status = ls_comm_agree(comm, status, error);
    if (status == 0 && exchange != NULL) { /* if one rank has none, all have failed */
        exchange->calls = device->collectives;
        exchange->comm = comm;
        status = device_exchange_join(exchange, error);
    }
    if (status != 0)
        ls_device_exchange_free(exchange);
    else
        *out = exchange;
    return status;
}

void ls_device_exchange_free(struct ls_device_exchange *exchange)
{
    if (exchange == NULL)
        return;
    if (exchange->connection != NULL)
        exchange->calls->leave(exchange->connection, atomic_load(&exchange->failed) ||
                                                         atomic_load(&exchange->under_way) > 0);
    ls_free(exchange);
}

/* Tells a failure as transports do. */
static int device_exchange_tell(struct ls_device_exchange *exchange, int status,
                                struct ls_transport *transport)
{
    const struct ls_error *error = &exchange->error;
    if (status == 0) {
        atomic_fetch_add(&exchange->under_way, 1);
        return 0;
    }
    atomic_store(&exchange->failed, true);
    snprintf(transport->failure, sizeof transport->failure, "rank %d: %.480s", exchange->comm->rank,
             error->count > 0 ? error->problems[0].message : "its device failed");
    return -1;
}

int ls_device_exchange_reduce(struct ls_device_exchange *exchange, int lane, int64_t *sums,
                              const size_t *cut, struct ls_event *const *after, int count,
                              struct ls_transport *transport)
{
    ls_error_clear(&exchange->error);
    const int status = exchange->calls->reduce(exchange->connection, lane, sums, cut, after, count,
                                               &exchange->error);
    return device_exchange_tell(exchange, status, transport);
}

int ls_device_exchange_gather(struct ls_device_exchange *exchange, int lane, float *numbers,
                              const size_t *cut, struct ls_transport *transport)
{
    ls_error_clear(&exchange->error);
    const int status = exchange->calls->gather(exchange->connection, lane, numbers, cut, NULL, 0,
                                               &exchange->error);
    return device_exchange_tell(exchange, status, transport);
}

enum ls_transport_result ls_device_exchange_test(struct ls_device_exchange *exchange, int lane,
                                                 struct ls_transport *transport)
{
    ls_error_clear(&exchange->error);
    switch (exchange->calls->test(exchange->connection, lane, &exchange->error)) {
    case LS_EXCHANGE_RUNNING:
        return LS_TRANSPORT_RUNNING;
    case LS_EXCHANGE_DONE:
        atomic_fetch_sub(&exchange->under_way, 1);
        return LS_TRANSPORT_DONE;
    default:
        (void)device_exchange_tell(exchange, LOCKSTEP_INTERNAL, transport);
        return LS_TRANSPORT_FAILED;
    }
}
