/* Rows of tables. See sequences.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/sequences.h"

#include "device/label.h"
#include "ops/cuda/kernels/sort.h"

/* ---- Forward --------------------------------------------------------------------------------- */

__global__ void embed(struct ls_cuda_embed of, const float *w, const float *index,
                      const float *bias, float *y)
{
    for (LS_EACH(i, of.n * of.columns)) {
        const int64_t c = (int64_t)i % of.columns;
        const int64_t row = ls_label_class(index[(int64_t)i / of.columns], of.rows);
        const float number = row < 0 ? NAN : w[row * of.columns + c];
        y[i] = bias != NULL ? number + bias[c] : number;
    }
}

int ls_cuda_take_rows(cudaStream_t stream, const struct ls_cuda_embed *of, const float *w,
                      const float *index, const float *bias, float *y)
{
    const struct ls_cuda_embed by = *of;
    return LS_LAUNCH(embed, ls_blocks((uint64_t)(by.n * by.columns)), LS_THREADS, stream, by, w,
                     index, bias, y);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

/* Positions are sorted by the rows that they name, so that each row is added up by one block, in
 * their order. */
static struct ls_cuda_sort sort_of(const struct ls_cuda_embed *of)
{
    struct ls_cuda_sort sort = {(uint64_t)of->n, (uint64_t)of->rows};
    return sort;
}

/* A number of the row in front of each position, behind what sorts them. */
size_t ls_cuda_embed_scratch(const struct ls_cuda_embed *of)
{
    const struct ls_cuda_sort sort = sort_of(of);
    return ls_cuda_sort_scratch(&sort) + (size_t)(of->n + 1) * sizeof(uint32_t);
}

__global__ void name_rows(struct ls_cuda_embed of, const float *index, uint32_t *key,
                          uint32_t *item)
{
    for (LS_EACH(i, of.n)) {
        const int64_t row = ls_label_class(index[i], of.rows);
        key[i] = row < 0 ? (uint32_t)of.rows : (uint32_t)row;
        item[i] = (uint32_t)i;
    }
}

static int sort_positions(cudaStream_t stream, const struct ls_cuda_embed *of, const float *index,
                          void *scratch, struct ls_cuda_sorted *sorted)
{
    const struct ls_cuda_embed by = *of;
    const struct ls_cuda_sort sort = sort_of(of);
    *sorted = ls_cuda_sorted_in(&sort, scratch);
    uint32_t *const key = sorted->key, *const item = sorted->item;
    const int code =
        LS_LAUNCH(name_rows, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by, index, key, item);
    return code != 0 ? code : ls_cuda_sort_items(stream, &sort, scratch);
}

__device__ static bool begins_row(const uint32_t *key, int64_t i, int64_t rows)
{
    return key[i] < (uint64_t)rows && (i == 0 || key[i] != key[i - 1]);
}

/* The sum of the row that begins at sorted position i, for this block's columns. */
__device__ static void add_row(const struct ls_cuda_embed *of, const float *dy, const uint32_t *key,
                               const uint32_t *item, int64_t i, float *to)
{
    for (int64_t c = threadIdx.x; c < of->columns; c += blockDim.x) {
        float sum = 0;
        for (int64_t s = i; s < of->n && key[s] == key[i]; s++)
            sum += dy[item[s] * of->columns + c];
        to[c] = sum;
    }
}

__global__ void add_rows_of_all(struct ls_cuda_embed of, const float *dy, const uint32_t *key,
                                const uint32_t *item, float *dw)
{
    for (int64_t i = blockIdx.x; i < of.n; i += gridDim.x)
        if (begins_row(key, i, of.rows))
            add_row(&of, dy, key, item, i, dw + key[i] * of.columns);
}

__global__ void clear_floats(float *x, uint64_t n)
{
    for (LS_EACH(i, n))
        x[i] = 0;
}

/* One position after the other, in double. */
__global__ void sum_columns(struct ls_cuda_embed of, const float *dy, float *db)
{
    for (LS_EACH(c, of.columns)) {
        double sum = 0;
        for (int64_t i = 0; i < of.n; i++)
            sum += (double)dy[i * of.columns + (int64_t)c];
        db[c] = (float)sum;
    }
}

static int add_bias(cudaStream_t stream, const struct ls_cuda_embed *of, const float *dy, float *db)
{
    const struct ls_cuda_embed by = *of;
    return db == NULL ? 0
                      : LS_LAUNCH(sum_columns, ls_blocks((uint64_t)by.columns), LS_THREADS, stream,
                                  by, dy, db);
}

static unsigned blocks_of_rows(int64_t rows)
{
    return rows < 1 ? 1 : rows > (int64_t)LS_BLOCKS_MAX ? LS_BLOCKS_MAX : (unsigned)rows;
}

int ls_cuda_embed_weights(cudaStream_t stream, const struct ls_cuda_embed *of, const float *dy,
                          const float *index, void *scratch, float *dw, float *db)
{
    const struct ls_cuda_embed by = *of;
    const uint64_t numbers = (uint64_t)(by.rows * by.columns);
    int code = 0;
    if (dw != NULL) {
        struct ls_cuda_sorted sorted;
        code = LS_LAUNCH(clear_floats, ls_blocks(numbers), LS_THREADS, stream, dw, numbers);
        if (code == 0)
            code = sort_positions(stream, of, index, scratch, &sorted);
        if (code != 0)
            return code;
        const uint32_t *const key = sorted.key, *const item = sorted.item;
        code = LS_LAUNCH(add_rows_of_all, blocks_of_rows(by.n), LS_THREADS, stream, by, dy, key,
                         item, dw);
    }
    return code != 0 ? code : add_bias(stream, of, dy, db);
}

/* rank[i]: rows that begin in front of sorted position i; rank[n]: all of them. One block. */
__global__ void rank_rows(struct ls_cuda_embed of, const uint32_t *key, uint32_t *rank)
{
    __shared__ uint32_t sum[2][LS_THREADS];
    uint32_t before = 0;
    for (int64_t first = 0; first < of.n; first += LS_THREADS) {
        const int64_t i = first + threadIdx.x;
        const uint32_t own = i < of.n && begins_row(key, i, of.rows);
        int now = 0;
        sum[0][threadIdx.x] = own;
        __syncthreads();
        for (unsigned apart = 1; apart < LS_THREADS; apart *= 2, now = 1 - now) {
            sum[1 - now][threadIdx.x] =
                sum[now][threadIdx.x] + (threadIdx.x >= apart ? sum[now][threadIdx.x - apart] : 0u);
            __syncthreads();
        }
        if (i < of.n)
            rank[i] = before + sum[now][threadIdx.x] - own;
        before += sum[now][LS_THREADS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        rank[of.n] = before;
}

__global__ void add_rows_that_occur(struct ls_cuda_embed of, int64_t most, const float *dy,
                                    const uint32_t *key, const uint32_t *item, const uint32_t *rank,
                                    float *rows, int32_t *number)
{
    for (int64_t i = blockIdx.x; i < of.n; i += gridDim.x)
        if (begins_row(key, i, of.rows)) {
            add_row(&of, dy, key, item, i, rows + rank[i] * of.columns);
            if (threadIdx.x == 0)
                number[rank[i]] = (int32_t)key[i];
        }
    for (int64_t r = rank[of.n] + (int64_t)blockIdx.x; r < most; r += gridDim.x) {
        for (int64_t c = threadIdx.x; c < of.columns; c += blockDim.x)
            rows[r * of.columns + c] = 0;
        if (threadIdx.x == 0)
            number[r] = -1;
    }
}

int ls_cuda_embed_rows(cudaStream_t stream, const struct ls_cuda_embed *of, int64_t most,
                       const float *dy, const float *index, void *scratch, float *rows,
                       int32_t *number, float *db)
{
    const struct ls_cuda_embed by = *of;
    const struct ls_cuda_sort sort = sort_of(of);
    struct ls_cuda_sorted sorted;
    int code = sort_positions(stream, of, index, scratch, &sorted);
    const uint32_t *const key = sorted.key, *const item = sorted.item;
    uint32_t *const rank = (uint32_t *)scratch + ls_cuda_sort_scratch(&sort) / sizeof(uint32_t);
    if (code == 0)
        code = LS_LAUNCH(rank_rows, 1u, LS_THREADS, stream, by, key, rank);
    if (code == 0)
        code = LS_LAUNCH(add_rows_that_occur, blocks_of_rows(most > by.n ? most : by.n), LS_THREADS,
                         stream, by, most, dy, key, item, (const uint32_t *)rank, rows, number);
    return code != 0 ? code : add_bias(stream, of, dy, db);
}

/* ---- Bags ------------------------------------------------------------------------------------ */

/* Whether entry l of a bag counts. */
__device__ static bool counts(const struct ls_cuda_bags *of, int64_t bag, int64_t l)
{
    if (of->lengths != NULL && !((float)l < truncf(of->lengths[bag])))
        return false;
    return !ls_label_ignored(of->index[bag * of->length + l], of->has_padding, of->padding);
}

/* What sums of a bag are divided by. */
__device__ static double divisor_of(const struct ls_cuda_bags *of, int64_t bag)
{
    int64_t count = 0;
    for (int64_t l = 0; of->mean && l < of->length; l++)
        count += counts(of, bag, l);
    return count > 0 ? (double)count : 1;
}

__device__ static double weight_of(const struct ls_cuda_bags *of, int64_t bag, int64_t l)
{
    return of->weights != NULL ? (double)of->weights[bag * of->length + l] : 1;
}

__device__ static int64_t row_of(const struct ls_cuda_bags *of, int64_t bag, int64_t l)
{
    return ls_label_class(of->index[bag * of->length + l], of->rows);
}

__global__ void embed_bag(struct ls_cuda_bags of, const float *w, float *y)
{
    for (LS_EACH(i, of.bags * of.columns)) {
        const int64_t bag = (int64_t)i / of.columns, c = (int64_t)i % of.columns;
        double sum = 0;
        for (int64_t l = 0; l < of.length; l++) {
            if (!counts(&of, bag, l))
                continue;
            const int64_t row = row_of(&of, bag, l);
            sum += row < 0 ? (double)NAN : weight_of(&of, bag, l) * (double)w[row * of.columns + c];
        }
        y[i] = (float)(sum / divisor_of(&of, bag));
    }
}

int ls_cuda_embed_bag(cudaStream_t stream, const struct ls_cuda_bags *of, const float *w, float *y)
{
    const struct ls_cuda_bags by = *of;
    return LS_LAUNCH(embed_bag, ls_blocks((uint64_t)(by.bags * by.columns)), LS_THREADS, stream, by,
                     w, y);
}

__global__ void embed_bag_rows(struct ls_cuda_bags of, const float *dy, float *to)
{
    for (LS_EACH(i, of.bags * of.length * of.columns)) {
        const int64_t entry = (int64_t)i / of.columns, c = (int64_t)i % of.columns;
        const int64_t bag = entry / of.length, l = entry % of.length;
        to[i] = counts(&of, bag, l)
                    ? (float)(weight_of(&of, bag, l) * (double)dy[bag * of.columns + c] /
                              divisor_of(&of, bag))
                    : 0;
    }
}

int ls_cuda_embed_bag_rows(cudaStream_t stream, const struct ls_cuda_bags *of, const float *dy,
                           float *to)
{
    const struct ls_cuda_bags by = *of;
    return LS_LAUNCH(embed_bag_rows, ls_blocks((uint64_t)(by.bags * by.length * by.columns)),
                     LS_THREADS, stream, by, dy, to);
}

/* Columns one after the other: that is the order of the sum. */
__global__ void embed_bag_factors(struct ls_cuda_bags of, const float *dy, const float *w,
                                  float *to)
{
    for (LS_EACH(i, of.bags * of.length)) {
        const int64_t bag = (int64_t)i / of.length, l = (int64_t)i % of.length;
        const bool counted = counts(&of, bag, l);
        const int64_t row = counted ? row_of(&of, bag, l) : -1;
        double sum = counted && row < 0 ? (double)NAN : 0;
        for (int64_t c = 0; row >= 0 && c < of.columns; c++)
            sum += (double)dy[bag * of.columns + c] * (double)w[row * of.columns + c];
        to[i] = (float)sum;
    }
}

int ls_cuda_embed_bag_factors(cudaStream_t stream, const struct ls_cuda_bags *of, const float *dy,
                              const float *w, float *to)
{
    const struct ls_cuda_bags by = *of;
    return LS_LAUNCH(embed_bag_factors, ls_blocks((uint64_t)(by.bags * by.length)), LS_THREADS,
                     stream, by, dy, w, to);
}
