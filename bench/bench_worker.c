/* Lockstep's arm of the benchmark: a process that trains or tests one network when it is told to.
 *
 *     bench_worker train SOLVER [WORKERS]
 *     bench_worker test NET WEIGHTS BATCHES [WORKERS]
 *     bench_worker weights SOLVER FILE         the weights after one update, for `test`
 *
 * It answers each line "run N" of its standard input (N updates; or N times BATCHES batches of the
 * test phase) with one of its own: seconds, and the peak of the process's resident memory in MiB.
 * The first line it writes comes after one run of its own, which makes kernels and touches memory.
 * Public interface only, so that it is measured as any program that uses the library.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lockstep/lockstep.h"

struct worker {
    struct lockstep_trainer *trainer; /* one of the two */
    struct lockstep_model *model;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The peak of resident memory so far, in MiB; 0 where the system does not say. */
static double peak_memory(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file != NULL)
        fclose(file);
    return (double)kib / 1024;
}

static int open_trainer(const char *path, int workers, struct worker *worker,
                        struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_train_options options;
    int status = lockstep_solver_load(path, NULL, 0, &solver, error);
    lockstep_train_options_init(&options);
    options.workers = workers;
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &worker->trainer, error);
    lockstep_solver_free(solver);
    return status;
}

static int open_model(const char *net, const char *weights, int64_t batches, int workers,
                      struct worker *worker, struct lockstep_error *error)
{
    struct lockstep_model_options options;
    lockstep_model_options_init(&options);
    options.workers = workers;
    options.iterations = batches;
    return lockstep_model_load(net, weights, &options, &worker->model, error);
}

static int run(const struct worker *worker, long count, struct lockstep_error *error)
{
    if (worker->trainer != NULL)
        return lockstep_trainer_step(worker->trainer, count, error);
    int status = 0;
    for (long i = 0; i < count && status == 0; i++) {
        const struct lockstep_output *outputs;
        size_t output_count;
        int64_t samples;
        status = lockstep_model_test(worker->model, &outputs, &output_count, &samples, error);
    }
    return status;
}

/* Runs as often as the lines of standard input say, until it ends. */
static int serve(const struct worker *worker, struct lockstep_error *error)
{
    char line[100];
    long count = 1;
    do {
        double start = now();
        int status = run(worker, count, error);
        if (status != 0)
            return status;
        printf("%.9f %.3f\n", now() - start, peak_memory());
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            return 0;
    } while (sscanf(line, "run %ld", &count) == 1 && count > 0);
    return LOCKSTEP_USAGE;
}

/* The optional last argument: a number of workers; 0: as many as the library likes. */
static int workers_of(int argc, char **argv, int at)
{
    return argc > at ? (int)strtol(argv[at], NULL, 10) : 0;
}

static int start(int argc, char **argv, struct worker *worker, struct lockstep_error *error)
{
    const char *mode = argc > 2 ? argv[1] : "";
    int status = LOCKSTEP_USAGE;
    if (strcmp(mode, "train") == 0) {
        status = open_trainer(argv[2], workers_of(argc, argv, 3), worker, error);
        return status != 0 ? status : serve(worker, error);
    }
    if (strcmp(mode, "test") == 0 && argc > 4) {
        status = open_model(argv[2], argv[3], strtol(argv[4], NULL, 10), workers_of(argc, argv, 5),
                            worker, error);
        return status != 0 ? status : serve(worker, error);
    }
    if (strcmp(mode, "weights") == 0 && argc > 3) {
        status = open_trainer(argv[2], 0, worker, error);
        if (status == 0) /* moving averages come with the first */
            status = lockstep_trainer_step(worker->trainer, 1, error);
        return status != 0 ? status : lockstep_trainer_snapshot(worker->trainer, argv[3], error);
    }
    fprintf(stderr, "usage: bench_worker train SOLVER [WORKERS]\n"
                    "       bench_worker test NET WEIGHTS BATCHES [WORKERS]\n"
                    "       bench_worker weights SOLVER FILE\n");
    return status;
}

int main(int argc, char **argv)
{
    struct worker worker = {.trainer = NULL};
    struct lockstep_error *error = lockstep_error_new();
    int status = start(argc, argv, &worker, error);
    if (status != 0)
        fprintf(stderr, "bench_worker: status %d\n%s\n", status, lockstep_error_text(error));
    lockstep_trainer_free(worker.trainer);
    lockstep_model_free(worker.model);
    lockstep_error_free(error);
    return status;
}
