/* See convolution_ends.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include <cstring>

#include "ops/cuda/kernels/convolution_ends.h"

namespace
{

/* ---- Numbers of both types ------------------------------------------------------------------- */

struct bf16 {
    uint16_t bits;
};

__device__ inline float widen(float x)
{
    return x;
}

__device__ inline float widen(bf16 x)
{
    const uint32_t bits = (uint32_t)x.bits << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

__device__ inline void put(float *to, float x)
{
    *to = x;
}

/* To nearest, ties to even, as ir/convert.h has it. */
__device__ inline void put(bf16 *to, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
    to->bits = (uint16_t)(number ? (bits + 0x7fffu + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40u);
}

__global__ void widen_all(const bf16 *from, int64_t n, float *to)
{
    for (LS_EACH(i, n))
        to[i] = widen(from[i]);
}

/* ---- Bias and ReLU --------------------------------------------------------------------------- */

/* Channels are `step` numbers apart. */
template <class T>
__global__ void end_all(struct ls_cuda_ends ends, int64_t n, int64_t step, const float *sums, T *to)
{
    for (LS_EACH(i, n)) {
        float sum = sums[i];
        if (ends.bias != NULL)
            sum += ends.bias[(int64_t)i / step % ends.of.channels];
        put(&to[i], !ends.relu || !(sum < 0) ? sum : ends.slope == 0 ? 0 : ends.slope * sum);
    }
}

/* ---- The gradient of a bias ------------------------------------------------------------------ */

/* A block has COLUMNS x ROWS threads. Positions of a channel, samples times points, are cut into
 * parts, one for a block each, which threads go through ROWS (or THREADS) apart. */
constexpr int COLUMNS = 32, ROWS = 8, THREADS = COLUMNS * ROWS, PART_LEAST = 512, PARTS_MAX = 128;

__host__ __device__ inline int64_t positions_of(const struct ls_cuda_channel_planes &of)
{
    return of.samples * of.points;
}

__host__ __device__ inline int64_t parts_of(const struct ls_cuda_channel_planes &of)
{
    const int64_t parts = (positions_of(of) + PART_LEAST - 1) / PART_LEAST;
    return parts < 1 ? 1 : parts > PARTS_MAX ? PARTS_MAX : parts;
}

/* Positions [*first, *end) of part p. */
__device__ inline void find_part(const struct ls_cuda_channel_planes &of, int64_t p, int64_t *first,
                                 int64_t *end)
{
    const int64_t all = positions_of(of), parts = parts_of(of);
    *first = all * p / parts;
    *end = all * (p + 1) / parts;
}

/* Adds the sums of a block's threads `apart` and more apart, by halves; the first `apart` have
 * them. */
__device__ inline void fold(float *sums, int thread, int apart)
{
    for (int half = THREADS / 2; half >= apart; half /= 2) {
        __syncthreads();
        if (thread < half)
            sums[thread] += sums[thread + half];
    }
}

/* Channels are neighbours: a block takes COLUMNS of them. */
template <class T>
__global__ void sum_last(struct ls_cuda_channel_planes of, const T *dy, float *partial)
{
    __shared__ float sums[THREADS];
    const int thread = (int)threadIdx.x;
    const int64_t c = (int64_t)blockIdx.x * COLUMNS + thread % COLUMNS;
    int64_t first, end;
    find_part(of, blockIdx.y, &first, &end);
    float sum = 0;
    for (int64_t at = first + thread / COLUMNS; at < end && c < of.channels; at += ROWS)
        sum += widen(dy[at * of.channels + c]);
    sums[thread] = sum;
    fold(sums, thread, COLUMNS);
    if (thread < COLUMNS && c < of.channels)
        partial[blockIdx.y * of.channels + c] = sums[thread];
}

/* Points are neighbours: a block takes a channel. */
template <class T>
__global__ void sum_plain(struct ls_cuda_channel_planes of, const T *dy, float *partial)
{
    __shared__ float sums[THREADS];
    const int thread = (int)threadIdx.x;
    const int64_t c = blockIdx.x;
    int64_t first, end;
    find_part(of, blockIdx.y, &first, &end);
    float sum = 0;
    for (int64_t at = first + thread; at < end; at += THREADS)
        sum += widen(dy[(at / of.points * of.channels + c) * of.points + at % of.points]);
    sums[thread] = sum;
    fold(sums, thread, 1);
    if (thread == 0)
        partial[blockIdx.y * of.channels + c] = sums[0];
}

__global__ void add_parts(struct ls_cuda_channel_planes of, const float *partial, float *db)
{
    for (LS_EACH(c, of.channels)) {
        float sum = 0;
        for (int64_t p = 0; p < parts_of(of); p++)
            sum += partial[p * of.channels + (int64_t)c];
        db[c] = sum;
    }
}

template <class T>
int sum_parts(cudaStream_t stream, const struct ls_cuda_channel_planes &of, const T *dy,
              float *partial)
{
    const unsigned parts = (unsigned)parts_of(of);
    if (of.last)
        return LS_LAUNCH((sum_last<T>),
                         dim3((unsigned)((of.channels + COLUMNS - 1) / COLUMNS), parts),
                         dim3(THREADS), stream, of, dy, partial);
    return LS_LAUNCH((sum_plain<T>), dim3((unsigned)of.channels, parts), dim3(THREADS), stream, of,
                     dy, partial);
}

} // namespace

/* ---- For host code --------------------------------------------------------------------------- */

int ls_cuda_widen(cudaStream_t stream, const void *from, int64_t n, float *wide)
{
    if (n <= 0)
        return 0;
    return LS_LAUNCH(widen_all, ls_blocks((uint64_t)n), LS_THREADS, stream, (const bf16 *)from, n,
                     wide);
}

int ls_cuda_end_convolution(cudaStream_t stream, const struct ls_cuda_ends *ends, const float *sums,
                            void *to)
{
    const struct ls_cuda_ends all = *ends;
    const int64_t n = positions_of(all.of) * all.of.channels;
    const int64_t step = all.of.last ? 1 : all.of.points;
    if (n <= 0)
        return 0;
    const unsigned blocks = ls_blocks((uint64_t)n);
    if (all.of.bf16)
        return LS_LAUNCH((end_all<bf16>), blocks, LS_THREADS, stream, all, n, step, sums,
                         (bf16 *)to);
    return LS_LAUNCH((end_all<float>), blocks, LS_THREADS, stream, all, n, step, sums, (float *)to);
}

size_t ls_cuda_bias_partials(const struct ls_cuda_channel_planes *of)
{
    return (size_t)(parts_of(*of) * of->channels);
}

int ls_cuda_bias_gradient(cudaStream_t stream, const struct ls_cuda_channel_planes *of,
                          const void *dy, float *partial, float *db)
{
    const struct ls_cuda_channel_planes all = *of;
    if (all.channels <= 0)
        return 0;
    const int code = all.bf16 ? sum_parts(stream, all, (const bf16 *)dy, partial)
                              : sum_parts(stream, all, (const float *)dy, partial);
    if (code != 0)
        return code;
    return LS_LAUNCH(add_parts, ls_blocks((uint64_t)all.channels), LS_THREADS, stream, all,
                     (const float *)partial, db);
}
