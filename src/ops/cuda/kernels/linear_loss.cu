/* See linear_loss.h. Rows that count are listed first; then blocks of them are computed one after
 * the other: scores, which become exponentials and gradients where they are, and the products with
 * those. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/linear_loss.h"

#include "device/elementary.h"
#include "device/elementary_double.h"
#include "device/label.h"
#include "device/linear_slope.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/numbers.h"
#include "ops/cuda/kernels/product_tile.h"

namespace
{

/* A row that counts. */
struct counted_row {
    int64_t row, label;
    double log_sum, all; /* log s; with smoothing, the weighted sum of t */
    float at;            /* t of the label */
    int hit;
};

struct tally {
    int64_t rows; /* that count */
    unsigned long long valid, bad;
};

struct room {
    struct tally *tally;
    struct counted_row *row;
    float *z; /* [most, classes] */
};

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

size_t place_all(const struct ls_cuda_linear *of, struct room *room)
{
    const size_t rows = aligned(sizeof(struct tally));
    const size_t z = rows + aligned((size_t)of->rows * sizeof(struct counted_row));
    if (of->scratch != NULL) {
        char *const at = (char *)of->scratch;
        room->tally = (struct tally *)at;
        room->row = (struct counted_row *)(at + rows);
        room->z = (float *)(at + z);
    }
    return z + (size_t)(of->most * of->classes) * sizeof(float);
}

__device__ double weight_of(const struct ls_cuda_linear &of, int64_t c)
{
    return of.class_weight != NULL ? (double)of.class_weight[c] : 1.0;
}

__device__ float taken(bool round, float x)
{
    ls_bf16 rounded;
    if (!round)
        return x;
    ls_put(&rounded, x);
    return ls_number(rounded);
}

/* ---- Rows that count ------------------------------------------------------------------------- */

/* One block lists them in their order. */
__global__ void list_rows(struct ls_cuda_linear of, struct room room)
{
    __shared__ int sum[2][LS_THREADS];
    __shared__ unsigned valid, bad;
    int64_t before = 0;
    if (threadIdx.x == 0)
        valid = bad = 0;
    __syncthreads();
    for (int64_t first = 0; first < of.rows; first += LS_THREADS) {
        const int64_t i = first + threadIdx.x;
        const bool counts =
            i < of.rows && !ls_label_ignored(of.label[i], of.has_ignore, of.ignore_label);
        const int64_t label = counts ? ls_label_class(of.label[i], of.classes) : -1;
        int now = 0;
        if (counts)
            atomicAdd(label < 0 ? &bad : &valid, 1u);
        sum[0][threadIdx.x] = label >= 0;
        __syncthreads();
        for (unsigned apart = 1; apart < LS_THREADS; apart *= 2, now = 1 - now) {
            sum[1 - now][threadIdx.x] =
                sum[now][threadIdx.x] + (threadIdx.x >= apart ? sum[now][threadIdx.x - apart] : 0);
            __syncthreads();
        }
        if (label >= 0) {
            struct counted_row *const row = &room.row[before + sum[now][threadIdx.x] - 1];
            row->row = i;
            row->label = label;
        }
        before += sum[now][LS_THREADS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        room.tally->rows = before;
        room.tally->valid = valid + bad;
        room.tally->bad = bad;
    }
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* x of the rows of a block, by row. */
struct block_x {
    struct ls_cuda_linear of;
    const struct counted_row *row;
    __device__ float operator()(int64_t, int64_t r, int64_t k) const
    {
        const int64_t at = row[r].row * of.inputs + k;
        return of.x_bf16 ? ls_number(((const ls_bf16 *)of.x)[at])
                         : taken(of.bf16, ((const float *)of.x)[at]);
    }
};

__device__ inline bool ls_tile_by_line(const struct block_x &)
{
    return true;
}

/* The same by input: terms are rows. */
struct block_x_columns {
    struct block_x x;
    __device__ float operator()(int64_t, int64_t k, int64_t r) const
    {
        return x(0, r, k);
    }
};

/* A matrix of fp32, of which the columns are lines, if `by_term`. */
struct matrix {
    const float *data;
    int64_t width;
    bool by_term, round;
    __device__ float operator()(int64_t, int64_t line, int64_t t) const
    {
        return taken(round, data[by_term ? t * width + line : line * width + t]);
    }
};

__device__ inline bool ls_tile_by_line(const struct matrix &matrix)
{
    return !matrix.by_term;
}

/* ---- Results --------------------------------------------------------------------------------- */

struct to_scores {
    float *z;
    int64_t classes;
    const float *bias;
    __device__ void operator()(int64_t, int64_t r, int64_t v, float sum) const
    {
        z[r * classes + v] = bias != NULL ? sum + bias[v] : sum;
    }
};

struct to_data {
    struct ls_cuda_linear of;
    const struct counted_row *row;
    __device__ void operator()(int64_t, int64_t r, int64_t k, float sum) const
    {
        const int64_t at = row[r].row * of.inputs + k;
        if (of.dx_bf16)
            ls_put(&((ls_bf16 *)of.dx)[at], sum);
        else
            ((float *)of.dx)[at] = sum;
    }
};

struct to_weights {
    float *dw;
    int64_t inputs;
    bool first; /* block of the micro-batch */
    __device__ void operator()(int64_t, int64_t v, int64_t k, float sum) const
    {
        float *const to = &dw[v * inputs + k];
        *to = first ? sum : *to + sum;
    }
};

/* Rows of the block that begins at `first`. */
__device__ int64_t rows_of_block(const struct tally *tally, int64_t first, int64_t most)
{
    const int64_t left = tally->rows - first;
    return left < most ? left : most;
}

/* A product whose lines, or terms, are the rows of a block. */
template <class A, class B, class Out>
__global__ void multiply_block(A a, B b, Out out, struct ls_tile_size of, bool rows_are_terms,
                               const struct tally *tally, int64_t first, int64_t most)
{
    __shared__ ls_tile_terms left, right;
    const int64_t rows = rows_of_block(tally, first, most);
    const struct ls_tile_place at = ls_tile_of_block(of);
    *(rows_are_terms ? &of.terms : &of.lines) = rows;
    if (rows <= 0 || at.line >= of.lines)
        return;
    ls_tile_numbers sum;
    ls_tile_clear(sum);
    ls_tile_add_product(a, b, 0, at.line, at.column, of, left, right, sum);
    ls_tile_finish(out, 0, at.line, at.column, of, sum);
}

template <class A, class B, class Out>
int give_product(cudaStream_t stream, const A &a, const B &b, const Out &out,
                 const struct ls_tile_size &of, bool rows_are_terms, const struct tally *tally,
                 int64_t first, int64_t most)
{
    const A left = a;
    const B right = b;
    const Out to = out;
    const struct ls_tile_size all = of;
    return LS_LAUNCH((multiply_block<A, B, Out>), ls_tile_grid(of.lines, of.columns, 1),
                     dim3(LS_TILE_THREADS), stream, left, right, to, all, rows_are_terms, tally,
                     first, most);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

enum { ADDING = 32, CHUNK = (int)LS_THREADS - ADDING }; /* threads that add, and that compute */

/* What a block of threads knows of its row. */
struct row_figures {
    float largest[LS_THREADS];
    int reach[LS_THREADS];
    float power[2][CHUNK], away[2][CHUNK];
    double sum, all;
};

/* The largest score, and how many are as high as the label's. */
__device__ void find_largest(const float *z, int64_t classes, float label,
                             struct row_figures &figures)
{
    float largest = -INFINITY;
    int reach = 0;
    for (int64_t v = threadIdx.x; v < classes; v += LS_THREADS) {
        largest = z[v] > largest ? z[v] : largest;
        reach += z[v] >= label;
    }
    figures.largest[threadIdx.x] = largest;
    figures.reach[threadIdx.x] = reach;
    __syncthreads();
    for (unsigned apart = LS_THREADS / 2; apart > 0; apart /= 2) {
        if (threadIdx.x < apart) {
            const float other = figures.largest[threadIdx.x + apart];
            if (other > figures.largest[threadIdx.x])
                figures.largest[threadIdx.x] = other;
            figures.reach[threadIdx.x] += figures.reach[threadIdx.x + apart];
        }
        __syncthreads();
    }
}

/* From scores to exponentials, and their sum, class by class: one thread adds a chunk while others
 * compute the next one. */
__device__ void find_powers(const struct ls_cuda_linear &of, float *z, struct row_figures &figures)
{
    const float largest = figures.largest[0];
    const int64_t chunks = (of.classes + CHUNK - 1) / CHUNK;
    double sum = 0, all = 0;
    for (int64_t c = 0; c <= chunks; c++) {
        const int64_t v = c * CHUNK + (int)threadIdx.x - ADDING;
        if (threadIdx.x >= ADDING && c < chunks && v < of.classes) {
            const float away = z[v] - largest;
            figures.away[c % 2][threadIdx.x - ADDING] = away;
            figures.power[c % 2][threadIdx.x - ADDING] = z[v] = ls_float_exp(away);
        }
        for (int64_t i = 0; threadIdx.x == 0 && c > 0 && i < CHUNK; i++) {
            const int64_t class_at = (c - 1) * CHUNK + i;
            if (class_at >= of.classes)
                break;
            sum += (double)figures.power[(c - 1) % 2][i];
            if (of.smoothing > 0)
                all += weight_of(of, class_at) * (double)figures.away[(c - 1) % 2][i];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        figures.sum = sum;
        figures.all = all;
    }
    __syncthreads();
}

/* From exponentials to the gradient of the scores. */
__device__ void find_slopes(const struct ls_cuda_linear &of, int64_t label, double sum, float power,
                            float *d)
{
    const double divisor = of.normalizer < 0 ? 1.0 : of.numbers->normalizers[of.normalizer];
    const double scale = (double)of.loss_weight / divisor, weight = weight_of(of, label);
    const double own = ls_linear_own(of.smoothing, weight);
    const double share = ls_linear_share(of.smoothing, of.classes);
    const float factor = ls_linear_factor(scale, weight, sum);
    for (int64_t v = threadIdx.x; v < of.classes; v += LS_THREADS) {
        float slope = factor == 0 ? 0 : d[v] * factor;
        if (of.smoothing > 0)
            slope =
                ls_linear_smoothed(scale, own + share * of.weights,
                                   share * weight_of(of, v) + (v == label ? own : 0), sum, d[v]);
        else if (v == label)
            slope = ls_linear_at_label(scale, weight, sum, power);
        d[v] = taken(of.bf16, slope);
    }
}

/* A block of threads a row of the block of rows. */
__global__ void measure_rows(struct ls_cuda_linear of, struct room room, int64_t first)
{
    __shared__ struct row_figures figures;
    const int64_t r = blockIdx.x;
    if (r >= rows_of_block(room.tally, first, of.most))
        return;
    struct counted_row *const row = &room.row[first + r];
    float *const z = room.z + r * of.classes;
    const float label = z[row->label];
    __syncthreads();
    find_largest(z, of.classes, label, figures);
    find_powers(of, z, figures);
    const float power = z[row->label];
    if (threadIdx.x == 0) {
        row->at = label - figures.largest[0];
        row->hit = of.hits && figures.reach[0] == 1;
        row->log_sum = ls_double_log(figures.sum);
        row->all = figures.all;
    }
    __syncthreads();
    if (of.gradients)
        find_slopes(of, row->label, figures.sum, power, z);
}

__global__ void add_bias(struct ls_cuda_linear of, struct room room, int64_t first)
{
    const int64_t rows = rows_of_block(room.tally, first, of.most);
    if (rows <= 0)
        return;
    for (LS_EACH(v, of.classes)) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)room.z[r * of.classes + (int64_t)v];
        of.db[v] = first == 0 ? (float)sum : of.db[v] + (float)sum;
    }
}

/* ---- The record ------------------------------------------------------------------------------ */

/* What a row adds to the sum: of its label, or, with smoothing, of all classes. */
__device__ double row_part(const struct ls_cuda_linear &of, const struct counted_row &row,
                           bool of_all)
{
    const double own = ls_linear_own(of.smoothing, weight_of(of, row.label));
    return of_all ? ls_linear_share(of.smoothing, of.classes) * (of.weights * row.log_sum - row.all)
                  : own * (row.log_sum - (double)row.at);
}

/* One block: rows are read side by side, and added one after the other, which is their order. */
__global__ void __launch_bounds__(LS_BLOCK)
    add_to_record(struct ls_cuda_linear of, struct room room)
{
    const struct counted_row *const row = room.row;
    const int64_t rows = room.tally->rows, parts = of.smoothing > 0 ? 2 : 1;
    const double sum = ls_block_add(
        rows * parts, 0, [&](int64_t i) { return row_part(of, row[i / parts], i % parts != 0); });
    double weights = 0, nats = 0, bytes = 0;
    int64_t hits = 0;
    if (of.normalization == LS_NORM_WEIGHTS)
        weights = ls_block_add(rows, 0, [&](int64_t i) { return weight_of(of, row[i].label); });
    if (of.figures != NULL) {
        nats = ls_block_add(rows, 0, [&](int64_t i) { return row[i].log_sum - (double)row[i].at; });
        if (of.bytes != NULL)
            bytes = ls_block_add(rows, 0, [&](int64_t i) { return (double)of.bytes[row[i].row]; });
        for (LS_EACH_OF_BLOCK(i, rows))
            hits += row[i].hit;
        hits = ls_block_sum(hits);
    }
    if (threadIdx.x != 0)
        return;
    of.record[0] += room.tally->bad > 0 ? (double)NAN : sum;
    of.record[1] += of.normalization == LS_NORM_FULL || of.normalization == LS_NORM_BATCH_SIZE
                        ? (double)of.rows
                    : of.normalization == LS_NORM_VALID   ? (double)room.tally->valid
                    : of.normalization == LS_NORM_WEIGHTS ? weights
                                                          : 0;
    if (of.figures != NULL) {
        of.figures[0] += nats;
        of.figures[1] += (double)rows;
        of.figures[2] += (double)hits;
        of.figures[3] += bytes;
    }
}

__global__ void clear_words(uint16_t *words, uint64_t n)
{
    for (LS_EACH(i, n))
        words[i] = 0;
}

int clear(cudaStream_t stream, void *data, int64_t elements, size_t bytes)
{
    uint16_t *const words = (uint16_t *)data;
    const uint64_t n = (uint64_t)elements * bytes / sizeof *words;
    return data == NULL || n == 0
               ? 0
               : LS_LAUNCH(clear_words, ls_blocks(n), LS_THREADS, stream, words, n);
}

/* ---- Blocks of rows -------------------------------------------------------------------------- */

int give_gradients(cudaStream_t stream, const struct ls_cuda_linear *of, const struct room *room,
                   int64_t first)
{
    const struct counted_row *const row = room->row + first;
    const struct matrix d = {room->z, of->classes, false, false};
    const struct block_x x = {*of, row};
    int code = 0;
    if (of->dx != NULL) {
        const struct matrix w = {of->w, of->inputs, true, of->bf16};
        const struct to_data to = {*of, row};
        code = give_product(stream, d, w, to, {of->most, of->inputs, of->classes, 1}, false,
                            room->tally, first, of->most);
    }
    if (of->dw != NULL && code == 0) {
        const struct matrix by_class = {room->z, of->classes, true, false};
        const struct block_x_columns columns = {x};
        const struct to_weights to = {of->dw, of->inputs, first == 0};
        code = give_product(stream, by_class, columns, to, {of->classes, of->inputs, of->most, 1},
                            true, room->tally, first, of->most);
    }
    if (of->db != NULL && code == 0) {
        const struct ls_cuda_linear by = *of;
        const struct room there = *room;
        code = LS_LAUNCH(add_bias, ls_blocks((uint64_t)by.classes), LS_THREADS, stream, by, there,
                         first);
    }
    return code;
}

int give_block(cudaStream_t stream, const struct ls_cuda_linear *of, const struct room *room,
               int64_t first)
{
    const struct ls_cuda_linear by = *of;
    const struct room there = *room;
    const struct block_x x = {by, room->row + first};
    const struct matrix w = {by.w, by.inputs, false, by.bf16};
    const struct to_scores to = {room->z, by.classes, by.bias};
    int code = give_product(stream, x, w, to, {by.most, by.classes, by.inputs, 1}, false,
                            room->tally, first, by.most);
    if (code == 0)
        code = LS_LAUNCH(measure_rows, (unsigned)by.most, LS_THREADS, stream, by, there, first);
    return code != 0 || !by.gradients ? code : give_gradients(stream, of, room, first);
}

} // namespace

size_t ls_cuda_linear_scratch(const struct ls_cuda_linear *of)
{
    struct room room = {};
    return place_all(of, &room);
}

int ls_cuda_linear_loss(cudaStream_t stream, const struct ls_cuda_linear *of)
{
    const struct ls_cuda_linear by = *of;
    struct room room = {};
    place_all(of, &room);
    const struct room there = room;
    int code = clear(stream, by.dx, by.rows * by.inputs, by.dx_bf16 ? 2 : 4);
    if (code == 0)
        code = clear(stream, by.dw, by.classes * by.inputs, 4);
    if (code == 0)
        code = clear(stream, by.db, by.classes, 4);
    if (code == 0)
        code = LS_LAUNCH(list_rows, 1u, LS_THREADS, stream, by, there);
    for (int64_t first = 0; first < by.rows && code == 0; first += by.most)
        code = give_block(stream, of, &room, first);
    return code != 0 ? code : LS_LAUNCH(add_to_record, 1u, LS_BLOCK, stream, by, there);
}
