/* The machine's limits, measured. See base/probe.h.
 *
 * Each core runs independent chains of multiply-adds of its widest vectors, then a[i] = b[i] + s
 * c[i] over arrays that are larger than its share of most caches (three reads and writes are
 * counted, as is usual). Each is the best of a few tries, one that no other process disturbed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/probe.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/memory.h"
#include "base/thread.h"

enum {
    TRIES = 5,
    ROUNDS = 2000000,           /* of the chains */
    ELEMENTS_MAX = 8 << 20,     /* of an array of one core */
    ELEMENTS_OF_ALL = 256 << 20 /* of the arrays of all cores; fewer each where there are many */
};

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
#endif

static double chains_plain(long rounds, float *sink)
{
    float sum[64] = {0};
    for (long r = 0; r < rounds; r++)
        for (int i = 0; i < 64; i++)
            sum[i] = sum[i] * 0.999f + 0.001f;
    *sink = sum[0] + sum[63];
    return (double)rounds * 64 * 2;
}

static double chains(long rounds, float *sink)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return chains_avx512(rounds, sink);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return chains_avx2(rounds, sink);
#endif
    return chains_plain(rounds, sink);
}

/* Threads wait here until all are there, and go home where one more cannot be made: a barrier
 * cannot be left again. */
struct gate {
    pthread_mutex_t lock;
    bool go_home;
};

struct core {
    int index;
    pthread_t thread;
    struct gate *gate;
    struct ls_barrier *together;
    float *array; /* three of `elements` numbers */
    long elements;
    double flops, bytes; /* a second */
};

static double triad(float *array, long elements)
{
    float *restrict a = array;
    const float *restrict b = array + elements, *restrict c = array + 2 * elements;
    for (long i = 0; i < elements; i++)
        a[i] = b[i] + 0.5f * c[i];
    return 3.0 * (double)elements * sizeof *a;
}

static void raise_rate(double *best, double done, double start)
{
    double rate = done / (ls_clock() - start);
    *best = rate > *best ? rate : *best;
}

static void *probe_core(void *argument)
{
    struct core *core = argument;
    volatile float kept = 0; /* or the compiler removes the loops: results unused */
    float sink = 0;
    pthread_mutex_lock(&core->gate->lock);
    bool go_home = core->gate->go_home;
    pthread_mutex_unlock(&core->gate->lock);
    if (go_home)
        return NULL;
    ls_pin_thread(core->index);
    ls_set_float_mode();
    for (long i = 0; i < 3 * core->elements; i++)
        core->array[i] = (float)i;
    for (int i = 0; i < TRIES; i++) {
        ls_barrier_wait(core->together);
        double start = ls_clock();
        raise_rate(&core->flops, chains(ROUNDS, &sink), start);
        kept = sink;
        ls_barrier_wait(core->together);
        start = ls_clock();
        raise_rate(&core->bytes, triad(core->array, core->elements), start);
        kept = core->array[i];
    }
    (void)kept;
    return NULL;
}

/* Runs all cores at once. */
static int run(struct core *cores, int count, struct ls_error *error)
{
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct ls_barrier together;
    int started = 0;
    ls_barrier_init(&together, count);
    pthread_mutex_lock(&gate.lock);
    for (; started < count; started++) {
        cores[started].gate = &gate;
        cores[started].together = &together;
        if (pthread_create(&cores[started].thread, NULL, probe_core, &cores[started]) != 0)
            break;
    }
    gate.go_home = started < count;
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < started; i++)
        pthread_join(cores[i].thread, NULL);
    pthread_mutex_destroy(&gate.lock);
    if (started < count)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "cannot start thread %d of %d to probe the machine", started + 1, count);
    return 0;
}

int ls_probe(int count, struct ls_probe *probe, struct ls_error *error)
{
    int there = ls_cpu_count();
    count = count > 0 && count < there ? count : there;
    *probe = (struct ls_probe){.cores = count};
    struct core *cores = ls_alloc((size_t)count, sizeof *cores);
    int status = cores == NULL ? ls_fail_memory(error, "a probe of the machine") : 0;
    long elements = ELEMENTS_OF_ALL / count / 3;
    elements = elements < ELEMENTS_MAX ? elements : ELEMENTS_MAX;
    for (int i = 0; i < count && status == 0; i++) {
        cores[i].index = i;
        cores[i].elements = elements;
        cores[i].array = ls_alloc_aligned(3 * (size_t)elements * sizeof *cores[i].array);
        if (cores[i].array == NULL)
            status = ls_fail_memory(error, "a probe of the machine");
    }
    if (status == 0)
        status = run(cores, count, error);
    for (int i = 0; i < count && cores != NULL; i++) {
        probe->flops += cores[i].flops;
        probe->bytes += cores[i].bytes;
        ls_free_aligned(cores[i].array);
    }
    ls_free(cores);
    return status;
}
