/* Trainings on several ranks within one process: each rank is a thread with a trainer of its
 * own; they communicate through local transports.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANKS_H
#define LS_TESTS_RANKS_H

#include "trainings/training.h"
#include "transport/comm.h"

enum { RANKS_MAX = 6 };

struct rank;

/* What all ranks of a training do. */
struct job {
    const struct lockstep_solver *solver;
    int ranks;                /* 1: a process by itself */
    int workers[RANKS_MAX];   /* by rank */
    size_t memory[RANKS_MAX]; /* by rank: limits; 0: none */
    int updates;
    bool dynamic;
    double audit;    /* the part of the micro-batches that is audited */
    uint32_t delays; /* above 0: a seed of random delays before micro-batches */
    /* (optional) Called by a worker of a rank before each micro-batch. */
    void (*before)(const struct rank *rank);
    /* (optional) Called by each rank after its trainer is made. */
    void (*prepare)(struct ls_trainer *trainer, int rank);
    /* (optional) What each rank does instead of so many updates and tests; returns a status. */
    int (*act)(struct rank *rank, struct ls_trainer *trainer);
    const void *user;                               /* for these */
    bool together;                                  /* what fails is found by all ranks */
    const char *prefix[RANKS_MAX];                  /* of snapshots, by rank; NULL: none */
    const struct lockstep_solver *other[RANKS_MAX]; /* of a rank that has another; else NULL */
};

/* The results of one rank. cmocka's checks are for the main thread. */
struct rank {
    const struct job *job;
    int rank;
    pthread_t thread;
    struct ls_transport *transport;
    struct ls_error *error;
    int status;
    struct bytes bytes;    /* losses, divisors, figures of tests, weights: all that there is */
    int64_t micro_batches; /* that it has run */
    bool sent_again;       /* sums, with more bits */
    uint64_t sent[LS_TRAFFICS];
    int update; /* that it is at; when it tests, the last one + 1 */
    uint32_t delayed[WORKERS_MAX];
};

/* Adds to what a rank has to show. */
void put(struct rank *rank, const void *data, size_t bytes);
int put_weights(struct rank *rank, const struct ls_trainer *trainer);

/* Runs a job to its end, whatever that is. Free what the ranks hold with free_ranks. */
void run_job(const struct job *job, struct rank *ranks);
void free_ranks(const struct job *job, struct rank *ranks);

/* The bytes of a single process, which those of a job must equal; the caller frees them. It does so
 * many updates, or what `act` does. */
struct bytes act_alone(const struct lockstep_solver *solver,
                       int (*act)(struct rank *rank, struct ls_trainer *trainer));
struct bytes run_alone(const struct lockstep_solver *solver, int updates);

/* Every rank of the job ends with the bytes of `expected`. */
void check_job(const struct job *job, struct bytes expected, const char *what);

#endif
