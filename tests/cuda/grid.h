/* CUDA C on the CPU, for tests: kernels as C++, run block by block.
 *
 * Each thread of a block is a coroutine. A launch resumes them in an order that a seed chooses,
 * from one barrier to the next, so that a barrier that is missing shows in the numbers; a barrier
 * that some threads of a block or warp never reach, or that they reach in another line, ends the
 * test program with the kernel's name, and so does a grid that no card takes.
 * Blocks run one after the other, in an order of the seed, too.
 *
 * What is here is what the kernels use: built-in variables, __shared__ (static or of the launch),
 * __syncthreads, shuffles, votes, atomics. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_CUDA_GRID_H
#define LS_TESTS_CUDA_GRID_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#include "cuda/grid_run.h"

#define __global__ static
#define __device__
#define __host__
#define __shared__      static
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

/* Called by kernels, with the line that calls: that of the caller of what stands in for CUDA's. A
 * card's threads meet where they run the same instruction. */
void ls_grid_barrier(int line);
/* Waits until all lanes of `mask` have put a value, which is 64 bits, and gives that of `lane`. */
uint64_t ls_grid_exchange(unsigned mask, uint64_t value, int lane, int line);
/* The same, and gives those of all lanes, 0 of others. */
void ls_grid_gather(unsigned mask, uint64_t value, uint64_t values[warpSize], int line);

/* ---- What kernels call ---- */

static inline void __syncthreads(int line = __builtin_LINE())
{
    ls_grid_barrier(line);
}

static inline int ls_grid_lane()
{
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return (int)(thread % warpSize);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE())
{
    ls_grid_exchange(mask, 0, ls_grid_lane(), line);
}

template <typename T> static inline T ls_grid_shuffle(unsigned mask, T value, int lane, int line)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves 64 bits at most");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = ls_grid_exchange(mask, bits, lane, line);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int line = __builtin_LINE())
{
    return ls_grid_shuffle(mask, value, lane % warpSize, line);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int with, int line = __builtin_LINE())
{
    return ls_grid_shuffle(mask, value, ls_grid_lane() ^ with, line);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int line = __builtin_LINE())
{
    int lane = ls_grid_lane() + (int)by;
    return ls_grid_shuffle(mask, value, lane < warpSize ? lane : ls_grid_lane(), line);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE())
{
    uint64_t values[warpSize];
    unsigned votes = 0;
    ls_grid_gather(mask, predicate != 0, values, line);
    for (int i = 0; i < warpSize; i++)
        votes |= (unsigned)values[i] << i;
    return votes;
}

static inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE())
{
    return __ballot_sync(mask, predicate, line) == mask;
}

static inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE())
{
    return __ballot_sync(mask, predicate, line) != 0;
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* One thread runs at a time. */
template <typename T> static inline T atomicAdd(T *at, T value)
{
    static_assert(!std::is_floating_point<T>::value, "sums of floats have an order");
    T before = *at;
    *at = before + value;
    return before;
}

template <typename T> static inline T atomicMax(T *at, T value)
{
    T before = *at;
    *at = std::max(before, value);
    return before;
}

template <typename T> static inline T atomicMin(T *at, T value)
{
    T before = *at;
    *at = std::min(before, value);
    return before;
}

template <typename T> static inline T atomicExch(T *at, T value)
{
    T before = *at;
    *at = value;
    return before;
}

#define __fadd_rn(a, b) ((a) + (b))
#define __fmul_rn(a, b) ((a) * (b))

using std::max;
using std::min;

/* ---- Launches ---- */

typedef struct CUstream_st *cudaStream_t;

static inline ls_grid_size ls_grid_sized(dim3 size)
{
    return {size.x, size.y, size.z};
}

template <typename T> struct ls_grid_same {
    typedef T type;
};

/* Arguments are what they are when the launch is given, in the kernel's types. They lie one behind
 * the other, in 4 KiB at most. The fake is shown a copy without what lies in gaps between members,
 * as a part of an old address may (gcc 12 clears others, too, behind an array of structures). */
template <typename... P>
static inline int ls_grid_give(const char *name, dim3 grid, dim3 block, cudaStream_t stream,
                               void (*kernel)(P...), typename ls_grid_same<P>::type... arguments)
{
    static_assert(sizeof...(P) > 0, "a kernel has arguments");
    static_assert((0 + ... + ((sizeof(P) + 7) / 8 * 8)) <= 4096,
                  "a kernel has more than 4 KiB of arguments");
    const std::tuple<P...> given(arguments...);
    std::tuple<P...> shown(given);
    size_t bytes = 0; /* nothing, where the compiler cannot clear gaps */
#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&shown);
    bytes = sizeof shown;
#endif
#endif
    return ls_grid_launch({name, ls_grid_sized(grid), ls_grid_sized(block), &shown, bytes}, stream,
                          [=]() { std::apply(kernel, given); });
}

#define LS_LAUNCH(kernel, grid, block, stream, ...)                                                \
    ls_grid_give(#kernel, grid, block, stream, kernel, __VA_ARGS__)

#endif
