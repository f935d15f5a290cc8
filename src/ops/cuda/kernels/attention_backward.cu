/* The backward pass of attention. See attention.h. A block of threads has 64 rows of one gradient:
 * of q, and goes over the blocks of keys; or of k or v, and goes over the heads that share them and
 * their blocks of queries. Weights are computed anew from the log of their sum.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/attention_tile.h"

#include "ops/cuda/kernels/attention_prepare.h"

/* dot[n, head, i]: the sum of dy y, in lanes. */
__global__ void find_dots(struct ls_cuda_attention_back by, float *dot)
{
    const struct ls_attention_attr &attr = by.of.attr;
    const struct ls_lane_group at = ls_find_lane_group();
    const uint64_t rows = (uint64_t)(by.of.batch * attr.heads * attr.queries);
    for (uint64_t r = 0; r < ls_lane_rounds(rows, at.groups); r++) {
        const uint64_t row = r * at.groups + at.group;
        const bool there = row < rows;
        const int64_t i = there ? (int64_t)row % attr.queries : 0;
        const int64_t head = there ? (int64_t)row / attr.queries % attr.heads : 0;
        const int64_t n = there ? (int64_t)row / attr.queries / attr.heads : 0;
        const struct head_rows y = rows_of_head(by.y, n, head, attr.bf16);
        const struct head_rows dy = rows_of_head(by.dy, n, head, attr.bf16);
        float mine = 0;
        for (int64_t d = (int64_t)at.lane; there && d < attr.value_depth; d += LS_CUDA_LANES)
            mine += dy(0, i, d) * y(0, i, d);
        mine = ls_fold_float_lanes(mine);
        if (there && at.lane == 0)
            dot[row] = mine;
    }
}

/* Of a tile what its pairs weigh, after dropout (of v), or the gradients of their scores. */
__device__ static void find_slopes(const struct ls_cuda_attention_back &by,
                                   const struct tile_place &at, const float *dot, bool of_values,
                                   struct shared_tiles &shared, ls_tile_numbers s)
{
    const struct ls_cuda_attention &of = by.of;
    const struct ls_attention_attr &attr = of.attr;
    const struct ls_tile_size size = {attr.queries, attr.keys, attr.value_depth, 1};
    const struct ls_tile_thread here = ls_tile_here();
    ls_tile_numbers dp;
    find_scores(of, attr, at, shared, s);
    ls_tile_clear(dp);
    if (!of_values) {
        const struct head_rows dy = rows_of_head(by.dy, at.n, at.head, attr.bf16);
        const struct head_rows v =
            rows_of_head(of.in[LS_CUDA_V], at.n, at.head / (attr.heads / attr.kv_heads), attr.bf16);
        ls_tile_add_product(dy, v, 0, at.i, at.j, size, shared.left, shared.right, dp);
    }
    LS_UNROLL
    for (int a = 0; a < LS_TILE_PART; a++)
        LS_UNROLL
    for (int b = 0; b < LS_TILE_PART; b++) {
        const int64_t i = at.i + here.line + a * LS_TILE_SIDE;
        const int64_t j = at.j + here.column + b * LS_TILE_SIDE;
        const int64_t row = (at.n * attr.heads + at.head) * attr.queries + i;
        if (i >= attr.queries || j >= attr.keys) {
            s[a][b] = 0;
            continue;
        }
        const float p = ls_attention_exp(s[a][b] - by.log_sum[row]);
        s[a][b] = of_values ? drop(of, attr, at, i, j, p)
                            : p * (drop(of, attr, at, i, j, dp[a][b] + 0.0F) - dot[row]);
    }
}

/* As an operand by term: terms are keys, or queries. */
__device__ static void put_slopes(const struct ls_attention_attr &attr, const ls_tile_numbers s,
                                  bool keys, struct shared_tiles &shared)
{
    const struct ls_tile_thread here = ls_tile_here();
    LS_UNROLL
    for (int a = 0; a < LS_TILE_PART; a++)
        LS_UNROLL
    for (int b = 0; b < LS_TILE_PART; b++) {
        const int i = here.line + a * LS_TILE_SIDE, j = here.column + b * LS_TILE_SIDE;
        const int term = keys ? j : i, line = keys ? i : j;
        shared.weights[term / LS_TILE_TERMS][term % LS_TILE_TERMS][line] =
            attr.bf16 ? rounded_to_bf16(s[a][b]) : s[a][b];
    }
}

/* The columns of the gradient that a block of threads has. */
template <int CHUNKS> struct columns {
    int64_t first, all;
    ls_tile_numbers sum[CHUNKS];
};

template <int CHUNKS>
__device__ static void add_columns(const struct head_columns &from, int64_t first, int64_t terms,
                                   int left_out, struct shared_tiles &shared,
                                   struct columns<CHUNKS> &to)
{
    LS_UNROLL
    for (int c = 0; c < CHUNKS; c++)
        add_weighted(from, to.first + c * LS_TILE, to.all, first, terms, left_out, shared,
                     to.sum[c]);
}

template <int CHUNKS>
__device__ static void put_columns(const struct ls_cuda_rows &rows, int64_t n, int64_t head,
                                   int64_t line, int64_t lines, float scale, bool scaled,
                                   const struct columns<CHUNKS> &from)
{
    const struct ls_tile_thread here = ls_tile_here();
    LS_UNROLL
    for (int c = 0; c < CHUNKS; c++)
        LS_UNROLL
    for (int a = 0; a < LS_TILE_PART; a++)
        LS_UNROLL
    for (int b = 0; b < LS_TILE_PART; b++) {
        const int64_t l = line + here.line + a * LS_TILE_SIDE;
        const int64_t d = from.first + c * LS_TILE + here.column + b * LS_TILE_SIDE;
        const float x = from.sum[c][a][b];
        if (l < lines && d < from.all)
            put_at(rows, n * rows.batch + l * rows.pitch + head * rows.head + d,
                   scaled ? x * scale : x);
    }
}

template <int CHUNKS> __device__ static void begin_columns(int64_t all, struct columns<CHUNKS> &to)
{
    const int64_t groups = (all + CHUNKS * LS_TILE - 1) / (CHUNKS * LS_TILE);
    to.first = (int64_t)blockIdx.x % groups * CHUNKS * LS_TILE;
    to.all = all;
    LS_UNROLL
    for (int c = 0; c < CHUNKS; c++)
        ls_tile_clear(to.sum[c]);
}

/* Blocks: columns, then blocks of queries from the last one on, heads, rows. */
template <int CHUNKS>
__global__ void back_to_queries(struct ls_cuda_attention_back by,
                                const struct ls_attention_range *blocks, const float *dot)
{
    __shared__ struct shared_tiles shared;
    const struct ls_attention_attr &attr = by.of.attr;
    const int64_t groups = (attr.depth + CHUNKS * LS_TILE - 1) / (CHUNKS * LS_TILE);
    const int64_t query_blocks = (attr.queries + LS_TILE - 1) / LS_TILE;
    const int64_t item = (int64_t)blockIdx.x / groups, head = item / query_blocks;
    const int64_t block = query_blocks - 1 - item % query_blocks;
    struct tile_place at = {head / attr.heads, head % attr.heads, block * LS_TILE, 0};
    const struct head_columns k = columns_of_head(
        by.of.in[LS_CUDA_K], at.n, at.head / (attr.heads / attr.kv_heads), attr.bf16);
    struct columns<CHUNKS> dq;
    ls_tile_numbers s;
    begin_columns(attr.depth, dq);
    for (int64_t b = blocks[block].begin; b < blocks[block].end; b++) {
        at.j = b * LS_TILE;
        find_slopes(by, at, dot, false, shared, s);
        put_slopes(attr, s, true, shared);
        add_columns(k, at.j, attr.keys, ls_attention_half_hidden(&attr, at.i, at.j) ? 1 : -1,
                    shared, dq);
    }
    put_columns(by.out[LS_CUDA_Q], at.n, at.head, at.i, attr.queries, attr.scale, true, dq);
}

/* Blocks: columns, then blocks of keys, heads of keys, rows. */
template <int CHUNKS>
__global__ void back_to_keys(struct ls_cuda_attention_back by, bool of_values,
                             const struct ls_attention_range *blocks, const float *dot)
{
    __shared__ struct shared_tiles shared;
    const struct ls_attention_attr &attr = by.of.attr;
    const int64_t depth = of_values ? attr.value_depth : attr.depth;
    const int64_t groups = (depth + CHUNKS * LS_TILE - 1) / (CHUNKS * LS_TILE);
    const int64_t key_blocks = (attr.keys + LS_TILE - 1) / LS_TILE;
    const int64_t query_blocks = (attr.queries + LS_TILE - 1) / LS_TILE;
    const int64_t item = (int64_t)blockIdx.x / groups, block = item % key_blocks;
    const int64_t kv_head = item / key_blocks % attr.kv_heads,
                  shared_by = attr.heads / attr.kv_heads;
    struct tile_place at = {item / key_blocks / attr.kv_heads, 0, 0, block * LS_TILE};
    struct columns<CHUNKS> sums;
    ls_tile_numbers s;
    begin_columns(depth, sums);
    for (int64_t h = 0; h < shared_by; h++) {
        at.head = kv_head * shared_by + h;
        const struct head_columns from =
            columns_of_head(of_values ? by.dy : by.of.in[LS_CUDA_Q], at.n, at.head, attr.bf16);
        for (int64_t b = 0; b < query_blocks; b++) {
            if (block < blocks[b].begin || block >= blocks[b].end)
                continue;
            at.i = b * LS_TILE;
            find_slopes(by, at, dot, of_values, shared, s);
            put_slopes(attr, s, false, shared);
            add_columns(from, at.i, attr.queries,
                        ls_attention_half_hidden(&attr, at.i, at.j) ? 0 : -1, shared, sums);
        }
    }
    put_columns(by.out[of_values ? LS_CUDA_V : LS_CUDA_K], at.n, kv_head, at.j, attr.keys,
                attr.scale, !of_values, sums);
}

/* How many blocks of threads there are for gradients of so many rows, heads and columns. */
static unsigned blocks_for(const struct ls_cuda_attention *of, int64_t rows, int64_t heads,
                           int64_t depth, int chunks)
{
    return (unsigned)(of->batch * heads * ((rows + LS_TILE - 1) / LS_TILE) *
                      ((depth + chunks * LS_TILE - 1) / (chunks * LS_TILE)));
}

static int give_queries(cudaStream_t stream, const struct ls_cuda_attention_back *of,
                        const struct ls_cuda_prepared *prepared)
{
    const struct ls_cuda_attention_back by = *of;
    const struct ls_attention_attr *attr = &by.of.attr;
    const struct ls_attention_range *const blocks = prepared->blocks;
    const float *const dot = prepared->dot;
    const int chunks = attr->depth > LS_TILE ? 2 : 1;
    const unsigned items = blocks_for(&by.of, attr->queries, attr->heads, attr->depth, chunks);
    if (chunks == 1)
        return LS_LAUNCH(back_to_queries<1>, items, (unsigned)LS_TILE_THREADS, stream, by, blocks,
                         dot);
    return LS_LAUNCH(back_to_queries<2>, items, (unsigned)LS_TILE_THREADS, stream, by, blocks, dot);
}

static int give_keys(cudaStream_t stream, const struct ls_cuda_attention_back *of, bool of_values,
                     const struct ls_cuda_prepared *prepared)
{
    const struct ls_cuda_attention_back by = *of;
    const struct ls_attention_attr *attr = &by.of.attr;
    const struct ls_attention_range *const blocks = prepared->blocks;
    const float *const dot = prepared->dot;
    const int64_t depth = of_values ? attr->value_depth : attr->depth;
    const int chunks = depth > LS_TILE ? 2 : 1;
    const unsigned items = blocks_for(&by.of, attr->keys, attr->kv_heads, depth, chunks);
    if (chunks == 1)
        return LS_LAUNCH(back_to_keys<1>, items, (unsigned)LS_TILE_THREADS, stream, by, of_values,
                         blocks, dot);
    return LS_LAUNCH(back_to_keys<2>, items, (unsigned)LS_TILE_THREADS, stream, by, of_values,
                     blocks, dot);
}

int ls_cuda_attend_backward(cudaStream_t stream, const struct ls_cuda_attention_back *of)
{
    struct ls_cuda_attention_back by = *of;
    struct ls_cuda_prepared prepared;
    int code = ls_cuda_prepare_attention(stream, &by.of, &prepared);
    const struct ls_cuda_attention_back all = by;
    float *const dot = prepared.dot;
    if (code == 0)
        code = LS_LAUNCH(
            find_dots,
            ls_lane_blocks((uint64_t)(by.of.batch * by.of.attr.heads * by.of.attr.queries)),
            LS_THREADS, stream, all, dot);
    for (int which = LS_CUDA_Q; which <= LS_CUDA_V && code == 0; which++) {
        if (by.out[which].data == NULL)
            continue;
        const struct ls_cuda_rows to = by.out[which];
        const bool turned = which != LS_CUDA_V && by.of.attr.rotary.dims > 0;
        if (turned)
            by.out[which] = ls_cuda_slope_rows(&by.of, which, &prepared);
        code = which == LS_CUDA_Q ? give_queries(stream, &by, &prepared)
                                  : give_keys(stream, &by, which == LS_CUDA_V, &prepared);
        if (turned && code == 0)
            code = ls_cuda_turn_back(stream, &by.of, which, &prepared, &to);
    }
    return code;
}
