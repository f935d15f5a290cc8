/* Sums in lanes, as portable nets have them (docs/numerics.md, section 18), for kernels.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_LANES_H
#define LS_OPS_CUDA_LANES_H

#include "ops/cuda/kernels/cuda_c.h"

enum { LS_CUDA_LANES = 16 };

/* Lanes are folded by halves: lane l of 16 threads that follow each other has the sum `mine`; the
 * first of them gets the whole. All threads of the warp take part. */
__device__ static inline double ls_fold_lanes(double mine)
{
    for (int apart = LS_CUDA_LANES / 2; apart > 0; apart /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, (unsigned)apart);
    return mine;
}

__device__ static inline float ls_fold_float_lanes(float mine)
{
    for (int apart = LS_CUDA_LANES / 2; apart > 0; apart /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, (unsigned)apart);
    return mine;
}

/* Groups of 16 threads: which one this thread belongs to, its lane there, and how many there are. A
 * grid has as many blocks as make one for each item, and no more than LS_BLOCKS_MAX.
 *
 * Lanes lie side by side, or `across` the block: then the threads of a warp have the same lanes of
 * groups that follow each other, for numbers that lie so. */
struct ls_lane_group {
    uint64_t group, lane, groups;
    bool across;
};

__device__ static inline struct ls_lane_group ls_find_lane_group()
{
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    struct ls_lane_group at;
    at.group = thread / LS_CUDA_LANES;
    at.lane = thread % LS_CUDA_LANES;
    at.groups = (uint64_t)gridDim.x * blockDim.x / LS_CUDA_LANES;
    at.across = false;
    return at;
}

/* In blocks of LS_THREADS, all of which take part in folds. */
__device__ static inline struct ls_lane_group ls_find_lane_group(bool across)
{
    const uint64_t of_block = LS_THREADS / LS_CUDA_LANES;
    struct ls_lane_group at = ls_find_lane_group();
    if (across) {
        at.group = blockIdx.x * of_block + threadIdx.x % of_block;
        at.lane = threadIdx.x / of_block;
        at.across = true;
    }
    return at;
}

/* The sum of a group's lanes, folded by halves, for all of its threads. */
__device__ static inline double ls_fold_for_all(const struct ls_lane_group *at, double mine)
{
    __shared__ double sums[LS_THREADS];
    const unsigned of_block = LS_THREADS / LS_CUDA_LANES;
    if (!at->across) {
        const double sum = ls_fold_lanes(mine);
        return __shfl_sync(0xffffffffu, sum,
                           (int)(threadIdx.x % warpSize / LS_CUDA_LANES * LS_CUDA_LANES));
    }
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned apart = LS_CUDA_LANES / 2; apart > 0; apart /= 2) {
        if (at->lane < apart)
            sums[threadIdx.x] += sums[threadIdx.x + apart * of_block];
        __syncthreads();
    }
    const double sum = sums[threadIdx.x % of_block];
    __syncthreads();
    return sum;
}

/* Rounds of items that groups of a warp take together: all threads of a warp go through as many. */
__device__ static inline uint64_t ls_lane_rounds(uint64_t items, uint64_t groups)
{
    return (items + groups - 1) / groups;
}

static inline unsigned ls_lane_blocks(uint64_t items)
{
    return ls_blocks(items * LS_CUDA_LANES);
}

#endif
