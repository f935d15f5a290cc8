/* Trainings of tests: see training.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "engine/step.h"

/* ---- Which worker runs what when ------------------------------------------------------------- */

static void meet(struct schedule *schedule, int worker)
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
static void hold_back(struct schedule *schedule, int micro_batch)
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

void follow_schedule(void *user, int worker, int micro_batch)
{
    struct schedule *schedule = user;
    if (worker == schedule->slow_worker) {
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

int verify_workers(const struct lockstep_solver *solver, const int *workers, size_t count,
                   int64_t iterations, struct lockstep_error *error)
{
    struct lockstep_verify_options options;
    lockstep_verify_options_init(&options);
    options.workers = workers;
    options.worker_count = count;
    options.iterations = iterations;
    return lockstep_verify(solver, &options, error);
}

static void notice_event(void *user, const struct lockstep_event *event)
{
    struct training *training = user;
    training->tests += event->kind == LOCKSTEP_EVENT_TEST;
    training->repeats += event->kind == LOCKSTEP_EVENT_DETAIL && event->text != NULL &&
                         strstr(event->text, "the update was repeated") != NULL;
}

struct lockstep_solver *load_solver(const char *format, ...)
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

struct training *start_on(const struct lockstep_solver *solver, int workers, const char *isa,
                          const char *prefix, const char *resume)
{
    struct training *training = calloc(1, sizeof *training);
    struct lockstep_train_options options;
    assert_non_null(training);
    training->error = lockstep_error_new();
    training->workers = workers;
    training->schedule = (struct schedule){.lock = PTHREAD_MUTEX_INITIALIZER,
                                           .moved = PTHREAD_COND_INITIALIZER,
                                           .workers = workers,
                                           .slow_worker = -1};
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

struct training *start(const struct lockstep_solver *solver, int workers, const char *prefix,
                       const char *resume)
{
    return start_on(solver, workers, NULL, prefix, resume);
}

void finish(struct training *training)
{
    lockstep_trainer_free(training->trainer);
    lockstep_error_free(training->error);
    free(training);
}

size_t limit_memory(struct training *training, size_t bytes)
{
    struct ls_trainer *trainer = training->trainer->inner;
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_net_options options = trainer->train->options;
    struct ls_net *net = NULL;
    options.activation_bytes = bytes;
    options.workers = trainer->engine->workers;
    options.follow_groups_place = "";
    ls_step_free(trainer->train_pass);
    ls_prefetcher_close(trainer->prefetcher);
    ls_net_close(trainer->train);
    trainer->train_pass = NULL;
    trainer->prefetcher = NULL;
    if (ls_net_open(&options, &net, error) != 0)
        fail_msg("%s", error->problems[0].message);
    trainer->train = net;
    assert_int_equal(ls_step_create(trainer->engine, net, &trainer->train_pass, error), 0);
    assert_int_equal(
        ls_net_prefetcher(net, INT64_MAX, &trainer->decoded, &trainer->prefetcher, error), 0);
    free(error);
    return ls_net_memory_bytes(net, trainer->engine->workers);
}

void step(struct training *training, int64_t updates)
{
    if (lockstep_trainer_step(training->trainer, updates, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
}

int64_t count_micro_batches(const struct training *training)
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

struct bytes read_bytes(const char *path)
{
    struct bytes bytes;
    bytes.data = ls_test_read(path, &bytes.size);
    return bytes;
}

struct bytes snapshot(struct training *training)
{
    const char *path = ls_test_path("snapshot.safetensors");
    if (lockstep_trainer_snapshot(training->trainer, path, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    return read_bytes(path);
}

bool same_bytes(struct bytes a, struct bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

void check_same(struct bytes first, struct bytes other, const char *format, ...)
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

void check_resumed(const struct lockstep_solver *solver, int64_t first, int64_t rest)
{
    struct training *training = start(solver, 1, "whole", NULL);
    step(training, first + rest);
    struct bytes expected = snapshot(training);
    finish(training);
    training = start(solver, 3, "begun", NULL);
    step(training, first);
    free(snapshot(training).data);
    finish(training);
    const char *path = ls_test_text("%s", ls_test_path("snapshot.safetensors"));
    training = start(solver, 2, "whole", path);
    step(training, rest);
    check_same(expected, snapshot(training), "resumed after %d updates", (int)first);
    finish(training);
    free(expected.data);
}

void check_learns(const struct lockstep_solver *solver, int64_t updates, double part)
{
    struct training *training = start(solver, 2, NULL, NULL);
    step(training, 1);
    double first = lockstep_trainer_loss(training->trainer);
    step(training, updates - 1);
    double last = lockstep_trainer_loss(training->trainer);
    if (!(last < part * first))
        fail_msg("the loss is %g after %lld updates, from %g", last, (long long)updates, first);
    finish(training);
}

void check_workers(const struct lockstep_solver *solver, const char *isa, int64_t updates)
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
