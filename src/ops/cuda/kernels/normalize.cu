/* Normalisation by sample. See norms.h. Sums are a group of 16 threads', a lane each.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/norms.h"
#include "ops/cuda/kernels/numbers.h"

__device__ static int64_t group_size(const struct ls_cuda_normalize *of)
{
    return of->dim / of->groups * of->inner;
}

/* Which number of scale and bias is for element i. */
__device__ static int64_t factor_of(const struct ls_cuda_normalize *of, int64_t i)
{
    return of->elements ? i % (of->dim * of->inner) : i / of->inner % of->dim;
}

__device__ static float x_hat(const float *stats, float x)
{
    return ((x - stats[0]) - stats[1]) * stats[2];
}

/* From a fold's first lane to all of its group. */
__device__ static double for_all(double sum)
{
    return __shfl_sync(0xffffffffu, sum,
                       (int)(threadIdx.x % warpSize / LS_CUDA_LANES * LS_CUDA_LANES));
}

/* The numbers that are kept of a group, from its mean and variance. */
__device__ static void fill_stats(const struct ls_cuda_normalize *of, double mean, double variance,
                                  float stats[LS_CUDA_STATS])
{
    /* Larger ratios belong to deviations that are nothing but eps, where x^ is next to 0. */
    const double largest_ratio = 1e30, root = sqrt(variance), eps = (double)of->eps;
    const double deviation = of->behind ? root + eps : sqrt(variance + eps);
    const double ratio = !of->behind ? 1 : root > 0 ? deviation / root : 0;
    stats[0] = (float)mean;
    stats[1] = (float)(mean - (double)stats[0]);
    stats[2] = of->variance ? (float)(1 / deviation) : 1;
    stats[3] = of->variance ? (float)(ratio < largest_ratio ? ratio : largest_ratio) : 0;
}

template <typename T>
__global__ void normalize(struct ls_cuda_normalize of, const T *x, const float *scale,
                          const float *bias, T *y, float *kept)
{
    const struct ls_lane_group at = ls_find_lane_group();
    const int64_t n = group_size(&of);
    const uint64_t all = (uint64_t)(of.outer * of.groups);
    for (uint64_t r = 0; r < ls_lane_rounds(all, at.groups); r++) {
        const uint64_t group = r * at.groups + at.group;
        const bool there = group < all;
        const int64_t first = (int64_t)(there ? group : UINT64_C(0)) * n;
        double sum = 0, squares = 0;
        for (int64_t i = (int64_t)at.lane; i < n; i += LS_CUDA_LANES)
            sum += (double)ls_number(x[first + i]);
        sum = for_all(ls_fold_lanes(sum));
        const double mean = of.around_zero ? 0 : sum / (double)n;
        for (int64_t i = (int64_t)at.lane; i < n; i += LS_CUDA_LANES) {
            const double apart = (double)ls_number(x[first + i]) - mean;
            squares += apart * apart;
        }
        squares = for_all(ls_fold_lanes(squares));
        float stats[LS_CUDA_STATS];
        fill_stats(&of, mean, squares / (double)n, stats);
        if (there && kept != NULL && at.lane < LS_CUDA_STATS)
            kept[group * LS_CUDA_STATS + at.lane] = stats[at.lane];
        for (int64_t i = first + (int64_t)at.lane; there && i < first + n; i += LS_CUDA_LANES) {
            const int64_t f = factor_of(&of, i);
            ls_put(&y[i], (scale != NULL ? scale[f] : 1) * x_hat(stats, ls_number(x[i])) +
                              (bias != NULL ? bias[f] : 0));
        }
    }
}

int ls_cuda_normalize_forward(cudaStream_t stream, const struct ls_cuda_normalize *of,
                              const void *x, const float *scale, const float *bias, void *y,
                              float *stats)
{
    const struct ls_cuda_normalize by = *of;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(normalize<T>, ls_lane_blocks((uint64_t)(by.outer * by.groups)), LS_THREADS,
                         stream, by, (const T *)x, scale, bias, (T *)y, stats);
    });
}

/* ---- Backward -------------------------------------------------------------------------------- */

struct sums {
    double plain, along;
};

/* Sums of dz and of dz x^ of values [from, from + n), in lanes, for all threads of the group;
 * `scale` NULL: of dy. */
template <typename T>
__device__ static struct sums sum_values(const struct ls_cuda_normalize *of, const T *dy,
                                         const T *x, const float *stats, const float *scale,
                                         int64_t from, int64_t n, uint64_t lane)
{
    struct sums sums = {0, 0};
    for (int64_t i = from + (int64_t)lane; i < from + n; i += LS_CUDA_LANES) {
        double dz = (double)ls_number(dy[i]);
        if (scale != NULL)
            dz *= (double)scale[factor_of(of, i)];
        sums.plain += dz;
        sums.along += dz * (double)x_hat(stats, ls_number(x[i]));
    }
    sums.plain = for_all(ls_fold_lanes(sums.plain));
    sums.along = for_all(ls_fold_lanes(sums.along));
    return sums;
}

/* Of a whole group: with a factor for some points, point by point and then by factor. */
template <typename T>
__device__ static struct sums sum_group(const struct ls_cuda_normalize *of, const T *dy, const T *x,
                                        const float *stats, const float *scale, int64_t first,
                                        int64_t n, uint64_t lane)
{
    struct sums sums = {0, 0};
    if (scale == NULL || of->elements || of->inner == 1)
        return sum_values(of, dy, x, stats, scale, first, n, lane);
    for (int64_t i = 0; i < n; i += of->inner) {
        const struct sums own = sum_values(of, dy, x, stats, NULL, first + i, of->inner, lane);
        const double by = (double)scale[factor_of(of, first + i)];
        sums.plain += by * own.plain;
        sums.along += by * own.along;
    }
    return sums;
}

template <typename T>
__global__ void normalize_data(struct ls_cuda_normalize of, const T *dy, const T *x,
                               const float *kept, const float *scale, T *dx)
{
    const struct ls_lane_group at = ls_find_lane_group();
    const int64_t n = group_size(&of);
    const uint64_t all = (uint64_t)(of.outer * of.groups);
    for (uint64_t r = 0; r < ls_lane_rounds(all, at.groups); r++) {
        const uint64_t group = r * at.groups + at.group;
        const bool there = group < all;
        const int64_t first = (int64_t)(there ? group : UINT64_C(0)) * n;
        const float *stats = kept + (there ? group : UINT64_C(0)) * LS_CUDA_STATS;
        const struct sums sums = sum_group(&of, dy, x, stats, scale, first, n, at.lane);
        const float plain = of.around_zero ? 0 : (float)(sums.plain / (double)n);
        const float mean = (float)(sums.along / (double)n * (double)stats[3]);
        for (int64_t i = first + (int64_t)at.lane; there && i < first + n; i += LS_CUDA_LANES) {
            const float along = x_hat(stats, ls_number(x[i])) * mean;
            const float factor = scale != NULL ? scale[factor_of(&of, i)] : 1;
            ls_put(&dx[i], ((factor * ls_number(dy[i]) - plain) - along) * stats[2]);
        }
    }
}

int ls_cuda_normalize_data(cudaStream_t stream, const struct ls_cuda_normalize *of, const void *dy,
                           const void *x, const float *stats, const float *scale, void *dx)
{
    const struct ls_cuda_normalize by = *of;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(normalize_data<T>, ls_lane_blocks((uint64_t)(by.outer * by.groups)),
                         LS_THREADS, stream, by, (const T *)dy, (const T *)x, stats, scale,
                         (T *)dx);
    });
}

/* The sums of each number of scale and bias: sample by sample, in each in lanes. */
template <typename T>
__global__ void normalize_sums(struct ls_cuda_normalize of, const T *dy, const T *x,
                               const float *kept, float *dscale, float *dbias)
{
    const struct ls_lane_group at = ls_find_lane_group();
    const int64_t n = group_size(&of), run = of.elements || of.inner == 1 ? 1 : of.inner;
    const uint64_t all = (uint64_t)(of.dim * of.inner / run);
    for (uint64_t r = 0; r < ls_lane_rounds(all, at.groups); r++) {
        const uint64_t f = r * at.groups + at.group;
        const bool there = f < all;
        double scale = 0, bias = 0;
        for (int64_t o = 0; o < of.outer; o++) {
            const int64_t from = o * of.dim * of.inner + (int64_t)(there ? f : UINT64_C(0)) * run;
            const struct sums own =
                sum_values(&of, dy, x, kept + from / n * LS_CUDA_STATS, NULL, from, run, at.lane);
            scale += own.along;
            bias += own.plain;
        }
        if (there && at.lane == 0 && dscale != NULL)
            dscale[f] = (float)scale;
        if (there && at.lane == 0 && dbias != NULL)
            dbias[f] = (float)bias;
    }
}

int ls_cuda_normalize_sums(cudaStream_t stream, const struct ls_cuda_normalize *of, const void *dy,
                           const void *x, const float *stats, float *dscale, float *dbias)
{
    const struct ls_cuda_normalize by = *of;
    const int64_t run = by.elements || by.inner == 1 ? 1 : by.inner;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(normalize_sums<T>, ls_lane_blocks((uint64_t)(by.dim * by.inner / run)),
                         LS_THREADS, stream, by, (const T *)dy, (const T *)x, stats, dscale, dbias);
    });
}
