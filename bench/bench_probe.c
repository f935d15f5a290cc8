/* What this machine can do at this moment: fused multiply-adds and memory bandwidth of all cores
 * that the process may use, together. Writes "GFLOP/s GB/s".
 *
 * Each core runs independent chains of multiply-adds of its widest vectors, then a[i] = b[i] + s
 * c[i] over arrays that are larger than its share of most caches (three reads and writes are
 * counted, as everybody counts them). Each is the best of a few tries: nobody else is on the core
 * then.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CORES_MAX = 256, TRIES = 5, ELEMENTS = 8 << 20 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

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

struct probe {
    int core;
    pthread_barrier_t *together;
    float *array;        /* three of ELEMENTS numbers */
    double flops, bytes; /* a second */
};

static double triad(float *array)
{
    float *restrict a = array;
    const float *restrict b = array + ELEMENTS, *restrict c = array + 2 * (long)ELEMENTS;
    for (long i = 0; i < ELEMENTS; i++)
        a[i] = b[i] + 0.5f * c[i];
    return 3.0 * ELEMENTS * sizeof *a;
}

static void *probe_core(void *argument)
{
    struct probe *probe = argument;
    volatile float kept;
    float sink;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(probe->core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    for (long i = 0; i < 3 * (long)ELEMENTS; i++)
        probe->array[i] = (float)i;
    for (int i = 0; i < TRIES; i++) {
        pthread_barrier_wait(probe->together);
        double start = now(), done = chains(2000000, &sink), rate = done / (now() - start);
        kept = sink;
        probe->flops = rate > probe->flops ? rate : probe->flops;
        pthread_barrier_wait(probe->together);
        start = now();
        done = triad(probe->array);
        rate = done / (now() - start);
        kept = probe->array[i];
        probe->bytes = rate > probe->bytes ? rate : probe->bytes;
    }
    (void)kept;
    return NULL;
}

/* The cores that this process may use. */
static int find_cores(struct probe *probes)
{
    cpu_set_t set;
    int count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int core = 0; core < CPU_SETSIZE && count < CORES_MAX; core++)
        if (CPU_ISSET(core, &set))
            probes[count++].core = core;
    return count;
}

int main(void)
{
    static struct probe probes[CORES_MAX];
    pthread_t threads[CORES_MAX];
    pthread_barrier_t together;
    double flops = 0, bytes = 0;
    int count = find_cores(probes);
    if (count == 0 || pthread_barrier_init(&together, NULL, (unsigned)count) != 0)
        return 1;
    for (int i = 0; i < count; i++) {
        probes[i].together = &together;
        probes[i].array = malloc(3 * sizeof(float) * ELEMENTS);
        if (probes[i].array == NULL ||
            pthread_create(&threads[i], NULL, probe_core, &probes[i]) != 0)
            return 1;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        free(probes[i].array);
        flops += probes[i].flops;
        bytes += probes[i].bytes;
    }
    printf("%.2f %.2f\n", flops * 1e-9, bytes * 1e-9);
    return 0;
}
