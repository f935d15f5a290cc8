/* What the threads of a block do together, where each block has a sample: lists in order, sorting,
 * what overlaps nothing better, sums one after the other. All threads of the block take part, and
 * what they do depends on no order among them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_BLOCKS_H
#define LS_OPS_CUDA_BLOCKS_H

#include "ops/cuda/kernels/cuda_c.h"

#define LS_BLOCK       512u /* threads */
#define LS_BLOCK_WARPS 16
#define LS_ALL_LANES   0xffffffffu

/* The loop of a thread of the block over all i below n. */
#define LS_EACH_OF_BLOCK(i, n)                                                                     \
    int64_t i = (int64_t)threadIdx.x;                                                              \
    i < (int64_t)(n);                                                                              \
    i += (int64_t)blockDim.x

/* The sum of all threads' numbers, in all of them. */
__device__ static inline int64_t ls_block_sum(int64_t mine)
{
    __shared__ int64_t sums[LS_BLOCK_WARPS];
    for (int apart = warpSize / 2; apart > 0; apart /= 2)
        mine += __shfl_xor_sync(LS_ALL_LANES, mine, apart);
    if (threadIdx.x % warpSize == 0)
        sums[threadIdx.x / warpSize] = mine;
    __syncthreads();
    int64_t sum = 0;
    for (int w = 0; w < LS_BLOCK_WARPS; w++)
        sum += sums[w];
    __syncthreads();
    return sum;
}

/* Calls take(i, place) for the i below n for which keep(i) holds, with their places among them;
 * returns their number. keep is asked twice, and take changes nothing that it reads. */
template <class Keep, class Take>
__device__ static inline int64_t ls_block_list(int64_t n, Keep keep, Take take)
{
    __shared__ int64_t counts[LS_BLOCK_WARPS];
    const int lane = (int)threadIdx.x % warpSize, warp = (int)threadIdx.x / warpSize;
    const int64_t each = (n + LS_BLOCK - 1) / LS_BLOCK * warpSize; /* of a warp */
    const int64_t begin = warp * each, end = begin + each < n ? begin + each : n;
    int64_t mine = 0, at = 0, all = 0;
    for (int64_t i = begin; i < end; i += warpSize)
        mine += __popc(__ballot_sync(LS_ALL_LANES, i + lane < end && keep(i + lane)));
    if (lane == 0)
        counts[warp] = mine;
    __syncthreads();
    for (int w = 0; w < LS_BLOCK_WARPS; w++) {
        at += w < warp ? counts[w] : 0;
        all += counts[w];
    }
    for (int64_t i = begin; i < end; i += warpSize) {
        const bool kept = i + lane < end && keep(i + lane);
        const unsigned votes = __ballot_sync(LS_ALL_LANES, kept);
        if (kept)
            take(i + lane, at + __popc(votes & ((1u << lane) - 1)));
        at += __popc(votes);
    }
    __syncthreads();
    return all;
}

/* Sorts a list by a total order: bitonic, with all exchanges towards the front, so that what would
 * lie behind the end of the list never moves. */
template <class T, class Before>
__device__ static inline void ls_block_sort(T *list, int64_t n, Before before)
{
    for (int64_t size = 2; size / 2 < n; size *= 2)
        for (int64_t apart = size / 2; apart > 0; apart /= 2) {
            const int64_t pairs = (n + 2 * apart - 1) / (2 * apart) * apart;
            __syncthreads();
            for (LS_EACH_OF_BLOCK(k, pairs)) {
                const int64_t run = k / apart * 2 * apart, in_run = k % apart;
                const int64_t first = run + in_run;
                const int64_t second = apart == size / 2 ? run + size - 1 - in_run : first + apart;
                if (second >= n || !before(list[second], list[first]))
                    continue;
                const T kept = list[first];
                list[first] = list[second];
                list[second] = kept;
            }
        }
    __syncthreads();
}

/* Goes through candidates, the best one first: one that clashes(k, i) with none of those kept,
 * whose numbers are k, is kept; `most` are at most. settle(i, k, kept) says so of each that was
 * looked at; all lanes of the block's first warp call it, and the first lane alone shall write.
 * Returns how many are kept. */
template <class Clashes, class Settle>
__device__ static inline int64_t ls_block_suppress(int64_t count, int64_t most, Clashes clashes,
                                                   Settle settle)
{
    __shared__ int64_t found;
    const int lane = (int)threadIdx.x;
    int64_t kept = 0;
    for (int64_t i = 0; lane < warpSize && i < count && kept < most; i++) {
        bool clash = false;
        for (int64_t k = 0; !clash && k < kept; k += warpSize)
            clash = __any_sync(LS_ALL_LANES, k + lane < kept && clashes(k + lane, i));
        settle(i, kept, !clash);
        kept += !clash;
        __syncwarp();
    }
    if (lane == 0)
        found = kept;
    __syncthreads();
    kept = found;
    __syncthreads();
    return kept;
}

/* sum + term(0) + term(1) and so on, one after the other; the first thread has it. */
template <class Term> __device__ static inline double ls_block_add(int64_t n, double sum, Term term)
{
    __shared__ double piece[LS_BLOCK];
    for (int64_t begin = 0; begin < n; begin += LS_BLOCK) {
        const int64_t mine = begin + threadIdx.x, left = n - begin;
        if (mine < n)
            piece[threadIdx.x] = term(mine);
        __syncthreads();
        for (int64_t k = 0; threadIdx.x == 0 && k < left && k < LS_BLOCK; k++)
            sum += piece[k];
        __syncthreads();
    }
    return sum;
}

#endif
