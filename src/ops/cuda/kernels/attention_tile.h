/* Tiles of attention's scores, for its kernels: 64 queries and 64 keys, of which a thread has the
 * rows and columns that product_tile.h says. A row is in 16 threads that follow each other, as the
 * lanes of docs/numerics.md have it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_ATTENTION_TILE_H
#define LS_OPS_CUDA_ATTENTION_TILE_H

#include <math.h>

#include "base/philox.h"
#include "device/attention_range.h"
#include "ops/cuda/kernels/attention.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/numbers.h"
#include "ops/cuda/kernels/product_tile.h"

namespace
{

static_assert((int)LS_TILE == (int)LS_ATTENTION_BLOCK, "a tile is a block of queries and keys");

/* The attributes as they are now: with a cache K is what was written. */
__device__ inline struct ls_attention_attr attributes_now(const struct ls_cuda_attention &of)
{
    struct ls_attention_attr attr = of.attr;
    if (attr.cache > 0) {
        const int64_t keys = of.numbers->position + attr.queries;
        attr.keys = keys < attr.cache ? keys : attr.cache;
    }
    return attr;
}

/* ---- Operands -------------------------------------------------------------------------------- */

__device__ inline float rounded_to_bf16(float x)
{
    ls_bf16 rounded;
    ls_put(&rounded, x);
    return ls_number(rounded);
}

__device__ inline float number_at(const struct ls_cuda_rows &rows, int64_t at, bool round)
{
    if (rows.bf16)
        return ls_number(((const ls_bf16 *)rows.data)[at]);
    const float x = ((const float *)rows.data)[at];
    return round ? rounded_to_bf16(x) : x;
}

__device__ inline void put_at(const struct ls_cuda_rows &rows, int64_t at, float x)
{
    if (rows.bf16)
        ls_put(&((ls_bf16 *)rows.data)[at], x);
    else
        ((float *)rows.data)[at] = x;
}

/* Rows of a head as lines, whose terms are its numbers. */
struct head_rows {
    struct ls_cuda_rows rows;
    int64_t first; /* element 0 of row 0 */
    bool round;
    __device__ float operator()(int64_t, int64_t line, int64_t term) const
    {
        return number_at(rows, first + line * rows.pitch + term, round);
    }
};

__device__ inline bool ls_tile_by_line(const struct head_rows &)
{
    return true;
}

/* The other way: lines are the numbers, terms the rows. */
struct head_columns {
    struct head_rows of;
    __device__ float operator()(int64_t, int64_t line, int64_t term) const
    {
        return of(0, term, line);
    }
};

__device__ inline struct head_rows rows_of_head(const struct ls_cuda_rows &rows, int64_t n,
                                                int64_t head, bool round)
{
    struct head_rows of;
    of.rows = rows;
    of.first = n * rows.batch + head * rows.head;
    of.round = round;
    return of;
}

__device__ inline struct head_columns columns_of_head(const struct ls_cuda_rows &rows, int64_t n,
                                                      int64_t head, bool round)
{
    struct head_columns of;
    of.of = rows_of_head(rows, n, head, round);
    return of;
}

/* ---- Scores ---------------------------------------------------------------------------------- */

/* Shared memory of a block of threads. */
struct shared_tiles {
    ls_tile_terms left, right;
    ls_tile_terms weights[2]; /* the halves of 64 terms */
};

/* A tile: head `head` of row n, from query i and key j on. */
struct tile_place {
    int64_t n, head, i, j;
};

/* Whether a pair counts. */
__device__ inline bool counts(const struct ls_cuda_attention &of,
                              const struct ls_attention_attr &attr, const struct tile_place &at,
                              int64_t i, int64_t j)
{
    const struct ls_attention_range keys = ls_attention_keys_of(&attr, i);
    const int64_t row = at.n * attr.keys;
    if (j < keys.begin || j >= keys.end)
        return false;
    if (of.lengths != NULL && !((float)j < of.lengths[at.n]))
        return false;
    if (of.key_mask != NULL && of.key_mask[row + j] == 0)
        return false;
    return of.segments == NULL || of.segments[row + i] == of.segments[row + j];
}

/* The number of the mask for a pair. */
__device__ inline float mask_of(const struct ls_cuda_attention &of,
                                const struct ls_attention_attr &attr, const struct tile_place &at,
                                int64_t i, int64_t j)
{
    const int64_t sample = of.mask_samples > 1 ? at.n : 0;
    const int64_t head = of.mask_heads > 1 ? at.head : 0;
    return of.mask[((sample * of.mask_heads + head) * attr.queries + i) * attr.keys + j];
}

/* The scores of a tile; -infinity where a pair does not count or is behind the ends. */
__device__ inline void find_scores(const struct ls_cuda_attention &of,
                                   const struct ls_attention_attr &attr,
                                   const struct tile_place &at, struct shared_tiles &shared,
                                   ls_tile_numbers s)
{
    const struct ls_tile_size size = {attr.queries, attr.keys, attr.depth, 1};
    const struct ls_tile_thread here = ls_tile_here();
    const struct head_rows q = rows_of_head(of.in[LS_CUDA_Q], at.n, at.head, attr.bf16);
    const struct head_rows k =
        rows_of_head(of.in[LS_CUDA_K], at.n, at.head / (attr.heads / attr.kv_heads), attr.bf16);
    ls_tile_clear(s);
    ls_tile_add_product(q, k, 0, at.i, at.j, size, shared.left, shared.right, s);
    LS_UNROLL
    for (int a = 0; a < LS_TILE_PART; a++)
        LS_UNROLL
    for (int b = 0; b < LS_TILE_PART; b++) {
        const int64_t i = at.i + here.line + a * LS_TILE_SIDE;
        const int64_t j = at.j + here.column + b * LS_TILE_SIDE;
        const bool there = i < attr.queries && j < attr.keys && counts(of, attr, at, i, j);
        const float mask = there && of.mask != NULL ? mask_of(of, attr, at, i, j) : 1;
        const float score = attr.scale * (s[a][b] + 0.0F);
        s[a][b] = !there || (mask == 0 && !attr.added) ? -INFINITY
                  : attr.added                         ? score + mask
                                                       : score;
    }
}

/* What dropout makes of a number that belongs to a pair. */
__device__ inline float drop(const struct ls_cuda_attention &of,
                             const struct ls_attention_attr &attr, const struct tile_place &at,
                             int64_t i, int64_t j, float x)
{
    const double ratio = (double)attr.dropout.ratio;
    if (ratio == 0)
        return x;
    const uint64_t ordinal = (uint64_t)(of.numbers->first_ordinal + at.n / of.rows);
    const int64_t row = at.n % of.rows * attr.heads + at.head;
    const uint64_t element = (uint64_t)((row * attr.queries + i) * attr.keys + j);
    const uint32_t least = (uint32_t)ceil(ratio * 0x1p32);
    return ls_philox_number(attr.dropout.key, ordinal, element) >= least
               ? x * (float)(1 / (1 - ratio))
               : 0;
}

/* ---- Sums over a tile ------------------------------------------------------------------------ */

/* Adds 64 terms to a tile of 64 columns, from `column` on, of results: the weights in shared memory
 * times what `columns` has of the terms from `first` on. left_out: which half of the terms, 0 or 1,
 * is left out for which half of the lines, the other one; -1: none. */
__device__ inline void add_weighted(const struct head_columns &columns, int64_t column,
                                    int64_t width, int64_t first, int64_t terms, int left_out,
                                    struct shared_tiles &shared, ls_tile_numbers sum)
{
    LS_UNROLL
    for (int half = 0; half < 2; half++) {
        ls_tile_numbers part;
        ls_tile_load(columns, 0, column, width, first + half * LS_ATTENTION_HALF, terms,
                     shared.right);
        __syncthreads();
        LS_UNROLL
        for (int i = 0; i < LS_TILE_PART; i++)
            LS_UNROLL
        for (int j = 0; j < LS_TILE_PART; j++)
            part[i][j] = sum[i][j];
        ls_tile_add_block(part, shared.weights[half], shared.right);
        LS_UNROLL
        for (int i = 0; i < LS_TILE_PART; i++)
            LS_UNROLL
        for (int j = 0; j < LS_TILE_PART; j++)
            sum[i][j] =
                left_out == half && (i < LS_TILE_PART / 2) == (half == 1) ? sum[i][j] : part[i][j];
        __syncthreads();
    }
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++)
        LS_UNROLL
    for (int j = 0; j < LS_TILE_PART; j++)
        sum[i][j] = sum[i][j] + 0.0F;
}

} // namespace

#endif
