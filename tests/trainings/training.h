/* Trainings of tests: solvers from text, trainings on a number of workers whose order of micro-
 * batches a test may change, snapshots as bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_TRAINING_H
#define LS_TESTS_TRAINING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/random.h"
#include "solver/trainer.h"
#include "support/nets.h"
#include "support/support.h"
#include "trainings/data_files.h"

enum { WORKERS_MAX = 8 };

/* Workers wait for each other: a worker that takes a micro-batch other than an update's first
 * waits until all workers have taken one. So each worker certainly runs some; the first update
 * needs more micro-batches than workers. */
struct schedule {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int workers;
    bool here[WORKERS_MAX];
    int arrived;
    /* Micro-batch 1 of each update is held back until micro-batch `last` is begun; 0: it is not. */
    int last;
    int64_t held, released;
    /* This worker sleeps before each micro-batch; -1: none. */
    int slow_worker;
    uint32_t delays;
};

struct training {
    struct lockstep_trainer *trainer;
    struct schedule schedule;
    int workers;
    int repeats; /* updates that were run again with other exponents */
    int tests;   /* test phases that were reported */
    struct lockstep_error *error;
};

struct bytes {
    char *data;
    size_t size;
};

/* Called before each micro-batch, of which `user` is the schedule. */
void follow_schedule(void *user, int worker, int micro_batch);

/* A solver from text, which may hold its net as net_param { ... } and must be valid. */
struct lockstep_solver *load_solver(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A trainer on `workers` workers that wait for each other as the schedule says; from a snapshot
 * if `resume` is not NULL. `isa` pins the instruction set (may be NULL), `prefix` (may be NULL)
 * is the prefix of its snapshots in the test's directory. */
struct training *start_on(const struct lockstep_solver *solver, int workers, const char *isa,
                          const char *prefix, const char *resume);
struct training *start(const struct lockstep_solver *solver, int workers, const char *prefix,
                       const char *resume);
void finish(struct training *training);

/* So many updates, none of which may fail. */
void step(struct training *training, int64_t updates);

/* Makes the train net again, before the first update, with plans for `bytes` of activations (1:
 * the smallest possible). Returns the memory that it takes. */
size_t limit_memory(struct training *training, size_t bytes);

/* How many micro-batches all workers have run together; each must have run some. */
int64_t count_micro_batches(const struct training *training);

/* Verification of so many updates with some numbers of workers. */
int verify_workers(const struct lockstep_solver *solver, const int *workers, size_t count,
                   int64_t iterations, struct lockstep_error *error);

/* The bytes of a file. */
struct bytes read_bytes(const char *path);

/* The whole state of a training, as the file that a snapshot is. */
struct bytes snapshot(struct training *training);

bool same_bytes(struct bytes a, struct bytes b);

/* Fails where the two differ, and says where. Frees `other`. */
void check_same(struct bytes first, struct bytes other, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A training of `first` updates on three workers that goes on for `rest` more on two, from its
 * snapshot, has the bytes of one on one worker that was not interrupted. */
void check_resumed(const struct lockstep_solver *solver, int64_t first, int64_t rest);

/* After so many updates the loss is below `part` of that of the first one. */
void check_learns(const struct lockstep_solver *solver, int64_t updates, double part);

/* Trains on 1, 2, 3 and 5 workers, all of which run micro-batches: the bytes must be the same.
 * `isa` may be NULL. */
void check_workers(const struct lockstep_solver *solver, const char *isa, int64_t updates);

#endif
