/* Exchanges between the devices of a job's ranks that do not pass through the hosts' memory.
 *
 * Each rank joins once, and then gives exchanges to its end of the connection: all ranks the same
 * ones in the same order. An exchange is under way when a call returns, on a stream of its own; it
 * begins when all ranks have given it and their events are over. One thread at a time uses an end.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_COLLECTIVES_H
#define LS_DEVICE_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ls_event;
struct ls_connection;

enum {
    LS_CONNECTION_ID = 128,   /* bytes of a name of a connection */
    LS_CONNECTION_PLACE = 16, /* bytes that tell a device from all others, on any machine */
    LS_CONNECTION_LANES = 4   /* exchanges under way at a time, by number */
};

enum ls_exchange_state { LS_EXCHANGE_FAILED = -1, LS_EXCHANGE_RUNNING = 0, LS_EXCHANGE_DONE = 1 };

struct ls_device_collectives {
    /* Which device the calling thread works with. Ranks that share one cannot be connected. */
    int (*place)(unsigned char place[LS_CONNECTION_PLACE], struct ls_error *error);
    /* Rank 0: a name for a connection that is about to be made; all ranks get it from there. */
    int (*name)(unsigned char id[LS_CONNECTION_ID], struct ls_error *error);
    /* Waits for all ranks of the job. */
    int (*join)(const unsigned char id[LS_CONNECTION_ID], int rank, int size,
                struct ls_connection **connection, struct ls_error *error);
    /* `lost`: other ranks may never give what is under way here; it is given up. */
    void (*leave)(struct ls_connection *connection, bool lost);
    /* Rank r gets the sums over ranks of elements [cut[r], cut[r + 1]) of an array that all have,
     * in its place; what the other elements are then is not defined. Begins when the `count` events
     * are over. (An accumulator of such a device leaves nothing to be cleared.) */
    int (*reduce)(struct ls_connection *connection, int lane, int64_t *sums, const size_t *cut,
                  struct ls_event *const *after, int count, struct ls_error *error);
    /* All ranks get floats [cut[r], cut[r + 1]) of an array from rank r, in their place. */
    int (*gather)(struct ls_connection *connection, int lane, float *numbers, const size_t *cut,
                  struct ls_event *const *after, int count, struct ls_error *error);
    /* What became of the last exchange of a lane. FAILED says so in `error`. */
    enum ls_exchange_state (*test)(struct ls_connection *connection, int lane,
                                   struct ls_error *error);
};

#endif
