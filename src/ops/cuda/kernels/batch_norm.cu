/* Normalisation by the batch. See norms.h. A channel's sums are a group of 16 threads', a lane
 * each. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/norms.h"

#include <math.h>

#include "ir/sync.h"
#include "ops/cuda/kernels/lanes.h"

/* ---- Sums of a channel ----------------------------------------------------------------------- */

/* The numbers of a channel, and how they are added up: in lanes along runs, or, where a channel has
 * one number a row, in 4 (or 2) sums without lanes. */
struct channel {
    int64_t c, count, run;
    bool columns;
};

__device__ static struct channel channel_of(const struct ls_cuda_part_rows *of, int64_t c)
{
    const int64_t count = of->rows * of->points;
    struct channel channel = {c, count, of->channels == 1 ? count : of->points,
                              of->points == 1 && of->channels > 1};
    return channel;
}

__device__ static int64_t place(const struct ls_cuda_part_rows *of, int64_t c, int64_t j)
{
    return ((of->first + j / of->points) * of->channels + c) * of->points + j % of->points;
}

/* Terms of a lane come in the order of j. Walks over those below `count`: the next one behind j. */
struct walk {
    int64_t j, count, run, lane;
    bool columns;
    int sums;
};

__device__ static struct walk walk_of(const struct channel *channel, int64_t count, int sums,
                                      uint64_t lane, bool there)
{
    struct walk walk = {(int64_t)lane, there ? count : 0, channel->run,
                        (int64_t)lane, channel->columns,  sums};
    if (walk.columns && walk.lane >= sums)
        walk.count = 0;
    else if (!walk.columns && walk.lane >= walk.run)
        walk.count = 0; /* runs are shorter than lanes */
    return walk;
}

__device__ static void walk_on(struct walk *walk)
{
    if (walk->columns) {
        walk->j += walk->sums;
        return;
    }
    const int64_t next = walk->j + LS_CUDA_LANES;
    const int64_t run = walk->j / walk->run;
    walk->j = next < (run + 1) * walk->run ? next : (run + 1) * walk->run + walk->lane;
}

/* The sum of all lanes, for all threads of the group. */
__device__ static double fold_for_all(double mine)
{
    const double sum = ls_fold_lanes(mine);
    return __shfl_sync(0xffffffffu, sum,
                       (int)(threadIdx.x % warpSize / LS_CUDA_LANES * LS_CUDA_LANES));
}

/* ---- Moments --------------------------------------------------------------------------------- */

struct moments {
    double mean, m2;
};

/* Of the numbers [from, from + count) of a channel, with distances from a float near the mean. */
__device__ static struct moments measure_piece(const struct ls_cuda_part_rows *of,
                                               const struct channel *channel, const float *x,
                                               int64_t from, int64_t count, uint64_t lane,
                                               bool there)
{
    double sum = 0, squares = 0;
    for (struct walk w = walk_of(channel, count, 4, lane, there); w.j < w.count; walk_on(&w))
        sum += (double)x[place(of, channel->c, from + w.j)];
    struct moments found;
    found.mean = fold_for_all(sum) / (double)count;
    const float shift = (float)found.mean;
    for (struct walk w = walk_of(channel, count, 4, lane, there); w.j < w.count; walk_on(&w)) {
        const float apart = x[place(of, channel->c, from + w.j)] - shift;
        squares += (double)apart * (double)apart;
    }
    const double off = found.mean - (double)shift;
    found.m2 = fold_for_all(squares) - (double)count * (off * off);
    found.m2 = found.m2 < 0 ? 0 : found.m2;
    return found;
}

/* Numbers without lanes by pieces, which are joined as parts are (device/merge.c). */
__device__ static struct moments measure_channel(const struct ls_cuda_part_rows *of,
                                                 const struct channel *channel, const float *x,
                                                 uint64_t lane, bool there)
{
    const int64_t piece = channel->columns ? 2048 : channel->count;
    struct moments all = {0, 0};
    for (int64_t from = 0; from < channel->count; from += piece) {
        const int64_t count = channel->count - from < piece ? channel->count - from : piece;
        const struct moments next = measure_piece(of, channel, x, from, count, lane, there);
        const double share = (double)count / ((double)from + (double)count);
        const double apart = next.mean - all.mean, weight = (double)from * share;
        all.mean = from == 0 ? next.mean : all.mean + apart * share;
        all.m2 = from == 0 ? next.m2 : (all.m2 + next.m2) + (apart * apart) * weight;
    }
    return all;
}

/* Channels behind the last have zeros, and so has what follows the count. */
__device__ static void begin_row(const struct ls_cuda_part_rows *of, double *row)
{
    const int64_t padded = ls_sync_round(of->channels);
    for (LS_EACH(i, 2 * padded + LS_SYNC_ROW_END))
        if ((int64_t)i >= 2 * padded || (int64_t)i % padded >= of->channels)
            row[i] = (int64_t)i == 2 * padded ? (double)(of->rows * of->points) : 0;
}

__global__ void find_moments(struct ls_cuda_part_rows of, const float *x, double *row)
{
    const struct ls_lane_group at = ls_find_lane_group();
    begin_row(&of, row);
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.channels, at.groups); r++) {
        const int64_t c = (int64_t)(r * at.groups + at.group);
        const struct channel channel = channel_of(&of, c);
        const bool there = c < of.channels;
        const struct moments found = measure_channel(&of, &channel, x, at.lane, there);
        if (there && at.lane == 0) {
            row[c] = found.mean;
            row[ls_sync_round(of.channels) + c] = found.m2;
        }
    }
}

int ls_cuda_moments(cudaStream_t stream, const struct ls_cuda_part_rows *of, const float *x,
                    double *row)
{
    const struct ls_cuda_part_rows by = *of;
    return LS_LAUNCH(find_moments, ls_lane_blocks((uint64_t)by.channels), LS_THREADS, stream, by, x,
                     row);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* What the numbers of a channel in a group of samples are normalised by. */
struct factors {
    float mean, rest, inverse, scale, bias;
    float mean_dz, mean_dzx; /* backward, by the batch */
};

__device__ static void read_averages(const struct ls_cuda_batch_norm *of, int64_t c,
                                     struct factors *to)
{
    const double divisor = of->divisor != NULL ? (double)*of->divisor : 1;
    const double mean = divisor == 0 || of->mean == NULL ? 0 : (double)of->mean[c] / divisor;
    const double variance =
        divisor == 0 || of->variance == NULL ? 1 : (double)of->variance[c] / divisor;
    to->mean = (float)mean;
    to->rest = (float)(mean - (double)to->mean);
    to->inverse = (float)(1 / sqrt((variance < 0 ? 0 : variance) + (double)of->eps));
}

__device__ static struct factors factors_of(const struct ls_cuda_batch_norm *of, int64_t c)
{
    const int64_t padded = ls_sync_round(of->rows.channels);
    struct factors factors = {
        0, 0, 0, of->scale != NULL ? of->scale[c] : 1, of->bias != NULL ? of->bias[c] : 0, 0, 0};
    if (of->merged == NULL) {
        read_averages(of, c, &factors);
        return factors;
    }
    factors.mean = of->merged[c];
    factors.rest = of->merged[padded + c];
    factors.inverse = of->merged[2 * padded + c];
    if (of->sums != NULL) {
        factors.mean_dz = of->sums[c];
        factors.mean_dzx = of->sums[padded + c];
    }
    return factors;
}

__device__ static float normal(const struct factors *by, float x)
{
    return ((x - by->mean) - by->rest) * by->inverse;
}

__device__ static float gate(float z, float through, float slope)
{
    return z > 0 ? through : slope * through;
}

/* Rows and channels of a part as one array: the first element, and their number. */
__device__ static int64_t first_of(const struct ls_cuda_part_rows *of)
{
    return of->first * of->channels * of->points;
}

static uint64_t size_of(const struct ls_cuda_part_rows *of)
{
    return (uint64_t)(of->rows * of->channels * of->points);
}

__global__ void normalize_rows(struct ls_cuda_batch_norm of, uint64_t n, const float *x, float *y)
{
    for (LS_EACH(i, n)) {
        const int64_t at = first_of(&of.rows) + (int64_t)i;
        const struct factors by = factors_of(&of, at / of.rows.points % of.rows.channels);
        const float z = by.scale * normal(&by, x[at]) + by.bias;
        y[at] = of.relu ? gate(z, z, of.slope) : z;
    }
}

int ls_cuda_batch_norm_forward(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                               const float *x, float *y)
{
    const struct ls_cuda_batch_norm by = *of;
    const uint64_t n = size_of(&by.rows);
    return LS_LAUNCH(normalize_rows, ls_blocks(n), LS_THREADS, stream, by, n, x, y);
}

/* The gradient behind f of an element. */
__device__ static float behind(const struct ls_cuda_batch_norm *of, const struct factors *by,
                               float dy, float x, const float *y)
{
    if (!of->relu)
        return dy;
    return gate(y != NULL ? *y : by->scale * normal(by, x) + by->bias, dy, of->slope);
}

__global__ void normalize_rows_backward(struct ls_cuda_batch_norm of, uint64_t n, const float *dy,
                                        const float *x, const float *y, float *dx)
{
    for (LS_EACH(i, n)) {
        const int64_t at = first_of(&of.rows) + (int64_t)i;
        const struct factors by = factors_of(&of, at / of.rows.points % of.rows.channels);
        float dz = behind(&of, &by, dy[at], x[at], y != NULL ? &y[at] : NULL);
        if (of.merged != NULL)
            dz = (dz - by.mean_dz) - normal(&by, x[at]) * by.mean_dzx;
        dx[at] = by.scale * by.inverse * dz;
    }
}

int ls_cuda_batch_norm_backward(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                                const float *dy, const float *x, const float *y, float *dx)
{
    const struct ls_cuda_batch_norm by = *of;
    const uint64_t n = size_of(&by.rows);
    return LS_LAUNCH(normalize_rows_backward, ls_blocks(n), LS_THREADS, stream, by, n, dy, x, y,
                     dx);
}

/* ---- Sums of gradients ----------------------------------------------------------------------- */

__global__ void sum_gradients(struct ls_cuda_batch_norm of, const float *dy, const float *x,
                              const float *y, bool begins, double *row, double *total)
{
    const struct ls_lane_group at = ls_find_lane_group();
    const int64_t channels = of.rows.channels, padded = ls_sync_round(channels);
    if (row != NULL)
        begin_row(&of.rows, row);
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)channels, at.groups); r++) {
        const int64_t c = (int64_t)(r * at.groups + at.group);
        const bool there = c < channels;
        const struct channel channel = channel_of(&of.rows, c);
        const struct factors by = factors_of(&of, there ? c : 0);
        double plain = 0, along = 0;
        for (struct walk w = walk_of(&channel, channel.count, 2, at.lane, there); w.j < w.count;
             walk_on(&w)) {
            const int64_t i = place(&of.rows, c, w.j);
            const float dz = behind(&of, &by, dy[i], x[i], y != NULL ? &y[i] : NULL);
            plain += (double)dz;
            along += (double)dz * (double)normal(&by, x[i]);
        }
        plain = ls_fold_lanes(plain);
        along = ls_fold_lanes(along);
        if (!there || at.lane != 0)
            continue;
        if (row != NULL) {
            row[c] = plain;
            row[padded + c] = along;
        }
        total[c] = (begins ? 0 : total[c]) + plain;
        total[channels + c] = (begins ? 0 : total[channels + c]) + along;
    }
}

int ls_cuda_batch_norm_sums(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                            const float *dy, const float *x, const float *y, bool begins,
                            double *row, double *total)
{
    const struct ls_cuda_batch_norm by = *of;
    return LS_LAUNCH(sum_gradients, ls_lane_blocks((uint64_t)by.rows.channels), LS_THREADS, stream,
                     by, dy, x, y, begins, row, total);
}

__global__ void round_numbers(const double *total, int64_t n, float *y)
{
    for (LS_EACH(i, n))
        y[i] = (float)total[i];
}

int ls_cuda_round(cudaStream_t stream, const double *total, int64_t n, float *y)
{
    return LS_LAUNCH(round_numbers, ls_blocks((uint64_t)n), LS_THREADS, stream, total, n, y);
}
