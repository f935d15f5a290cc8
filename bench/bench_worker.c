/* Lockstep's arm of the benchmark: a process that trains or tests one network when it is told to.
 *
 *     bench_worker train SOLVER [WORKERS [DEVICE]]    DEVICE: "cuda:0", say
 *     bench_worker test NET WEIGHTS BATCHES [WORKERS]
 *     bench_worker weights SOLVER FILE         the weights after one update, for `test`
 *     bench_worker job SOLVER TURNS [WORKERS]  train, as a rank of a job of MPI
 *
 * It answers each line "run N" of its standard input (N updates; or N times BATCHES batches of the
 * test phase) with one of its own: seconds, and the peak of the process's resident memory in MiB.
 * The first line it writes comes after one run of its own, which makes kernels and touches memory.
 * Only rank 0 of a job has a standard input; it writes the number of updates of its turn i into the
 * file TURNS/i, for which the others wait. Its lines have more: seconds of waiting for small
 * exchanges, for gradients and for weights; seconds that collectives were under way; bytes that it
 * sent of sums, weights, factors and small exchanges.
 *
 * Public interface only, so that it is measured as any program that uses the library.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lockstep/lockstep.h"

struct worker {
    struct lockstep_job *job; /* NULL: none */
    const char *turns;
    long turn;                        /* of the job, the next */
    struct lockstep_job_figures told; /* up to the last turn; its weights are exchanged after it */
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

static int open_trainer(const char *path, int workers, const char *device, struct worker *worker,
                        struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_train_options options;
    int status = lockstep_solver_load(path, NULL, 0, &solver, error);
    lockstep_train_options_init(&options);
    options.job = worker->job;
    options.workers = workers;
    options.device = device;
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

/* ---- Turns ----------------------------------------------------------------------------------- */

/* What the next line of standard input asks for; 0: it has ended; -1: it is wrong. */
static long asked(void)
{
    char line[100];
    long count;
    if (fgets(line, sizeof line, stdin) == NULL)
        return 0;
    return sscanf(line, "run %ld", &count) == 1 && count > 0 ? count : -1;
}

/* Rank 0 tells the others how long the next turn is. */
static int tell(const struct worker *worker, long count)
{
    char path[2][1024];
    snprintf(path[0], sizeof path[0], "%s/next", worker->turns);
    snprintf(path[1], sizeof path[1], "%s/%ld", worker->turns, worker->turn);
    FILE *file = fopen(path[0], "w");
    if (file == NULL)
        return LOCKSTEP_RESOURCE;
    int written = fprintf(file, "%ld\n", count);
    return fclose(file) == 0 && written > 0 && rename(path[0], path[1]) == 0 ? 0
                                                                             : LOCKSTEP_RESOURCE;
}

/* The others wait for it, a long time if they must. */
static long hear(const struct worker *worker)
{
    char path[1024];
    long count = -1;
    FILE *file;
    snprintf(path, sizeof path, "%s/%ld", worker->turns, worker->turn);
    while ((file = fopen(path, "r")) == NULL)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    if (fscanf(file, "%ld", &count) != 1)
        count = -1;
    fclose(file);
    return count;
}

static int next_turn(struct worker *worker, long *count)
{
    int status = 0;
    if (lockstep_job_rank(worker->job) == 0)
        *count = asked();
    if (lockstep_job_size(worker->job) > 1 && lockstep_job_rank(worker->job) == 0)
        status = tell(worker, *count);
    else if (lockstep_job_size(worker->job) > 1)
        *count = hear(worker);
    worker->turn++;
    return status;
}

static void put_turn(struct worker *worker, double seconds)
{
    const struct lockstep_job_figures *before = &worker->told;
    struct lockstep_job_figures after;
    if (lockstep_job_rank(worker->job) != 0)
        return;
    printf("%.9f %.3f", seconds, peak_memory());
    lockstep_job_figures(worker->job, &after);
    if (worker->job != NULL)
        printf(" %.9f %.9f %.9f %.9f %llu %llu %llu %llu", after.small - before->small,
               after.wait_sums - before->wait_sums, after.wait_weights - before->wait_weights,
               after.transfer - before->transfer,
               (unsigned long long)(after.sent.sums - before->sent.sums),
               (unsigned long long)(after.sent.weights - before->sent.weights),
               (unsigned long long)(after.sent.factors - before->sent.factors),
               (unsigned long long)(after.sent.small - before->sent.small));
    putchar('\n');
    fflush(stdout);
    worker->told = after;
}

/* Runs as often as the lines of standard input say, until it ends. */
static int serve(struct worker *worker, struct lockstep_error *error)
{
    for (long count = 1; count > 0;) {
        double start = now();
        int status = run(worker, count, error);
        if (status != 0)
            return status;
        put_turn(worker, now() - start);
        status = next_turn(worker, &count);
        if (status != 0 || count < 0)
            return status != 0 ? status : LOCKSTEP_USAGE;
    }
    return 0;
}

/* The optional last argument: a number of workers; 0: as many as the library likes. */
static int workers_of(int argc, char **argv, int at)
{
    return argc > at ? (int)strtol(argv[at], NULL, 10) : 0;
}

static int open_job(const char *turns, struct worker *worker, struct lockstep_error *error)
{
    struct lockstep_job_options options;
    char status_file[1024];
    lockstep_job_options_init(&options);
    snprintf(status_file, sizeof status_file, "%s/status.json", turns);
    options.status_file = status_file;
    worker->turns = turns;
    return lockstep_job_open(&options, &worker->job, error);
}

static int start(int argc, char **argv, struct worker *worker, struct lockstep_error *error)
{
    const char *mode = argc > 2 ? argv[1] : "";
    int status = LOCKSTEP_USAGE;
    if (strcmp(mode, "train") == 0) {
        status = open_trainer(argv[2], workers_of(argc, argv, 3), argc > 4 ? argv[4] : NULL, worker,
                              error);
        return status != 0 ? status : serve(worker, error);
    }
    if (strcmp(mode, "job") == 0 && argc > 3) {
        status = open_job(argv[3], worker, error);
        if (status == 0)
            status = open_trainer(argv[2], workers_of(argc, argv, 4), NULL, worker, error);
        return status != 0 ? status : serve(worker, error);
    }
    if (strcmp(mode, "test") == 0 && argc > 4) {
        status = open_model(argv[2], argv[3], strtol(argv[4], NULL, 10), workers_of(argc, argv, 5),
                            worker, error);
        return status != 0 ? status : serve(worker, error);
    }
    if (strcmp(mode, "weights") == 0 && argc > 3) {
        status = open_trainer(argv[2], 0, NULL, worker, error);
        if (status == 0) /* moving averages come with the first */
            status = lockstep_trainer_step(worker->trainer, 1, error);
        return status != 0 ? status : lockstep_trainer_snapshot(worker->trainer, argv[3], error);
    }
    fprintf(stderr, "usage: bench_worker train SOLVER [WORKERS [DEVICE]]\n"
                    "       bench_worker test NET WEIGHTS BATCHES [WORKERS]\n"
                    "       bench_worker weights SOLVER FILE\n"
                    "       bench_worker job SOLVER TURNS [WORKERS]\n");
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
    if (worker.job != NULL)
        status = lockstep_job_close(worker.job, status, error);
    lockstep_error_free(error);
    return status;
}
