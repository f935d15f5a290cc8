/* Softmax. See losses.h. SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "device/elementary.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/losses.h"
#include "ops/cuda/kernels/numbers.h"

__device__ static bool is_masked(const struct ls_cuda_mask *mask, int64_t i)
{
    int64_t at = 0, size = 1;
    if (mask->rank == 0)
        return false;
    for (int axis = mask->rank - 1; axis >= 0; i /= mask->x[axis--]) {
        at += mask->mask[axis] > 1 ? i % mask->x[axis] * size : 0;
        size *= mask->mask[axis];
    }
    return mask->numbers[at] == 0;
}

/* Where class c of position i is. */
__device__ static int64_t place_of(const struct ls_cuda_classes *of, int64_t i, int64_t c)
{
    return of->last ? i * of->dim + c : (i / of->inner * of->dim + c) * of->inner + i % of->inner;
}

template <typename T>
__device__ static float number_at(const struct ls_cuda_mask *mask, const T *x, int64_t at)
{
    return is_masked(mask, at) ? -INFINITY : ls_number(x[at]);
}

/* Classes that follow each other: a group of 16 threads a position, with sums in lanes. */
template <typename T>
__global__ void softmax_lanes(struct ls_cuda_classes of, struct ls_cuda_mask mask, const T *x,
                              float *y)
{
    const struct ls_lane_group at = ls_find_lane_group();
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.outer, at.groups); r++) {
        const uint64_t i = r * at.groups + at.group;
        const bool there = i < (uint64_t)of.outer;
        const int64_t first = (int64_t)(there ? i : UINT64_C(0)) * of.dim, end = first + of.dim;
        const int64_t begin = first + (int64_t)at.lane;
        float largest = -INFINITY, sum = 0;
        for (int64_t c = begin; c < end; c += LS_CUDA_LANES) {
            const float number = number_at(&mask, x, c);
            largest = number > largest ? number : largest;
        }
        for (int apart = LS_CUDA_LANES / 2; apart > 0; apart /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, largest, apart);
            largest = other > largest ? other : largest;
        }
        for (int64_t c = begin; there && c < end; c += LS_CUDA_LANES)
            sum += y[c] = ls_float_exp(number_at(&mask, x, c) - largest);
        sum = ls_fold_float_lanes(sum);
        sum = __shfl_sync(0xffffffffu, sum,
                          (int)(threadIdx.x % warpSize / LS_CUDA_LANES * LS_CUDA_LANES));
        for (int64_t c = begin; there && c < end; c += LS_CUDA_LANES)
            y[c] = is_masked(&mask, c) ? 0 : y[c] / sum;
    }
}

/* Others: a thread a position, one class after the other. */
template <typename T>
__global__ void softmax_each(struct ls_cuda_classes of, struct ls_cuda_mask mask, const T *x,
                             float *y)
{
    for (LS_EACH(i, of.outer * of.inner)) {
        float largest = -INFINITY, sum = 0;
        for (int64_t c = 0; c < of.dim; c++) {
            const float number = number_at(&mask, x, place_of(&of, (int64_t)i, c));
            largest = number > largest ? number : largest;
        }
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            sum += y[at] = ls_float_exp(number_at(&mask, x, at) - largest);
        }
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            y[at] = is_masked(&mask, at) ? 0 : y[at] / sum;
        }
    }
}

int ls_cuda_softmax(cudaStream_t stream, const struct ls_cuda_classes *of,
                    const struct ls_cuda_mask *mask, const void *x, float *y)
{
    const struct ls_cuda_classes by = *of;
    const struct ls_cuda_mask hide = *mask;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        if (by.inner == 1)
            return LS_LAUNCH(softmax_lanes<T>, ls_lane_blocks((uint64_t)by.outer), LS_THREADS,
                             stream, by, hide, (const T *)x, y);
        return LS_LAUNCH(softmax_each<T>, ls_blocks((uint64_t)(by.outer * by.inner)), LS_THREADS,
                         stream, by, hide, (const T *)x, y);
    });
}

template <typename T>
__global__ void softmax_backward_lanes(struct ls_cuda_classes of, const float *y, const float *dy,
                                       T *dx)
{
    const struct ls_lane_group at = ls_find_lane_group();
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.outer, at.groups); r++) {
        const uint64_t i = r * at.groups + at.group;
        const bool there = i < (uint64_t)of.outer;
        const int64_t first = (int64_t)(there ? i : UINT64_C(0)) * of.dim, end = first + of.dim;
        float dot = 0;
        for (int64_t c = first + (int64_t)at.lane; c < end; c += LS_CUDA_LANES)
            dot += dy[c] * y[c];
        dot = ls_fold_float_lanes(dot);
        dot = __shfl_sync(0xffffffffu, dot,
                          (int)(threadIdx.x % warpSize / LS_CUDA_LANES * LS_CUDA_LANES));
        for (int64_t c = first + (int64_t)at.lane; there && c < end; c += LS_CUDA_LANES)
            ls_put(&dx[c], (dy[c] - dot) * y[c]);
    }
}

template <typename T>
__global__ void softmax_backward_each(struct ls_cuda_classes of, const float *y, const float *dy,
                                      T *dx)
{
    for (LS_EACH(i, of.outer * of.inner)) {
        float dot = 0;
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            dot += dy[at] * y[at];
        }
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            ls_put(&dx[at], (dy[at] - dot) * y[at]);
        }
    }
}

int ls_cuda_softmax_backward(cudaStream_t stream, const struct ls_cuda_classes *of, const float *y,
                             const float *dy, void *dx)
{
    const struct ls_cuda_classes by = *of;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        if (by.inner == 1)
            return LS_LAUNCH(softmax_backward_lanes<T>, ls_lane_blocks((uint64_t)by.outer),
                             LS_THREADS, stream, by, y, dy, (T *)dx);
        return LS_LAUNCH(softmax_backward_each<T>, ls_blocks((uint64_t)(by.outer * by.inner)),
                         LS_THREADS, stream, by, y, dy, (T *)dx);
    });
}
