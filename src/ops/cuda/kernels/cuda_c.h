/* What a file of kernels includes first: CUDA C of nvcc, or, where tests say so, of
 * tests/cuda/grid.h, which runs grids on the CPU.
 *
 *     LS_LAUNCH(kernel, blocks, threads, stream, arguments...)
 *
 * gives a grid to a stream and is a cudaError_t as an int, 0 where it was taken. LS_UNROLL stands
 * in front of a loop whose index must be known when it is compiled: of arrays in registers;
 * LS_UNROLL_BY(n) in front of one that shall read n numbers before it waits for the first.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_C_H
#define LS_OPS_CUDA_C_H

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define LS_LAUNCH(kernel, blocks, threads, stream, ...)                                            \
    (kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__), (int)cudaGetLastError())
#define LS_PRAGMA(text) _Pragma(#text)
#define LS_UNROLL       LS_PRAGMA(unroll)
#define LS_UNROLL_BY(n) LS_PRAGMA(unroll n)
#else
#include LS_CUDA_STAND_IN
#define LS_UNROLL
#define LS_UNROLL_BY(n)
#endif

#include <stdint.h>

#define LS_THREADS    256u
#define LS_BLOCKS_MAX 4096u

/* Blocks of a grid whose threads take elements LS_THREADS times the number of blocks apart. */
static inline unsigned ls_blocks(uint64_t elements)
{
    uint64_t blocks = (elements + LS_THREADS - 1) / LS_THREADS;
    return blocks < 1 ? 1 : blocks > LS_BLOCKS_MAX ? LS_BLOCKS_MAX : (unsigned)blocks;
}

/* The loop of such a thread over all i below n. */
#define LS_EACH(i, n)                                                                              \
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;                                  \
    i < (uint64_t)(n);                                                                             \
    i += (uint64_t)gridDim.x * blockDim.x

/* The largest of a warp's values, in all of its lanes. All of them take part. */
__device__ static inline uint32_t ls_warp_largest(uint32_t value)
{
    for (int apart = warpSize / 2; apart > 0; apart /= 2) {
        uint32_t other = __shfl_xor_sync(0xffffffffu, value, apart);
        value = other > value ? other : value;
    }
    return value;
}

#endif
