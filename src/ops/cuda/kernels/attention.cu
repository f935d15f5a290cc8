/* Caches of attention, and its forward pass. See attention.h. A block of threads has 64 queries
 * of a head, goes over the blocks of keys that one of them sees, and keeps the largest score, the
 * sum of powers and the sum of values of each query in registers: no matrix of all weights exists.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/attention_tile.h"

#include "device/elementary.h"
#include "ops/cuda/kernels/attention_prepare.h"

/* ---- Caches ---------------------------------------------------------------------------------- */

__global__ void append_rows(struct ls_cuda_attention of, struct ls_cuda_rows from, int64_t numbers,
                            struct ls_cuda_rows cache)
{
    for (LS_EACH(e, of.batch * of.attr.queries * numbers)) {
        const int64_t d = (int64_t)e % numbers, i = (int64_t)e / numbers % of.attr.queries;
        const int64_t n = (int64_t)e / numbers / of.attr.queries;
        const int64_t row = of.numbers->position + i;
        if (row < of.attr.cache)
            put_at(cache, n * cache.batch + row * cache.pitch + d,
                   number_at(from, n * from.batch + i * from.pitch + d, false));
    }
}

int ls_cuda_append_rows(cudaStream_t stream, const struct ls_cuda_attention *of,
                        const struct ls_cuda_rows *from, int64_t depth,
                        const struct ls_cuda_rows *cache)
{
    const struct ls_cuda_attention by = *of;
    const struct ls_cuda_rows source = *from, target = *cache;
    const int64_t numbers = depth * by.attr.kv_heads;
    return LS_LAUNCH(append_rows, ls_blocks((uint64_t)(by.batch * by.attr.queries * numbers)),
                     LS_THREADS, stream, by, source, numbers, target);
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* What a thread knows of its queries; all threads of a row know the same. */
struct seen {
    float largest[LS_TILE_PART], sum[LS_TILE_PART];
};

/* From the scores of a tile to powers; what was seen before is multiplied by `factor`. */
__device__ static void add_scores(ls_tile_numbers s, struct seen *seen, float *factor)
{
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++) {
        float largest = seen->largest[i], sum = 0;
        LS_UNROLL
        for (int j = 0; j < LS_TILE_PART; j++)
            largest = s[i][j] > largest ? s[i][j] : largest;
        for (int apart = LS_CUDA_LANES / 2; apart > 0; apart /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, largest, apart);
            largest = other > largest ? other : largest;
        }
        const float base = largest == -INFINITY ? 0 : largest;
        factor[i] = ls_attention_exp(seen->largest[i] - base);
        LS_UNROLL
        for (int j = 0; j < LS_TILE_PART; j++) {
            s[i][j] = ls_attention_exp(s[i][j] - base);
            sum += s[i][j];
        }
        sum = ls_fold_float_lanes(sum);
        sum = __shfl_sync(0xffffffffu, sum,
                          (int)(threadIdx.x % warpSize / LS_CUDA_LANES * LS_CUDA_LANES));
        seen->sum[i] = seen->sum[i] * factor[i] + sum;
        seen->largest[i] = largest;
    }
}

/* Weights of a tile as an operand by term: terms are keys. */
__device__ static void put_weights(const struct ls_cuda_attention &of,
                                   const struct ls_attention_attr &attr,
                                   const struct tile_place &at, const ls_tile_numbers p,
                                   struct shared_tiles &shared)
{
    const struct ls_tile_thread here = ls_tile_here();
    LS_UNROLL
    for (int a = 0; a < LS_TILE_PART; a++)
        LS_UNROLL
    for (int b = 0; b < LS_TILE_PART; b++) {
        const int line = here.line + a * LS_TILE_SIDE, term = here.column + b * LS_TILE_SIDE;
        const float x = drop(of, attr, at, at.i + line, at.j + term, p[a][b]);
        shared.weights[term / LS_TILE_TERMS][term % LS_TILE_TERMS][line] =
            attr.bf16 ? rounded_to_bf16(x) : x;
    }
}

/* Columns [column, column + 64 CHUNKS) of y, of those queries of the tile that are there. */
template <int CHUNKS>
__device__ static void put_values(const struct ls_attention_attr &attr, const struct tile_place &at,
                                  int64_t column, const struct ls_cuda_rows &y,
                                  const struct seen &seen, const ls_tile_numbers *out,
                                  float *log_sum)
{
    const struct ls_tile_thread here = ls_tile_here();
    LS_UNROLL
    for (int a = 0; a < LS_TILE_PART; a++) {
        const int64_t i = at.i + here.line + a * LS_TILE_SIDE;
        const float factor = 1 / seen.sum[a];
        const bool none = seen.sum[a] == 0;
        if (i >= attr.queries)
            continue;
        LS_UNROLL
        for (int c = 0; c < CHUNKS; c++)
            LS_UNROLL
        for (int b = 0; b < LS_TILE_PART; b++) {
            const int64_t d = column + c * LS_TILE + here.column + b * LS_TILE_SIDE;
            if (d < attr.value_depth)
                put_at(y, at.n * y.batch + i * y.pitch + at.head * y.head + d,
                       none ? 0 : out[c][a][b] * factor);
        }
        if (log_sum != NULL && column == 0 && here.column == 0)
            log_sum[(at.n * attr.heads + at.head) * attr.queries + i] =
                none ? 0 : seen.largest[a] + ls_float_log(seen.sum[a]);
    }
}

/* Blocks: columns of y, then blocks of queries from the last one on, which see most, heads, rows.
 */
template <int CHUNKS>
__global__ void attend(struct ls_cuda_attention of, const struct ls_attention_range *blocks,
                       struct ls_cuda_rows y, float *log_sum)
{
    __shared__ struct shared_tiles shared;
    const struct ls_attention_attr attr = attributes_now(of);
    const int64_t columns = (attr.value_depth + CHUNKS * LS_TILE - 1) / (CHUNKS * LS_TILE);
    const int64_t query_blocks = (attr.queries + LS_TILE - 1) / LS_TILE;
    const int64_t item = blockIdx.x, column = item % columns * CHUNKS * LS_TILE;
    const int64_t block = query_blocks - 1 - item / columns % query_blocks;
    const int64_t head = item / columns / query_blocks;
    struct tile_place at = {head / attr.heads, head % attr.heads, block * LS_TILE, 0};
    const struct head_columns v =
        columns_of_head(of.in[LS_CUDA_V], at.n, at.head / (attr.heads / attr.kv_heads), attr.bf16);
    ls_tile_numbers s, out[CHUNKS];
    struct seen seen;
    LS_UNROLL
    for (int c = 0; c < CHUNKS; c++)
        ls_tile_clear(out[c]);
    LS_UNROLL
    for (int i = 0; i < LS_TILE_PART; i++) {
        seen.largest[i] = -INFINITY;
        seen.sum[i] = 0;
    }
    for (int64_t b = blocks[block].begin; b < blocks[block].end; b++) {
        float factor[LS_TILE_PART];
        at.j = b * LS_TILE;
        const int left_out = ls_attention_half_hidden(&attr, at.i, at.j) ? 1 : -1;
        find_scores(of, attr, at, shared, s);
        add_scores(s, &seen, factor);
        put_weights(of, attr, at, s, shared);
        LS_UNROLL
        for (int c = 0; c < CHUNKS; c++) {
            LS_UNROLL
            for (int i = 0; i < LS_TILE_PART; i++)
                LS_UNROLL
            for (int j = 0; j < LS_TILE_PART; j++)
                out[c][i][j] = out[c][i][j] * factor[i];
            add_weighted(v, column + c * LS_TILE, attr.value_depth, at.j, attr.keys, left_out,
                         shared, out[c]);
        }
    }
    put_values<CHUNKS>(attr, at, column, y, seen, out, log_sum);
}

int ls_cuda_attend(cudaStream_t stream, const struct ls_cuda_attention *of,
                   const struct ls_cuda_rows *y, float *log_sum)
{
    struct ls_cuda_attention by = *of;
    const struct ls_cuda_rows to = *y;
    const struct ls_attention_attr *attr = &by.attr;
    struct ls_cuda_prepared prepared;
    const int code = ls_cuda_prepare_attention(stream, &by, &prepared);
    if (code != 0)
        return code;
    const struct ls_attention_range *const blocks = prepared.blocks;
    const int chunks = attr->value_depth > LS_TILE ? 2 : 1;
    const int64_t columns = (attr->value_depth + chunks * LS_TILE - 1) / (chunks * LS_TILE);
    const unsigned items =
        (unsigned)(by.batch * attr->heads * ((attr->queries + LS_TILE - 1) / LS_TILE) * columns);
    if (chunks == 1)
        return LS_LAUNCH(attend<1>, items, (unsigned)LS_TILE_THREADS, stream, by, blocks, to,
                         log_sum);
    return LS_LAUNCH(attend<2>, items, (unsigned)LS_TILE_THREADS, stream, by, blocks, to, log_sum);
}
