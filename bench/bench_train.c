/* How fast training is here, against what the processor could do at most.
 *
 * For LeNet, cifar10_quick, cifar10_full and ResNet-20: samples per second with one and two
 * workers, measured in turns so that a slow episode of the machine meets both, and the share of the
 * fused multiply-add peak, which is probed before and after every turn. Data are made up in files
 * beside the run and read as in any training. Prints medians; --json FILE writes them, too.
 *
 * Then what batch statistics over the whole batch cost: ResNet-20 with two workers, with the
 * default group against groups of one micro-batch, in turns.
 *
 *     build/bench/bench_train [--only NET] [--rounds N] [--json FILE]        (from the source tree)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "lockstep/lockstep.h"

enum { ROUNDS_MAX = 25, ARMS = 2 };

/* ---- The peak -------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

/* Twelve independent chains hide the latency of a multiply-add. Returns operations done. */
__attribute__((target("avx512f"))) static double chains_avx512(long rounds, float *sink)
{
    __m512 sum[12], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    for (int i = 0; i < 12; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (long r = 0; r < rounds; r++)
        for (int i = 0; i < 12; i++)
            sum[i] = _mm512_fmadd_ps(sum[i], a, b);
    for (int i = 1; i < 12; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    *sink = _mm512_reduce_add_ps(sum[0]);
    return (double)rounds * 12 * 16 * 2;
}

__attribute__((target("avx2,fma"))) static double chains_avx2(long rounds, float *sink)
{
    __m256 sum[12], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    for (int i = 0; i < 12; i++)
        sum[i] = _mm256_set1_ps((float)i);
    for (long r = 0; r < rounds; r++)
        for (int i = 0; i < 12; i++)
            sum[i] = _mm256_fmadd_ps(sum[i], a, b);
    for (int i = 1; i < 12; i++)
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    float lane[8];
    _mm256_storeu_ps(lane, sum[0]);
    *sink = lane[0] + lane[5];
    return (double)rounds * 12 * 8 * 2;
}

static double chains(long rounds, float *sink)
{
    return __builtin_cpu_supports("avx512f") ? chains_avx512(rounds, sink)
                                             : chains_avx2(rounds, sink);
}
#else
static double chains(long rounds, float *sink)
{
    float sum[64] = {0};
    for (long r = 0; r < rounds; r++)
        for (int i = 0; i < 64; i++)
            sum[i] = __builtin_fmaf(sum[i], 0.999f, 0.001f);
    *sink = sum[0] + sum[63];
    return (double)rounds * 64 * 2;
}
#endif

struct probe {
    int core;
    double rate; /* operations per second */
};

static void *probe_core(void *argument)
{
    struct probe *probe = argument;
    float sink;
    ls_pin_thread(probe->core);
    for (int i = 0; i < 5; i++) { /* the best of five: nobody else is on the core then */
        double start = ls_clock(), done = chains(4000000, &sink);
        double rate = done / (ls_clock() - start);
        probe->rate = rate > probe->rate ? rate : probe->rate;
    }
    return NULL;
}

/* Operations per second of `cores` cores together. */
static double probe_peak(int cores)
{
    struct probe probes[ARMS] = {{.core = 0}, {.core = 1}};
    pthread_t threads[ARMS];
    double rate = 0;
    for (int i = 0; i < cores; i++)
        pthread_create(&threads[i], NULL, probe_core, &probes[i]);
    for (int i = 0; i < cores; i++) {
        pthread_join(threads[i], NULL);
        rate += probes[i].rate;
    }
    return rate;
}

/* ---- Networks and data ----------------------------------------------------------------------- */

static const struct network {
    const char *name, *solver;
    int batch;
    double flops;   /* of a training step, per sample: 2 a multiply-add, no gradient of the data */
    int iterations; /* in a turn */
} networks[] = {
    {"lenet", "examples/mnist/lenet_solver.prototxt", 64, 13.2e6, 60},
    {"cifar10_quick", "examples/cifar10/cifar10_quick_solver.prototxt", 100, 69.2e6, 20},
    {"cifar10_full", "examples/cifar10/cifar10_full_solver.prototxt", 100, 68.9e6, 20},
    {"resnet20", "examples/cifar10/resnet20_solver.prototxt", 128, 245.4e6, 6},
};

static void put_noise(FILE *file, size_t bytes, uint32_t *state)
{
    for (size_t i = 0; i < bytes; i++) {
        *state = *state * 1664525u + 1013904223u;
        fputc((int)(*state >> 24), file);
    }
}

static void put_cifar(const char *name, int records, uint32_t *state)
{
    FILE *file = fopen(name, "wb");
    for (int i = 0; file != NULL && i < records; i++) {
        fputc(i % 10, file);
        put_noise(file, 3072, state);
    }
    if (file != NULL)
        fclose(file);
}

static void put_idx(const char *name, int rank, int records, uint32_t *state)
{
    const unsigned extents[] = {(unsigned)records, 28, 28};
    FILE *file = fopen(name, "wb");
    if (file == NULL)
        return;
    fwrite((const unsigned char[]){0, 0, 8, (unsigned char)rank}, 1, 4, file);
    for (int i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            fputc((int)(extents[i] >> shift & 255), file);
    for (int i = 0; i < records; i++) {
        if (rank == 1)
            fputc(i % 10, file);
        else
            put_noise(file, 784, state);
    }
    fclose(file);
}

/* The files that the examples name, in the working directory, which comes first. */
static void make_data(void)
{
    uint32_t state = 1;
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        put_cifar(name, 1000, &state);
    }
    put_cifar("test_batch.bin", 100, &state);
    put_idx("train-images-idx3-ubyte.gz", 3, 6000, &state);
    put_idx("train-labels-idx1-ubyte.gz", 1, 6000, &state);
    put_idx("t10k-images-idx3-ubyte.gz", 3, 100, &state);
    put_idx("t10k-labels-idx1-ubyte.gz", 1, 100, &state);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

struct arm {
    struct lockstep_trainer *trainer;
    double rate[ROUNDS_MAX];  /* samples per second */
    double share[ROUNDS_MAX]; /* of the peak of as many cores */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static int open_arm(const char *solver_file, int workers, struct arm *arm,
                    struct lockstep_error *error)
{
    struct lockstep_solver *solver = NULL;
    struct lockstep_train_options options;
    int status = lockstep_solver_load(solver_file, NULL, 0, &solver, error);
    lockstep_train_options_init(&options);
    options.workers = workers;
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &arm->trainer, error);
    if (status == 0) /* kernels are made, pages touched */
        status = lockstep_trainer_step(arm->trainer, 5, error);
    lockstep_solver_free(solver);
    return status;
}

static int open_arms(const char *root, const struct network *network, struct arm *arms,
                     struct lockstep_error *error)
{
    char path[4200];
    int status = 0;
    snprintf(path, sizeof path, "%s/%s", root, network->solver);
    for (int a = 0; a < ARMS && status == 0; a++)
        status = open_arm(path, a + 1, &arms[a], error);
    return status;
}

static int take_turn(const struct network *network, struct arm *arm, int workers, int round,
                     struct lockstep_error *error)
{
    double before = probe_peak(workers), start = ls_clock();
    int status = lockstep_trainer_step(arm->trainer, network->iterations, error);
    double seconds = ls_clock() - start, after = probe_peak(workers);
    arm->rate[round] = (double)network->batch * network->iterations / seconds;
    arm->share[round] = arm->rate[round] * network->flops / (before > after ? before : after);
    return status;
}

static void report(FILE *json, const struct network *network, const struct arm *arms, int rounds,
                   bool first)
{
    double one = median(arms[0].rate, rounds), two = median(arms[1].rate, rounds);
    double ratio[ROUNDS_MAX];
    for (int r = 0; r < rounds; r++)
        ratio[r] = arms[1].rate[r] / arms[0].rate[r];
    printf("%-14s %5d %10.0f %7.1f %% %10.0f %7.1f %% %8.2f\n", network->name, network->batch, one,
           100 * median(arms[0].share, rounds), two, 100 * median(arms[1].share, rounds),
           median(ratio, rounds));
    if (json != NULL)
        fprintf(json,
                "%s  {\"network\": \"%s\", \"batch\": %d, \"mode\": \"train\", "
                "\"samples_per_s_1\": %.1f, \"samples_per_s_2\": %.1f, \"peak_share_1\": %.4f, "
                "\"peak_share_2\": %.4f, \"speedup\": %.3f, \"rounds\": %d}",
                first ? "" : ",\n", network->name, network->batch, one, two,
                median(arms[0].share, rounds), median(arms[1].share, rounds), median(ratio, rounds),
                rounds);
}

static int measure(const char *root, const struct network *network, int rounds, FILE *json,
                   bool first, struct lockstep_error *error)
{
    struct arm arms[ARMS] = {{.trainer = NULL}};
    int status = open_arms(root, network, arms, error);
    for (int r = 0; r < rounds && status == 0; r++)
        for (int a = 0; a < ARMS && status == 0; a++)
            status = take_turn(network, &arms[a], a + 1, r, error);
    if (status == 0)
        report(json, network, arms, rounds, first);
    for (int a = 0; a < ARMS; a++)
        lockstep_trainer_free(arms[a].trainer);
    return status;
}

/* ---- Batch statistics ------------------------------------------------------------------------ */

/* Copies a definition with a group for each layer of batch norm. */
static int put_group(const char *from, const char *to, const char *group)
{
    static const char field[] = "batch_norm_param {";
    char line[1000];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    while (in != NULL && out != NULL && fgets(line, sizeof line, in) != NULL) {
        char *at = strstr(line, field);
        if (at == NULL) {
            fputs(line, out);
            continue;
        }
        at += strlen(field);
        fprintf(out, "%.*s group: %s%s", (int)(at - line), line, group, at);
    }
    bool good = in != NULL && out != NULL;
    if (in != NULL)
        fclose(in);
    return out != NULL && fclose(out) == 0 && good ? LOCKSTEP_OK : LOCKSTEP_RESOURCE;
}

/* ResNet-20 on two workers: the default group in the first arm, groups of one micro-batch in the
 * second. */
static int measure_groups(const char *root, int rounds, struct lockstep_error *error)
{
    const struct network *network = &networks[sizeof networks / sizeof *networks - 1];
    struct arm arms[ARMS] = {{.trainer = NULL}};
    char net[4200], path[4200];
    static const char solver[] = "net: 'resnet20_train_test.prototxt' base_lr: 0.1 momentum: 0.9\n"
                                 "lr_policy: 'fixed' max_iter: 1000000 type: 'Nesterov'\n";
    snprintf(net, sizeof net, "%s/examples/cifar10/resnet20_train_test.prototxt", root);
    snprintf(path, sizeof path, "%s/%s", root, network->solver);
    int status = put_group(net, "resnet20_train_test.prototxt", "16");
    FILE *file = fopen("grouped_solver.prototxt", "w");
    if (status != 0 || file == NULL || fputs(solver, file) < 0 || fclose(file) != 0)
        return LOCKSTEP_RESOURCE;
    status = open_arm(path, 2, &arms[0], error);
    if (status == 0)
        status = open_arm("grouped_solver.prototxt", 2, &arms[1], error);
    for (int r = 0; r < rounds && status == 0; r++)
        for (int a = 0; a < ARMS && status == 0; a++)
            status = take_turn(network, &arms[a], 2, r, error);
    if (status == 0) {
        double ratio[ROUNDS_MAX];
        for (int r = 0; r < rounds; r++)
            ratio[r] = arms[0].rate[r] / arms[1].rate[r];
        printf("\nresnet20, 2 workers: groups of 16 (no sync point) %.0f samples/s, group of the "
               "whole batch %.0f: %.1f %% slower\n",
               median(arms[1].rate, rounds), median(arms[0].rate, rounds),
               100 * (1 - median(ratio, rounds)));
    }
    for (int a = 0; a < ARMS; a++)
        lockstep_trainer_free(arms[a].trainer);
    return status;
}

/* ---- The program ----------------------------------------------------------------------------- */

static int run(const char *only, int rounds, const char *json_path, struct lockstep_error *error)
{
    char root[4000], folder[] = "/tmp/lockstep-bench-XXXXXX";
    FILE *json = json_path != NULL ? fopen(json_path, "w") : NULL;
    if (getcwd(root, sizeof root) == NULL || mkdtemp(folder) == NULL || chdir(folder) != 0 ||
        (json_path != NULL && json == NULL)) {
        perror("bench_train");
        return LOCKSTEP_RESOURCE;
    }
    make_data();
    printf("Peak of fused multiply-adds: %.1f GFLOP/s on one core, %.1f on two\n",
           probe_peak(1) / 1e9, probe_peak(2) / 1e9);
    printf("Medians of %d rounds; one worker and two take turns.\n\n", rounds);
    printf("%-14s %5s %10s %9s %10s %9s %8s\n", "network", "batch", "1 worker", "of peak",
           "2 workers", "of peak", "speed-up");
    printf("%-14s %5s %10s %9s %10s\n", "", "", "samples/s", "", "samples/s");
    if (json != NULL)
        fprintf(json, "[\n");
    int status = 0;
    bool first = true;
    for (size_t i = 0; i < sizeof networks / sizeof *networks && status == 0; i++) {
        if (only != NULL && strcmp(only, networks[i].name) != 0)
            continue;
        status = measure(root, &networks[i], rounds, json, first, error);
        first = false;
    }
    if (status == 0 && (only == NULL || strcmp(only, "resnet20") == 0))
        status = measure_groups(root, rounds, error);
    if (json != NULL) {
        fprintf(json, "\n]\n");
        fclose(json);
    }
    static const char *const files[] = {"data_batch_1.bin",
                                        "data_batch_2.bin",
                                        "data_batch_3.bin",
                                        "data_batch_4.bin",
                                        "data_batch_5.bin",
                                        "test_batch.bin",
                                        "resnet20_train_test.prototxt",
                                        "grouped_solver.prototxt",
                                        "train-images-idx3-ubyte.gz",
                                        "train-labels-idx1-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz",
                                        "t10k-labels-idx1-ubyte.gz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i]);
    if (chdir("/") == 0)
        rmdir(folder);
    return status;
}

int main(int argc, char **argv)
{
    const char *only = NULL, *json = NULL;
    int rounds = 7;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--json") == 0)
            json = argv[i + 1];
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = (int)strtol(argv[i + 1], NULL, 10);
    }
    if (argc % 2 == 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench_train [--only NET] [--rounds 1..%d] [--json FILE]\n",
                ROUNDS_MAX);
        return LOCKSTEP_USAGE;
    }
    struct lockstep_error *error = lockstep_error_new();
    int status = run(only, rounds, json, error);
    if (status != 0)
        fprintf(stderr, "bench_train: %s\n", lockstep_error_text(error));
    lockstep_error_free(error);
    return status;
}
