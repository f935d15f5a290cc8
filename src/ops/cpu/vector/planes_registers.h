/* For planes.c and planes_weights.c: how many registers a piece of a product takes, parts of
 * registers, and the rows of x that windows meet.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_PLANES_REGISTERS_H
#define LS_OPS_CPU_VECTOR_PLANES_REGISTERS_H

#include "ops/cpu/vector/planes.h"
#include "ops/cpu/vector/registers.h"

/* Rows of a piece, each with that many registers, fill the registers there are. */
enum { PIECE_ROWS = 6, PIECE_VECTORS = WIDTH == 8 ? 2 : 4 };

/* Lanes [low, high) of a register, and what they take from memory, with zeros in the others. */
#if LS_ISA_IS(AVX512)

#define RANGE                   __mmask16
#define LOAD_RANGE(from, range) _mm512_maskz_loadu_ps(range, from)

static inline RANGE make_range(int64_t low, int64_t high)
{
    const uint32_t below = low >= WIDTH ? 0xffff : low > 0 ? (1U << low) - 1 : 0;
    const uint32_t within = high >= WIDTH ? 0xffff : high > 0 ? (1U << high) - 1 : 0;
    return (RANGE)(within & ~below);
}

#elif LS_ISA_IS(AVX2)

#define RANGE                   __m256i
#define LOAD_RANGE(from, range) _mm256_maskload_ps(from, range)

FUSED static inline RANGE make_range(int64_t low, int64_t high)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int first = low < 0 ? 0 : low < WIDTH ? (int)low : WIDTH;
    const int last = high < 0 ? 0 : high < WIDTH ? (int)high : WIDTH;
    const __m256i above = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(first - 1));
    const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(last), lane);
    return _mm256_and_si256(above, within);
}

#else

#define RANGE                   bool
#define LOAD_RANGE(from, range) ((range) ? *(from) : 0)

static inline RANGE make_range(int64_t low, int64_t high)
{
    return low <= 0 && high > 0;
}

#endif

/* Whole pieces of at most `most`, as even as possible: the size of piece `i` of `count`. */
static inline int64_t piece_count(int64_t all, int64_t most)
{
    return (all + most - 1) / most;
}

static inline int64_t piece_size(int64_t all, int64_t count, int64_t i)
{
    return all / count + (i < all % count ? 1 : 0);
}

/* The columns of a row of u, x0 + l for lane l: which of them come from x. */
static inline int64_t first_column(const struct ls_planes *planes, int64_t column)
{
    return planes->pad[1] - column * planes->dilation[1];
}

/* How many of the numbers from `at` on a register takes. */
static inline size_t count_lanes(int64_t all, int64_t at)
{
    return all - at < WIDTH ? (size_t)(all - at) : WIDTH;
}

/* Some columns of all rows of u for one plane of x and one column of the window. */
FUSED static inline void unroll_columns(const struct ls_planes *planes, const float *x,
                                        int64_t first, int64_t at, float *u)
{
    const int64_t width = planes->y[1], before = planes->pad[0];
    const size_t some = count_lanes(width, at);
    const RANGE range = make_range(first - at, planes->x[1] + first - at);
    (void)some; /* of registers of one float */
    for (int64_t r = 0; r < planes->rows; r++, u += width) {
        const int64_t row = r - before;
        const bool inside = row >= 0 && row < planes->x[0];
        const float *from = x + (inside ? row * planes->x[1] : 0) + at - first;
        STORE_SOME(u, some, inside ? LOAD_RANGE(from, range) : ZERO());
    }
}

/* u of a sample */
FUSED static inline void unroll(const struct ls_planes *planes, const float *x, float *u)
{
    const int64_t width = planes->y[1];
    for (int64_t c = 0; c < planes->in; c++, x += planes->x[0] * planes->x[1])
        for (int64_t j = 0; j < planes->kernel[1]; j++, u += planes->rows * width)
            for (int64_t at = 0; at < width; at += WIDTH)
                unroll_columns(planes, x, first_column(planes, j), at, u + at);
}

#endif
