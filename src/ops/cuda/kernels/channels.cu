/* What is done by channel: factors and slopes, and their gradients. See elements.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/channels.h"

#include "ops/cuda/kernels/elements.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/numbers.h"

/* ---- Element by element ---------------------------------------------------------------------- */

template <typename P>
__global__ void prelu(struct ls_cuda_axes of, const typename P::number *from,
                      const typename P::number *sign, const float *slope, typename P::number *y,
                      uint64_t packs)
{
    for (LS_EACH(i, packs)) {
        float number[P::WIDTH], by_sign[P::WIDTH];
        struct ls_channel_place at =
            ls_channel_at(i * P::WIDTH, (uint64_t)of.dim, (uint64_t)of.inner);
        ls_read(P(), from, i, number);
        ls_read(P(), sign, i, by_sign);
        for (int k = 0; k < P::WIDTH; k++, ls_next_channel(&at)) {
            const double by = (double)slope[at.channel];
            number[k] = by_sign[k] > 0 ? number[k] : (float)((double)number[k] * by);
        }
        ls_write(P(), y, i, number);
    }
}

int ls_cuda_prelu(cudaStream_t stream, const struct ls_cuda_axes *of, bool bf16, const void *from,
                  const void *sign, const float *slope, void *y)
{
    const struct ls_cuda_axes by = *of;
    const uint64_t n = (uint64_t)(by.outer * by.dim * by.inner);
    const uintptr_t addresses = (uintptr_t)from | (uintptr_t)sign | (uintptr_t)y;
    return ls_by_pack(bf16, n, addresses, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = n / P::WIDTH;
        return LS_LAUNCH(prelu<P>, ls_blocks(packs), LS_THREADS, stream, by, (const T *)from,
                         (const T *)sign, slope, (T *)y, packs);
    });
}

template <typename P>
__global__ void scale(struct ls_cuda_axes of, const typename P::number *x, const float *factor,
                      const float *bias, typename P::number *y, uint64_t packs)
{
    for (LS_EACH(i, packs)) {
        float number[P::WIDTH];
        struct ls_channel_place at =
            ls_channel_at(i * P::WIDTH, (uint64_t)of.dim, (uint64_t)of.inner);
        ls_read(P(), x, i, number);
        for (int k = 0; k < P::WIDTH; k++, ls_next_channel(&at)) {
            const float product = number[k] * (factor != NULL ? factor[at.channel] : 1);
            number[k] = bias != NULL ? product + bias[at.channel] : product;
        }
        ls_write(P(), y, i, number);
    }
}

int ls_cuda_scale(cudaStream_t stream, const struct ls_cuda_axes *of, bool bf16, const void *x,
                  const float *factor, const float *bias, void *y)
{
    const struct ls_cuda_axes by = *of;
    const uint64_t n = (uint64_t)(by.outer * by.dim * by.inner);
    return ls_by_pack(bf16, n, (uintptr_t)x | (uintptr_t)y, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = n / P::WIDTH;
        return LS_LAUNCH(scale<P>, ls_blocks(packs), LS_THREADS, stream, by, (const T *)x, factor,
                         bias, (T *)y, packs);
    });
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Where number `inner` of channel c lies, in an outer one. */
__device__ static int64_t place_of(const struct ls_cuda_sums *of, int64_t outer, int64_t c,
                                   int64_t inner)
{
    return of->last ? (outer * of->inner + inner) * of->dim + c
                    : (outer * of->dim + c) * of->inner + inner;
}

/* The sum of a channel: its points in lanes, then over the samples. All threads of the group call
 * it. */
template <typename T>
__device__ static double sum_prelu(const struct ls_cuda_sums *of, const T *dy, const T *x,
                                   int64_t channel, const struct ls_lane_group *at, bool there)
{
    double sum = 0;
    for (int64_t n = 0; n < of->outer; n++) {
        double mine = 0;
        for (int64_t p = (int64_t)at->lane; there && p < of->inner; p += LS_CUDA_LANES) {
            const int64_t i = place_of(of, n, channel, p);
            const float number = ls_number(x[i]);
            mine += number > 0 ? 0.0 : (double)ls_number(dy[i]) * (double)number;
        }
        sum += ls_fold_for_all(at, mine);
    }
    return sum;
}

template <typename T>
__global__ void sum_prelus(struct ls_cuda_sums of, const T *dy, const T *x, float *slope)
{
    const struct ls_lane_group at = ls_find_lane_group(of.last);
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.dim, at.groups); r++) {
        const uint64_t channel = r * at.groups + at.group;
        const bool there = channel < (uint64_t)of.dim;
        const double sum = sum_prelu(&of, dy, x, (int64_t)channel, &at, there);
        if (there && at.lane == 0)
            slope[channel] = (float)sum;
    }
}

/* One slope for all channels: the groups of one block take as many channels at a time, whose sums
 * are added one after the other. */
template <typename T>
__global__ void sum_shared_prelu(struct ls_cuda_sums of, const T *dy, const T *x, float *slope)
{
    __shared__ double sums[LS_THREADS / LS_CUDA_LANES];
    const struct ls_lane_group at = ls_find_lane_group();
    double total = 0;
    for (int64_t first = 0; first < of.dim; first += (int64_t)at.groups) {
        const int64_t c = first + (int64_t)at.group;
        const double sum = sum_prelu(&of, dy, x, c, &at, c < of.dim);
        if (at.lane == 0)
            sums[at.group] = sum;
        __syncthreads();
        for (int64_t k = 0; threadIdx.x == 0 && k < (int64_t)at.groups && first + k < of.dim; k++)
            total += sums[k];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *slope = (float)total;
}

int ls_cuda_prelu_slope(cudaStream_t stream, const struct ls_cuda_sums *of, bool shared,
                        const void *dy, const void *x, float *slope)
{
    const struct ls_cuda_sums by = *of;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        if (shared)
            return LS_LAUNCH(sum_shared_prelu<T>, 1u, LS_THREADS, stream, by, (const T *)dy,
                             (const T *)x, slope);
        return LS_LAUNCH(sum_prelus<T>, ls_lane_blocks((uint64_t)by.dim), LS_THREADS, stream, by,
                         (const T *)dy, (const T *)x, slope);
    });
}

/* What lies behind a number of the factor is in lanes, which go on from one place in front of it to
 * the next. */
template <typename T>
__global__ void sum_scales(struct ls_cuda_sums of, const T *dy, const T *x, float *dfactor,
                           float *dbias)
{
    const struct ls_lane_group at = ls_find_lane_group(of.last);
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.dim, at.groups); r++) {
        const uint64_t d = r * at.groups + at.group;
        const bool there = d < (uint64_t)of.dim;
        double factor = 0, bias = 0;
        for (int64_t o = 0; there && o < of.outer; o++)
            for (int64_t p = (int64_t)at.lane; p < of.inner; p += LS_CUDA_LANES) {
                const int64_t i = place_of(&of, o, (int64_t)d, p);
                const double slope = (double)ls_number(dy[i]);
                factor += x != NULL ? slope * (double)ls_number(x[i]) : 0;
                bias += slope;
            }
        factor = ls_fold_for_all(&at, factor);
        bias = ls_fold_for_all(&at, bias);
        if (there && at.lane == 0 && dfactor != NULL)
            dfactor[d] = (float)factor;
        if (there && at.lane == 0 && dbias != NULL)
            dbias[d] = (float)bias;
    }
}

int ls_cuda_scale_sums(cudaStream_t stream, const struct ls_cuda_sums *of, const void *dy,
                       const void *x, float *dfactor, float *dbias)
{
    const struct ls_cuda_sums by = *of;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(sum_scales<T>, ls_lane_blocks((uint64_t)by.dim), LS_THREADS, stream, by,
                         (const T *)dy, (const T *)x, dfactor, dbias);
    });
}
