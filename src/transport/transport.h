/* Transports carry bytes between the processes (ranks) of a job. Users go through transport/comm.h;
 * an implementation fills in struct ls_transport_calls:
 *
 *   transport/local.c   the ranks are threads of one process (for tests; it can be made slow)
 *   transport/mpi/      MPI; a module for each MPI library, loaded by transport/launch.c
 *
 * Collective operations start without waiting and are polled with `test`. Ranks start the
 * operations of one channel in the same order; channels are independent. Calls are thread-safe.
 *
 * Modules depend on this header alone, and it includes nothing of Lockstep.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_TRANSPORT_H
#define LS_TRANSPORT_TRANSPORT_H

#include <stddef.h>

enum { LS_TRANSPORT_ABI = 1 }; /* of this header */

enum ls_channel {
    LS_CHANNEL_SMALL, /* small exchanges that all ranks wait for */
    LS_CHANNEL_BULK,  /* gradients, weights and factors, under the computation */
    LS_CHANNELS
};

struct ls_transport;
struct ls_transport_op; /* an operation under way; the transport's own */

/* A block for or from each rank: bytes[r] at offset[r], multiples of 4. The arrays are read before
 * a call returns. */
struct ls_transport_blocks {
    const size_t *bytes, *offset;
};

enum ls_transport_result {
    LS_TRANSPORT_FAILED = -1,
    LS_TRANSPORT_RUNNING = 0,
    LS_TRANSPORT_DONE = 1
};

/* Calls return 0, or -1 with transport->failure filled in (then the transport is of no more use
 * than for `abort`). Memory that is handed in stays untouched by others until `test` says DONE. */
struct ls_transport_calls {
    /* All ranks' blocks to all ranks; the own one may lie at its place in `all` already. */
    int (*gather)(struct ls_transport *transport, enum ls_channel channel, const void *mine,
                  void *all, const struct ls_transport_blocks *blocks, struct ls_transport_op **op);
    /* Block r of `out` to rank r, its block for this rank into block r of `in`. */
    int (*exchange)(struct ls_transport *transport, enum ls_channel channel, const void *out,
                    const struct ls_transport_blocks *out_blocks, void *in,
                    const struct ls_transport_blocks *in_blocks, struct ls_transport_op **op);
    /* Moves operations on; DONE: *op is gone and NULL. */
    enum ls_transport_result (*test)(struct ls_transport *transport, struct ls_transport_op **op);
    /* A short message (at most LS_TRANSPORT_MESSAGE bytes) to a rank, which need not wait for it:
     * it is copied. What is told to a rank that hears nothing is lost when the transport ends. */
    int (*tell)(struct ls_transport *transport, int to, const void *message, size_t bytes);
    /* A message, if one is there: its size (at most `room`), else 0; -1: failed. Messages of one
     * rank come in their order. */
    int (*hear)(struct ls_transport *transport, int *from, void *message, size_t room);
    /* Ends the transport in good order: all ranks call it, and nothing is under way. It frees
     * `transport`. */
    void (*end)(struct ls_transport *transport);
    /* Ends the job on all ranks at once, with an exit code. Does not return, except in tests. */
    void (*abort)(struct ls_transport *transport, int code);
};

enum { LS_TRANSPORT_MESSAGE = 4096 };

struct ls_transport {
    const struct ls_transport_calls *calls;
    const char *name;         /* "Open MPI v4.1.4" */
    int rank, size;           /* of the job */
    int host_rank, host_size; /* among the ranks of the same machine */
    char host[64];            /* this machine */
    char failure[512];        /* what failed, for people */
};

/* What a module exports by the name "lockstep_transport_open": joins the job that the process was
 * started in. NULL: `message` says why not. */
typedef struct ls_transport *ls_transport_open_function(int abi, char *message, size_t room);

#endif
