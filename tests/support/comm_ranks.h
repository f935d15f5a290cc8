/* Jobs within a test: each rank is a thread with a communicator of its own, over transports between
 * threads. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_COMM_RANKS_H
#define LS_TESTS_COMM_RANKS_H

#include <pthread.h>
#include <stdbool.h>

#include "transport/comm.h"
#include "transport/transport.h"

enum { COMM_RANKS_MAX = 8 };

struct comm_rank {
    pthread_t thread;
    const struct comm_job *job;
    struct ls_transport *transport;
    struct ls_comm *comm;
    struct ls_error *error; /* of the rank's own calls */
    int failed; /* the line of the first check that failed; cmocka's are for the main thread */
};

/* A check that threads may make, of anything that has a member `failed`. */
#define CHECK(rank, condition)                                                                     \
    do {                                                                                           \
        if (!(condition) && (rank)->failed == 0)                                                   \
            (rank)->failed = __LINE__;                                                             \
    } while (0)

/* What all ranks of a job do. */
struct comm_job {
    int ranks;
    bool growing; /* rank r has r + 1 workers; else each has one */
    bool dynamic; /* micro-batches are taken from a work queue */
    void (*body)(struct comm_rank *rank);
    /* (optional) Called before the threads begin. */
    void (*prepare)(struct ls_transport **transports);
    void *user; /* for these */
};

/* Runs a job to its end; a check that failed on a rank fails the running test. */
void run_comm_job(const struct comm_job *job);

#endif
