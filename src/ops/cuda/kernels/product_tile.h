/* Products of matrices tile by tile, for kernels: the sum of device/product_sum.h. A block of
 * threads computes a tile of LS_TILE x LS_TILE results, a thread LS_TILE_PART x LS_TILE_PART of
 * them; LS_TILE_TERMS terms of both operands at a time lie in shared memory, which is one block of
 * the declared sum.
 *
 * An operand is a function object: operand(group, line, term). What finishes a result is one, too:
 * out(group, line, column, sum). SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_PRODUCT_TILE_H
#define LS_OPS_CUDA_PRODUCT_TILE_H

#include "ops/cuda/kernels/cuda_c.h"

namespace
{

constexpr int LS_TILE = 64, LS_TILE_PART = 4, LS_TILE_SIDE = LS_TILE / LS_TILE_PART;
constexpr int LS_TILE_TERMS = 32, LS_TILE_THREADS = LS_TILE_SIDE * LS_TILE_SIDE;
constexpr int LS_TILE_GROUPS_MAX = 65535; /* of a grid; a block goes on to others behind them */
static_assert(LS_TILE_THREADS == 256, "a thread for each part of a tile");

/* Terms of an operand, by line; rows are one longer, so that threads write to different banks. */
typedef float ls_tile_terms[LS_TILE_TERMS][LS_TILE + 1];

/* What a thread holds of a tile: lines and columns LS_TILE_SIDE apart, from these on. */
struct ls_tile_thread {
    int line, column;
};

__device__ inline struct ls_tile_thread ls_tile_here()
{
    struct ls_tile_thread at;
    at.line = (int)threadIdx.x / LS_TILE_SIDE;
    at.column = (int)threadIdx.x % LS_TILE_SIDE;
    return at;
}

typedef float ls_tile_numbers[LS_TILE_PART][LS_TILE_PART];

__device__ inline void ls_tile_clear(ls_tile_numbers sum)
{
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++)
        LS_UNROLL
    for (int j = 0; j < LS_TILE_PART; j++)
        sum[i][j] = 0;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* A term of all results of a thread. */
__device__ inline void ls_tile_add_term(ls_tile_numbers chain, const float *a, const float *b)
{
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++)
        LS_UNROLL
    for (int j = 0; j < LS_TILE_PART; j++)
        chain[i][j] = fmaf(a[i * LS_TILE_SIDE], b[j * LS_TILE_SIDE], chain[i][j]);
}

/* A block of terms: two chains, whose sum is added. Zeros behind the end change no sum. */
__device__ inline void ls_tile_add_block(ls_tile_numbers sum, const ls_tile_terms a,
                                         const ls_tile_terms b)
{
    const struct ls_tile_thread at = ls_tile_here();
    ls_tile_numbers even, odd;
    ls_tile_clear(even);
    ls_tile_clear(odd);
    for (int t = 0; t < LS_TILE_TERMS; t += 2) {
        ls_tile_add_term(even, a[t] + at.line, b[t] + at.column);
        ls_tile_add_term(odd, a[t + 1] + at.line, b[t + 1] + at.column);
    }
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++)
        LS_UNROLL
    for (int j = 0; j < LS_TILE_PART; j++) {
        const float both = even[i][j] + odd[i][j];
        sum[i][j] = sum[i][j] + both;
    }
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* An operand as one group has it, for those that have more to say of a group than of a number. */
template <class Operand>
__device__ inline const Operand &ls_tile_group(const Operand &operand, int64_t)
{
    return operand;
}

/* Whether the terms of a line follow each other in memory, so that threads read them side by side.
 */
template <class Operand> __device__ inline bool ls_tile_by_line(const Operand &)
{
    return false;
}

/* LS_TILE_TERMS terms from `first` on of the LS_TILE lines from `line` on; zeros behind the ends.
 */
template <class Operand>
__device__ inline void ls_tile_load(const Operand &from, int64_t group, int64_t line, int64_t lines,
                                    int64_t first, int64_t terms, ls_tile_terms to)
{
    const bool by_line = ls_tile_by_line(from);
    for (int i = (int)threadIdx.x; i < LS_TILE * LS_TILE_TERMS; i += LS_TILE_THREADS) {
        const int l = by_line ? i / LS_TILE_TERMS : i % LS_TILE;
        const int t = by_line ? i % LS_TILE_TERMS : i / LS_TILE;
        to[t][l] = line + l < lines && first + t < terms ? from(group, line + l, first + t) : 0;
    }
}

struct ls_tile_size {
    int64_t lines, columns, terms, groups;
};

/* Adds all terms of the tile at (line, column) to the sums of a thread. `left` and `right` are
 * shared memory, which may be used again at once. */
template <class A, class B>
__device__ inline void ls_tile_add_product(const A &a, const B &b, int64_t group, int64_t line,
                                           int64_t column, const struct ls_tile_size &of,
                                           ls_tile_terms left, ls_tile_terms right,
                                           ls_tile_numbers sum)
{
    for (int64_t first = 0; first < of.terms; first += LS_TILE_TERMS) {
        ls_tile_load(a, group, line, of.lines, first, of.terms, left);
        ls_tile_load(b, group, column, of.columns, first, of.terms, right);
        __syncthreads();
        ls_tile_add_block(sum, left, right);
        __syncthreads();
    }
}

/* Hands the results of a thread to `out`. */
template <class Out>
__device__ inline void ls_tile_finish(const Out &out, int64_t group, int64_t line, int64_t column,
                                      const struct ls_tile_size &of, const ls_tile_numbers sum)
{
    const struct ls_tile_thread at = ls_tile_here();
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++)
        LS_UNROLL
    for (int j = 0; j < LS_TILE_PART; j++) {
        const int64_t l = line + at.line + i * LS_TILE_SIDE;
        const int64_t c = column + at.column + j * LS_TILE_SIDE;
        if (l < of.lines && c < of.columns)
            out(group, l, c, sum[i][j] + 0.0F);
    }
}

/* ---- Whole products -------------------------------------------------------------------------- */

/* How many tiles a number of lines or columns makes. */
__host__ __device__ inline int64_t ls_tile_count(int64_t lines)
{
    return (lines + LS_TILE - 1) / LS_TILE;
}

/* The tile of a block: along a grid's first axis, which alone may be long, tiles of a column follow
 * each other. */
struct ls_tile_place {
    int64_t line, column;
};

__device__ inline struct ls_tile_place ls_tile_of_block(const struct ls_tile_size &of)
{
    const int64_t down = ls_tile_count(of.lines);
    struct ls_tile_place at;
    at.line = (int64_t)blockIdx.x % down * LS_TILE;
    at.column = (int64_t)blockIdx.x / down * LS_TILE;
    return at;
}

template <class A, class B, class Out>
__global__ void ls_tile_multiply(A a, B b, Out out, struct ls_tile_size of)
{
    __shared__ ls_tile_terms left, right;
    const struct ls_tile_place at = ls_tile_of_block(of);
    for (int64_t group = blockIdx.z; group < of.groups; group += gridDim.z) {
        const auto &a_of = ls_tile_group(a, group);
        const auto &b_of = ls_tile_group(b, group);
        ls_tile_numbers sum;
        ls_tile_clear(sum);
        ls_tile_add_product(a_of, b_of, group, at.line, at.column, of, left, right, sum);
        ls_tile_finish(out, group, at.line, at.column, of, sum);
    }
}

/* Blocks for tiles of lines and columns, for each group. */
inline dim3 ls_tile_grid(int64_t lines, int64_t columns, int64_t groups)
{
    return dim3((unsigned)(ls_tile_count(lines) * ls_tile_count(columns)), 1,
                (unsigned)(groups < LS_TILE_GROUPS_MAX ? groups : LS_TILE_GROUPS_MAX));
}

template <class A, class B, class Out>
int ls_tile_launch(cudaStream_t stream, const A &a, const B &b, const Out &out,
                   const struct ls_tile_size &of)
{
    const A left = a;
    const B right = b;
    const Out to = out;
    const struct ls_tile_size all = of;
    if (of.lines <= 0 || of.columns <= 0 || of.groups <= 0)
        return 0;
    return LS_LAUNCH((ls_tile_multiply<A, B, Out>), ls_tile_grid(of.lines, of.columns, of.groups),
                     dim3(LS_TILE_THREADS), stream, left, right, to, all);
}

} // namespace

#endif
