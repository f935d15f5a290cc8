/* Numbers of fp32 and bf16 for kernels: they are read as fp32, and what is written is rounded once,
 * as ir/convert.h says. Arrays that are aligned are read and written 16 bytes at a time, which is
 * what a card's memory does best.
 *
 *     return ls_by_pack(bf16, n, (uintptr_t)x | (uintptr_t)y, [=](auto pack) {
 *         using P = decltype(pack);
 *         return LS_LAUNCH(kernel<P>, ls_blocks(n / P::WIDTH), LS_THREADS, stream, ...);
 *     });
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_NUMBERS_H
#define LS_OPS_CUDA_NUMBERS_H

#include "ir/convert.h"
#include "ops/cuda/kernels/cuda_c.h"

struct ls_bf16 {
    uint16_t bits;
};

__device__ static inline float ls_number(float x)
{
    return x;
}

__device__ static inline float ls_number(ls_bf16 x)
{
    const uint32_t bits = ls_bf16_widen(x.bits);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

__device__ static inline void ls_put(float *at, float number)
{
    *at = number;
}

__device__ static inline void ls_put(ls_bf16 *at, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    at->bits = ls_bf16_narrow(bits);
}

/* The larger of two numbers, the second if none is: as it is, even where it is denormal, which an
 * instruction for maxima may flush to zero. */
__device__ static inline float ls_larger_number(float a, float b)
{
    uint32_t a_bits, b_bits;
    memcpy(&a_bits, &a, sizeof a_bits);
    memcpy(&b_bits, &b, sizeof b_bits);
    a_bits = a > b ? a_bits : b_bits;
    memcpy(&a, &a_bits, sizeof a);
    return a;
}

/* ---- Packs ----------------------------------------------------------------------------------- */

template <typename T, int W> struct alignas(sizeof(T) * W) ls_packed {
    T number[W];
};

/* What a thread takes at a time: W numbers of a type. */
template <typename T, int W> struct ls_pack {
    typedef T number;
    enum { WIDTH = W };
    typedef ls_packed<T, W> packed;
};

/* Numbers [WIDTH i, WIDTH (i + 1)) of an array. */
template <typename P>
__device__ static inline void ls_read(P, const typename P::number *x, uint64_t i, float *to)
{
    const typename P::packed there = ((const typename P::packed *)x)[i];
    for (int k = 0; k < P::WIDTH; k++)
        to[k] = ls_number(there.number[k]);
}

template <typename P>
__device__ static inline void ls_write(P, typename P::number *x, uint64_t i, const float *from)
{
    typename P::packed there;
    for (int k = 0; k < P::WIDTH; k++)
        ls_put(&there.number[k], from[k]);
    ((typename P::packed *)x)[i] = there;
}

/* ---- Choices --------------------------------------------------------------------------------- */

template <typename F> static int ls_by_type(bool bf16, F give)
{
    return bf16 ? give(ls_bf16()) : give(float());
}

/* Packs of 16 bytes where n numbers are a whole number of them and lie so; `addresses`: of all
 * arrays, or-ed. */
template <typename F> static int ls_by_pack(bool bf16, uint64_t n, uintptr_t addresses, F give)
{
    const bool packs = addresses % 16 == 0 && n % (bf16 ? 8 : 4) == 0;
    if (bf16)
        return packs ? give(ls_pack<ls_bf16, 8>()) : give(ls_pack<ls_bf16, 1>());
    return packs ? give(ls_pack<float, 4>()) : give(ls_pack<float, 1>());
}

#endif
