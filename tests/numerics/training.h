/* What the tests of the promise share: small data files, solvers from text, trainings on a number
 * of workers with a say in who runs what when, snapshots as bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NUMERICS_TRAINING_H
#define LS_TESTS_NUMERICS_TRAINING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "base/random.h"
#include "solver/trainer.h"
#include "support/support.h"

enum { WORKERS_MAX = 8 };

/* ---- Data ------------------------------------------------------------------------------------ */

static inline void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A pixel of a picture that is easy to learn: a bright bar whose place is the class, and noise. */
static inline uint8_t pixel(uint32_t sample, uint32_t label, uint32_t at, uint32_t width)
{
    uint32_t noise = ls_random_below(1, sample, at, 96);
    uint32_t bar = at % width * 10 / width == label ? 140 : 0;
    return (uint8_t)(noise + bar);
}

/* An IDX pair: `n` pictures of one channel, labels i * 7 % 10. */
static inline void write_idx_pair(const char *images, const char *labels, uint32_t n, uint32_t side)
{
    size_t size = (size_t)side * side;
    uint8_t *bytes = calloc(16 + n * size, 1), *names = calloc(8 + n, 1);
    bytes[2] = names[2] = 8;
    bytes[3] = 3;
    names[3] = 1;
    put_u32(bytes + 4, n);
    put_u32(bytes + 8, side);
    put_u32(bytes + 12, side);
    put_u32(names + 4, n);
    for (uint32_t i = 0; i < n; i++) {
        names[8 + i] = (uint8_t)(i * 7 % 10);
        for (uint32_t k = 0; k < size; k++)
            bytes[16 + i * size + k] = pixel(i, names[8 + i], k, side);
    }
    ls_test_write(images, bytes, 16 + n * size);
    ls_test_write(labels, names, 8 + n);
    free(bytes);
    free(names);
}

/* A file of the binary version of CIFAR-10 with `n` records. */
static inline void write_cifar(const char *path, uint32_t n)
{
    enum { RECORD = 3073 };
    uint8_t *bytes = calloc(n, RECORD);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *record = bytes + (size_t)i * RECORD;
        record[0] = (uint8_t)(i * 7 % 10);
        for (uint32_t k = 0; k + 1 < RECORD; k++)
            record[1 + k] = pixel(i, record[0], k, 32);
    }
    ls_test_write(path, bytes, (size_t)n * RECORD);
    free(bytes);
}

/* ---- Who runs what when ---------------------------------------------------------------------- */

/* Workers meet: a worker that takes a micro-batch other than an update's first waits until all
 * have taken one. So each worker is certain to run some, whatever the machine does; the first
 * update needs more micro-batches than workers. */
struct schedule {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int workers;
    bool here[WORKERS_MAX];
    int arrived;
    /* Micro-batch 1 of each update is held back until micro-batch `last` is begun; 0: it is not. */
    int last;
    int64_t held, released;
    /* This worker dawdles before each micro-batch; -1: none. */
    int dawdler;
    uint32_t delays;
};

static inline void meet(struct schedule *schedule, int worker)
{
    if (!schedule->here[worker]) {
        schedule->here[worker] = true;
        schedule->arrived++;
        pthread_cond_broadcast(&schedule->moved);
    }
    while (schedule->arrived < schedule->workers)
        pthread_cond_wait(&schedule->moved, &schedule->lock);
}

/* Needs two workers: one waits, the others run all the rest. */
static inline void hold_back(struct schedule *schedule, int micro_batch)
{
    if (micro_batch == schedule->last) {
        schedule->released++;
        pthread_cond_broadcast(&schedule->moved);
    } else if (micro_batch == 1) {
        schedule->held++;
        while (schedule->released < schedule->held)
            pthread_cond_wait(&schedule->moved, &schedule->lock);
    }
}

static inline void follow_schedule(void *user, int worker, int micro_batch)
{
    struct schedule *schedule = user;
    if (worker == schedule->dawdler) {
        uint32_t microseconds = ls_random_below(2, 0, schedule->delays++, 2000);
        nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
    }
    if (schedule->workers == 1 || micro_batch == 0)
        return;
    pthread_mutex_lock(&schedule->lock);
    meet(schedule, worker);
    if (schedule->last > 0)
        hold_back(schedule, micro_batch);
    pthread_mutex_unlock(&schedule->lock);
}

/* ---- Trainings ------------------------------------------------------------------------------- */

struct training {
    struct lockstep_trainer *trainer;
    struct schedule schedule;
    int workers;
    int repeats; /* updates that were run again with other exponents */
    int tests;   /* test phases that were reported */
    struct lockstep_error *error;
};

/* Verification of so many updates with some numbers of workers. */
static inline int verify_workers(const struct lockstep_solver *solver, const int *workers,
                                 size_t count, int64_t iterations, struct lockstep_error *error)
{
    struct lockstep_verify_options options;
    lockstep_verify_options_init(&options);
    options.workers = workers;
    options.worker_count = count;
    options.iterations = iterations;
    return lockstep_verify(solver, &options, error);
}

static inline void notice_event(void *user, const struct lockstep_event *event)
{
    struct training *training = user;
    training->tests += event->kind == LOCKSTEP_EVENT_TEST;
    training->repeats += event->kind == LOCKSTEP_EVENT_NOTICE && event->text != NULL &&
                         strstr(event->text, "the update was repeated") != NULL;
}

/* A solver from text; it may hold its net as net_param { ... }. Must be valid. */
__attribute__((format(printf, 1, 2))) static inline struct lockstep_solver *
load_solver(const char *format, ...)
{
    static char text[1 << 16];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert_in_range(length, 1, sizeof text - 1);
    const char *path = ls_test_path("solver.prototxt");
    ls_test_write_text(path, text);
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = NULL;
    if (lockstep_solver_load(path, NULL, 0, &solver, error) != 0)
        fail_msg("%s\n%s", lockstep_error_text(error), text);
    lockstep_error_free(error);
    return solver;
}

/* A trainer on `workers` workers that meet; from a snapshot if `resume` is not NULL. `isa` pins the
 * instruction set (may be NULL), `prefix` (may be NULL) is that of its snapshots in the test's
 * directory. */
static inline struct training *start_on(const struct lockstep_solver *solver, int workers,
                                        const char *isa, const char *prefix, const char *resume)
{
    struct training *training = calloc(1, sizeof *training);
    struct lockstep_train_options options;
    assert_non_null(training);
    training->error = lockstep_error_new();
    training->workers = workers;
    training->schedule = (struct schedule){.lock = PTHREAD_MUTEX_INITIALIZER,
                                           .moved = PTHREAD_COND_INITIALIZER,
                                           .workers = workers,
                                           .dawdler = -1};
    lockstep_train_options_init(&options);
    options.workers = workers;
    options.isa = isa;
    options.snapshot_prefix = ls_test_path(prefix != NULL ? prefix : "unnamed");
    options.resume = resume;
    options.overwrite = 1;
    options.callbacks = (struct lockstep_callbacks){.user = training, .event = notice_event};
    if (lockstep_trainer_create(solver, &options, &training->trainer, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    struct ls_engine *engine = training->trainer->inner->engine;
    engine->before_micro_batch = follow_schedule;
    engine->user = &training->schedule;
    return training;
}

static inline struct training *start(const struct lockstep_solver *solver, int workers,
                                     const char *prefix, const char *resume)
{
    return start_on(solver, workers, NULL, prefix, resume);
}

static inline void finish(struct training *training)
{
    lockstep_trainer_free(training->trainer);
    lockstep_error_free(training->error);
    free(training);
}

/* The train net anew, before the first update, with plans for `bytes` of activations (1: the
 * smallest there are). Returns what it takes. */
static inline size_t limit_memory(struct training *training, size_t bytes)
{
    struct ls_trainer *trainer = training->trainer->inner;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_net_options options = trainer->train->options;
    struct ls_net *net = NULL;
    options.activation_bytes = bytes;
    options.workers = trainer->engine->workers;
    options.follow_groups_place = "";
    ls_pass_free(trainer->train_pass);
    ls_prefetcher_close(trainer->prefetcher);
    ls_net_close(trainer->train);
    trainer->train_pass = NULL;
    trainer->prefetcher = NULL;
    if (ls_net_open(&options, &net, error) != 0)
        fail_msg("%s", error->problems[0].message);
    trainer->train = net;
    assert_int_equal(ls_pass_create(trainer->engine, net, &trainer->train_pass, error), 0);
    assert_int_equal(
        ls_net_prefetcher(net, INT64_MAX, &trainer->decoded, &trainer->prefetcher, error), 0);
    free(error);
    return ls_net_memory_bytes(net, trainer->engine->workers);
}

static inline void step(struct training *training, int64_t updates)
{
    if (lockstep_trainer_step(training->trainer, updates, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
}

/* Every worker has run micro-batches; returns how many all have together. */
static inline int64_t count_micro_batches(const struct training *training)
{
    int64_t counts[WORKERS_MAX], total = 0;
    lockstep_trainer_micro_batches(training->trainer, counts, training->workers);
    for (int w = 0; w < training->workers; w++) {
        if (counts[w] == 0)
            fail_msg("worker %d of %d has run nothing", w, training->workers);
        total += counts[w];
    }
    return total;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

struct bytes {
    char *data;
    size_t size;
};

static inline struct bytes read_bytes(const char *path)
{
    struct bytes bytes;
    bytes.data = ls_test_read(path, &bytes.size);
    return bytes;
}

/* The whole state of a training, as the file that a snapshot is. */
static inline struct bytes snapshot(struct training *training)
{
    const char *path = ls_test_path("snapshot.safetensors");
    if (lockstep_trainer_snapshot(training->trainer, path, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    return read_bytes(path);
}

static inline bool same_bytes(struct bytes a, struct bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Takes both, and frees `other`. */
__attribute__((format(printf, 3, 4))) static inline void
check_same(struct bytes first, struct bytes other, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    size_t at = 0;
    while (at < first.size && at < other.size && first.data[at] == other.data[at])
        at++;
    if (!same_bytes(first, other))
        fail_msg("%s: the snapshots differ from byte %zu of %zu on", what, at, first.size);
    free(other.data);
}

/* Trains for some updates on 1, 2, 3 and 5 workers, all of which work: the same bytes. `isa` may be
 * NULL. */
static inline void check_workers(const struct lockstep_solver *solver, const char *isa,
                                 int64_t updates)
{
    static const int counts[] = {1, 2, 3, 5};
    struct bytes first = {0};
    for (int i = 0; i < 4; i++) {
        struct training *training = start_on(solver, counts[i], isa, NULL, NULL);
        step(training, updates);
        count_micro_batches(training);
        struct bytes bytes = snapshot(training);
        finish(training);
        if (i == 0)
            first = bytes;
        else
            check_same(first, bytes, "%d workers on %s", counts[i], isa != NULL ? isa : "the best");
    }
    free(first.data);
}

#endif
