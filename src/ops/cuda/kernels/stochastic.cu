/* Stochastic pooling: in training one of a window's numbers, each as often as it is large. See
 * windows.h. A thread has a window: it goes through it once for the sum, and once more until a part
 * of the sum is reached that was drawn.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/philox.h"
#include "ops/cuda/kernels/cuda_c.h"
#include "ops/cuda/kernels/windows.h"

/* A window's part inside the input. */
struct part {
    int64_t begin[3], end[3];
};

__device__ static struct part part_of(const struct ls_cuda_pooling *of, int64_t at)
{
    struct part part;
    for (int a = 2; a >= 0; at /= of->y[a--]) {
        const int64_t first = at % of->y[a] * of->stride[a] - of->pad[a];
        const int64_t end = first + of->kernel[a];
        part.begin[a] = first < 0 ? 0 : first;
        part.end[a] = end < of->x[a] ? end : of->x[a];
    }
    return part;
}

struct found {
    double sum, squares;
    int64_t winner; /* the first with which the sum reaches `wanted`; -1: none */
};

/* The numbers of a part one after the other. What is below 0 counts as 0. */
__device__ static struct found add_part(const struct ls_cuda_pooling *of, const struct part *part,
                                        const float *plane, double wanted)
{
    struct found found = {0, 0, -1};
    for (int64_t i = part->begin[0]; i < part->end[0]; i++)
        for (int64_t j = part->begin[1]; j < part->end[1]; j++)
            for (int64_t k = part->begin[2]; k < part->end[2]; k++) {
                const int64_t at = (i * of->x[1] + j) * of->x[2] + k;
                const double x = plane[at] < 0 ? 0 : (double)plane[at];
                found.sum += x;
                found.squares += x * x;
                if (found.winner < 0 && found.sum >= wanted)
                    found.winner = at;
            }
    return found;
}

__device__ static int64_t points_of(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

__global__ void pool_drawn(struct ls_cuda_pooling of, struct ls_cuda_draws draws,
                           const struct ls_batch_numbers *numbers, const float *x, float *y,
                           int32_t *index)
{
    const int64_t points = points_of(of.y);
    const uint64_t first = (uint64_t)numbers->first_ordinal, each = (uint64_t)draws.each;
    for (LS_EACH(i, of.samples * of.channels * points)) {
        const struct part part = part_of(&of, (int64_t)i % points);
        const float *plane = x + (int64_t)i / points * points_of(of.x);
        const double sum = add_part(&of, &part, plane, 0).sum;
        const uint32_t drawn = ls_philox_number(draws.key, first + i / each, i % each);
        const double wanted = ((double)drawn + 0.5) * 0x1p-32 * sum;
        const struct found found = add_part(&of, &part, plane, wanted);
        y[i] = found.winner < 0 ? (float)found.sum : plane[found.winner]; /* there is a NaN */
        if (index != NULL)
            index[i] = (int32_t)found.winner;
    }
}

int ls_cuda_pool_drawn(cudaStream_t stream, const struct ls_cuda_pooling *of,
                       const struct ls_cuda_draws *draws, const struct ls_batch_numbers *numbers,
                       const float *x, float *y, int32_t *index)
{
    const struct ls_cuda_pooling by = *of;
    const struct ls_cuda_draws drawn = *draws;
    const uint64_t n = (uint64_t)(by.samples * by.channels * by.y[0] * by.y[1] * by.y[2]);
    return LS_LAUNCH(pool_drawn, ls_blocks(n), LS_THREADS, stream, by, drawn, numbers, x, y, index);
}

__global__ void pool_expected(struct ls_cuda_pooling of, const float *x, float *y)
{
    const int64_t points = points_of(of.y);
    for (LS_EACH(i, of.samples * of.channels * points)) {
        const struct part part = part_of(&of, (int64_t)i % points);
        const struct found found =
            add_part(&of, &part, x + (int64_t)i / points * points_of(of.x), 0);
        y[i] = found.sum > 0    ? (float)(found.squares / found.sum)
               : found.sum <= 0 ? 0
                                : (float)found.sum;
    }
}

int ls_cuda_pool_expected(cudaStream_t stream, const struct ls_cuda_pooling *of, const float *x,
                          float *y)
{
    const struct ls_cuda_pooling by = *of;
    const uint64_t n = (uint64_t)(by.samples * by.channels * by.y[0] * by.y[1] * by.y[2]);
    return LS_LAUNCH(pool_expected, ls_blocks(n), LS_THREADS, stream, by, x, y);
}
