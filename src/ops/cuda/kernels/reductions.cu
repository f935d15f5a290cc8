/* Reductions of runs. See elements.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/elements.h"

#include <math.h>

#include "device/exact.h"
#include "ops/cuda/kernels/lanes.h"

__device__ static double term_of(enum ls_reduction method, float x)
{
    const double wide = (double)x;
    return method == LS_REDUCE_ASUM ? fabs(wide) : method == LS_REDUCE_SUMSQ ? wide * wide : wide;
}

/* Chunks of LS_EXACT_CHUNK elements in lanes, each by all threads of a group; chunks are added by
 * halves. The first lane has the sum. All threads of a warp call it with the same n. */
__device__ static double sum_chunk(enum ls_reduction method, const float *x, int64_t n,
                                   uint64_t lane, bool there)
{
    double mine = 0;
    for (int64_t i = (int64_t)lane; there && i < n; i += LS_CUDA_LANES)
        mine += term_of(method, x[i]);
    return ls_fold_lanes(mine);
}

/* As ls_sum_doubles and its like add chunks: the first half is the larger one. */
__device__ static double sum_run(enum ls_reduction method, const float *x, int64_t n, uint64_t lane,
                                 bool there)
{
    double stack[48];
    int64_t chunks[48];
    int top = 0;
    const int64_t all = (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    if (all <= 1)
        return sum_chunk(method, x, n, lane, there);
    /* A walk over the tree of halves, the left one first: what is left to do is on the stack, as a
     * number of chunks; 0 stands for a sum that waits for its right half. */
    double found = 0;
    int64_t at = 0;
    chunks[top++] = all;
    while (top > 0) {
        const int64_t count = chunks[--top];
        if (count == 0) { /* found is the right half of what waits */
            found = stack[top] + found;
            continue;
        }
        if (count < 0) { /* the left half is found: the right one is next */
            stack[top] = found;
            chunks[top++] = 0;
            chunks[top++] = -count;
            continue;
        }
        if (count > 1) {
            chunks[top++] = -(count / 2);
            chunks[top++] = count - count / 2;
            continue;
        }
        const int64_t left = n - at * LS_EXACT_CHUNK;
        found =
            sum_chunk(method, x + at * LS_EXACT_CHUNK,
                      left < (int64_t)LS_EXACT_CHUNK ? left : (int64_t)LS_EXACT_CHUNK, lane, there);
        at++;
    }
    return found;
}

__global__ void reduce_runs(struct ls_cuda_reduction of, const float *x, float *y)
{
    const struct ls_lane_group at = ls_find_lane_group();
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.count, at.groups); r++) {
        const uint64_t i = r * at.groups + at.group;
        const bool there = i < (uint64_t)of.count;
        const double sum =
            (double)of.coeff * sum_run(of.method, x + (there ? i : UINT64_C(0)) * (uint64_t)of.run,
                                       of.run, at.lane, there);
        if (there && at.lane == 0)
            y[i] = (float)(sum / (of.method == LS_REDUCE_MEAN ? (double)of.run : 1));
    }
}

int ls_cuda_reduce(cudaStream_t stream, const struct ls_cuda_reduction *of, const float *x,
                   float *y)
{
    const struct ls_cuda_reduction by = *of;
    return LS_LAUNCH(reduce_runs, ls_lane_blocks((uint64_t)by.count), LS_THREADS, stream, by, x, y);
}

__global__ void add_reduction(struct ls_cuda_reduction of, const float *x, double *record)
{
    const double sum = sum_run(of.method, x, of.run, threadIdx.x % LS_CUDA_LANES, true);
    if (threadIdx.x == 0) {
        record[0] += (double)of.coeff * sum;
        record[1] += of.uncounted ? 0 : (double)of.run;
    }
}

int ls_cuda_reduce_loss(cudaStream_t stream, const struct ls_cuda_reduction *of, const float *x,
                        double *record)
{
    const struct ls_cuda_reduction by = *of;
    return LS_LAUNCH(add_reduction, 1u, 32u, stream, by, x, record);
}

__global__ void reduce_backward(struct ls_cuda_reduction of, const struct ls_batch_numbers *numbers,
                                const float *dy, const float *x, float *dx)
{
    for (LS_EACH(i, of.count * of.run)) {
        const bool square = of.method == LS_REDUCE_SUMSQ;
        const float value = square || of.method == LS_REDUCE_ASUM ? x[i] : 1;
        double wide = (double)of.coeff;
        if (dy != NULL)
            wide = wide / (of.method == LS_REDUCE_MEAN ? (double)of.run : 1) *
                   (double)dy[i / (uint64_t)of.run];
        else
            wide = wide * (double)of.loss_weight /
                   (of.normalizer < 0 ? 1 : numbers->normalizers[of.normalizer]);
        const float factor = (float)wide;
        dx[i] = square ? 2 * factor * value : value > 0 ? factor : value < 0 ? -factor : 0;
    }
}

int ls_cuda_reduce_backward(cudaStream_t stream, const struct ls_cuda_reduction *of,
                            const struct ls_batch_numbers *numbers, const float *dy, const float *x,
                            float *dx)
{
    const struct ls_cuda_reduction by = *of;
    return LS_LAUNCH(reduce_backward, ls_blocks((uint64_t)(by.count * by.run)), LS_THREADS, stream,
                     by, numbers, dy, x, dx);
}
