/* See sort.h: digits of 8 bits, the lowest first. Each block has a part of the items, counts the
 * digits in it, and puts its items behind those of lower digits and of earlier blocks.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/sort.h"

enum { DIGITS = 256, ROUNDS = 8, PART = ROUNDS * (int)LS_THREADS, WARPS = (int)LS_THREADS / 32 };
static_assert(DIGITS == LS_THREADS, "a thread for each digit");

static uint64_t parts_of(const struct ls_cuda_sort *of)
{
    return (of->n + PART - 1) / PART;
}

/* Keys and items twice, and counts [digit, part]. */
size_t ls_cuda_sort_scratch(const struct ls_cuda_sort *of)
{
    return (size_t)(4 * of->n + DIGITS * parts_of(of)) * sizeof(uint32_t);
}

/* An even number of passes: the arrays are the same before and behind them. */
static int passes_of(const struct ls_cuda_sort *of)
{
    return of->keys < UINT64_C(1) << 16 ? 2 : 4;
}

struct ls_cuda_sorted ls_cuda_sorted_in(const struct ls_cuda_sort *of, void *scratch)
{
    struct ls_cuda_sorted sorted = {(uint32_t *)scratch, (uint32_t *)scratch + of->n};
    return sorted;
}

__global__ void count_digits(const uint32_t *key, uint64_t n, int shift, uint32_t *count)
{
    __shared__ unsigned here[DIGITS];
    here[threadIdx.x] = 0;
    __syncthreads();
    const uint64_t first = (uint64_t)blockIdx.x * PART;
    for (unsigned r = 0; r < ROUNDS; r++) {
        const uint64_t i = first + r * LS_THREADS + threadIdx.x;
        if (i < n)
            atomicAdd(&here[key[i] >> shift & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    count[(uint64_t)threadIdx.x * gridDim.x + blockIdx.x] = here[threadIdx.x];
}

/* count[i] becomes the sum of those in front of it. One block. */
__global__ void sum_counts(uint32_t *count, uint64_t n)
{
    __shared__ uint32_t sum[2][LS_THREADS];
    uint32_t before = 0;
    for (uint64_t first = 0; first < n; first += LS_THREADS) {
        const uint64_t i = first + threadIdx.x;
        const uint32_t own = i < n ? count[i] : 0;
        int now = 0;
        sum[0][threadIdx.x] = own;
        __syncthreads();
        for (unsigned apart = 1; apart < LS_THREADS; apart *= 2, now = 1 - now) {
            sum[1 - now][threadIdx.x] =
                sum[now][threadIdx.x] + (threadIdx.x >= apart ? sum[now][threadIdx.x - apart] : 0u);
            __syncthreads();
        }
        if (i < n)
            count[i] = before + sum[now][threadIdx.x] - own;
        before += sum[now][LS_THREADS - 1];
        __syncthreads();
    }
}

/* The lanes of the warp whose digits are equal to this one's. All lanes take part. */
__device__ static unsigned lanes_alike(unsigned digit, bool there)
{
    unsigned alike = __ballot_sync(0xffffffffu, there);
    for (int bit = 0; bit < 8; bit++) {
        const unsigned set = __ballot_sync(0xffffffffu, (int)(digit >> bit & 1));
        alike &= digit >> bit & 1 ? set : ~set;
    }
    return alike;
}

__device__ static unsigned count_bits(unsigned bits)
{
    unsigned n = 0;
    for (; bits != 0; bits &= bits - 1)
        n++;
    return n;
}

__global__ void move_items(const uint32_t *key, const uint32_t *item, uint64_t n, int shift,
                           const uint32_t *count, uint32_t *key_to, uint32_t *item_to)
{
    __shared__ uint32_t next[DIGITS], of_warp[WARPS][DIGITS];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    next[threadIdx.x] = count[(uint64_t)threadIdx.x * gridDim.x + blockIdx.x];
    for (unsigned r = 0; r < ROUNDS; r++) {
        const uint64_t i = (uint64_t)blockIdx.x * PART + r * LS_THREADS + threadIdx.x;
        const bool there = i < n;
        const uint32_t own = there ? key[i] : 0;
        const unsigned digit = own >> shift & (DIGITS - 1);
        for (int w = 0; w < WARPS; w++)
            of_warp[w][threadIdx.x] = 0;
        __syncthreads();
        const unsigned alike = lanes_alike(digit, there);
        const unsigned rank = count_bits(alike & ((1u << lane) - 1));
        if (there && rank == 0)
            of_warp[warp][digit] = count_bits(alike);
        __syncthreads();
        uint64_t to = there ? next[digit] + rank : 0;
        for (unsigned w = 0; there && w < warp; w++)
            to += of_warp[w][digit];
        if (there) {
            key_to[to] = own;
            item_to[to] = item[i];
        }
        __syncthreads();
        for (int w = 0; w < WARPS; w++)
            next[threadIdx.x] += of_warp[w][threadIdx.x];
        __syncthreads();
    }
}

int ls_cuda_sort_items(cudaStream_t stream, const struct ls_cuda_sort *of, void *scratch)
{
    const uint64_t n = of->n, counts = DIGITS * parts_of(of);
    const unsigned parts = (unsigned)parts_of(of);
    uint32_t *key = (uint32_t *)scratch, *item = key + n, *key_to = item + n, *item_to = key_to + n;
    uint32_t *const count = item_to + n;
    int code = 0;
    for (int pass = 0; n > 0 && pass < passes_of(of) && code == 0; pass++) {
        const int shift = 8 * pass;
        uint32_t *const from = key, *const of_from = item, *const to = key_to,
                        *const of_to = item_to;
        code = LS_LAUNCH(count_digits, parts, LS_THREADS, stream, (const uint32_t *)from, n, shift,
                         count);
        if (code == 0)
            code = LS_LAUNCH(sum_counts, 1u, LS_THREADS, stream, count, counts);
        if (code == 0)
            code =
                LS_LAUNCH(move_items, parts, LS_THREADS, stream, (const uint32_t *)from,
                          (const uint32_t *)of_from, n, shift, (const uint32_t *)count, to, of_to);
        key = to, item = of_to, key_to = from, item_to = of_from;
    }
    return code;
}
