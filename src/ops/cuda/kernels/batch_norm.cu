/* Normalisation by the batch. See norms.h. A channel's sums are a group of 16 threads', a lane
 * each. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/norms.h"

#include <math.h>

#include "ir/sync.h"
#include "ops/cuda/kernels/channels.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/numbers.h"

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

/* The terms of a lane: in each of `runs` runs, which begin `run_step` numbers apart, those in
 * places begin, begin + by and so on in front of `end`; places are `step` numbers apart. */
struct lane_terms {
    int64_t first, runs, run_step;
    int64_t begin, end, by, step;
};

/* Of the numbers [from, from + count) of a channel: all of them, unless they have no lanes. */
__device__ static struct lane_terms terms_of(const struct ls_cuda_part_rows *of,
                                             const struct channel *channel, int64_t from,
                                             int64_t count, int sums,
                                             const struct ls_lane_group *at, bool there)
{
    const int64_t lane = (int64_t)at->lane, channels = of->channels;
    const int64_t row = channels * of->points, c = channel->c, run = channel->run;
    struct lane_terms terms = {of->first * row + (of->last ? c : c * of->points),
                               there && run > 0 ? count / run : 0,
                               row,
                               lane,
                               run,
                               LS_CUDA_LANES,
                               of->last ? channels : 1};
    if (channel->columns) {
        terms.first = (of->first + from) * channels + c;
        terms.runs = there && lane < sums ? 1 : 0;
        terms.end = count;
        terms.by = sums;
        terms.step = channels;
    }
    return terms;
}

/* Channels that lie side by side are for threads that do. */
__device__ static bool are_across(const struct ls_cuda_part_rows *of)
{
    return of->last || of->points == 1;
}

/* ---- Moments --------------------------------------------------------------------------------- */

struct moments {
    double mean, m2;
};

/* Of the numbers [from, from + count) of a channel, with distances from a float near the mean. */
template <typename T>
__device__ static struct moments
measure_piece(const struct ls_cuda_part_rows *of, const struct channel *channel, const T *x,
              int64_t from, int64_t count, const struct ls_lane_group *at, bool there)
{
    const struct lane_terms terms = terms_of(of, channel, from, count, 4, at, there);
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < terms.runs; r++) {
        const T *const run = x + terms.first + r * terms.run_step;
        LS_UNROLL_BY(8)
        for (int64_t i = terms.begin; i < terms.end; i += terms.by)
            sum += (double)ls_number(run[i * terms.step]);
    }
    struct moments found;
    found.mean = ls_fold_for_all(at, sum) / (double)count;
    const float shift = (float)found.mean;
    for (int64_t r = 0; r < terms.runs; r++) {
        const T *const run = x + terms.first + r * terms.run_step;
        LS_UNROLL_BY(8)
        for (int64_t i = terms.begin; i < terms.end; i += terms.by) {
            const float apart = ls_number(run[i * terms.step]) - shift;
            squares += (double)apart * (double)apart;
        }
    }
    const double off = found.mean - (double)shift;
    found.m2 = ls_fold_for_all(at, squares) - (double)count * (off * off);
    found.m2 = found.m2 < 0 ? 0 : found.m2;
    return found;
}

/* Numbers without lanes by pieces, which are joined as parts are (device/merge.c). */
template <typename T>
__device__ static struct moments measure_channel(const struct ls_cuda_part_rows *of,
                                                 const struct channel *channel, const T *x,
                                                 const struct ls_lane_group *at, bool there)
{
    const int64_t piece = channel->columns ? 2048 : channel->count;
    struct moments all = {0, 0};
    for (int64_t from = 0; from < channel->count; from += piece) {
        const int64_t count = channel->count - from < piece ? channel->count - from : piece;
        const struct moments next = measure_piece(of, channel, x, from, count, at, there);
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

template <typename T>
__global__ void find_moments(struct ls_cuda_part_rows of, const T *x, double *row)
{
    const struct ls_lane_group at = ls_find_lane_group(are_across(&of));
    begin_row(&of, row);
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.channels, at.groups); r++) {
        const int64_t c = (int64_t)(r * at.groups + at.group);
        const struct channel channel = channel_of(&of, c);
        const bool there = c < of.channels;
        const struct moments found = measure_channel(&of, &channel, x, &at, there);
        if (there && at.lane == 0) {
            row[c] = found.mean;
            row[ls_sync_round(of.channels) + c] = found.m2;
        }
    }
}

int ls_cuda_moments(cudaStream_t stream, const struct ls_cuda_part_rows *of, const void *x,
                    double *row)
{
    const struct ls_cuda_part_rows by = *of;
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(find_moments<T>, ls_lane_blocks((uint64_t)by.channels), LS_THREADS, stream,
                         by, (const T *)x, row);
    });
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

/* Rows and channels of a part as one array: bytes in front of it, and elements. */
static size_t first_of(const struct ls_cuda_part_rows *of)
{
    return (size_t)(of->first * of->channels * of->points) * (of->bf16 ? 2 : 4);
}

/* An array behind what comes first; NULL stays. */
template <typename T> static T *behind_first(T *array, size_t first)
{
    return array == NULL ? NULL : (T *)((uintptr_t)array + first);
}

static uint64_t size_of(const struct ls_cuda_part_rows *of)
{
    return (uint64_t)(of->rows * of->channels * of->points);
}

/* How many elements of a channel follow each other. */
__device__ static uint64_t inner_of(const struct ls_cuda_part_rows *of)
{
    return of->last ? 1 : (uint64_t)of->points;
}

/* Factors of a channel are found once for what a thread takes of it. */
struct finder {
    struct factors by;
    uint64_t channel;
};

__device__ static const struct factors *factors_at(const struct ls_cuda_batch_norm *of,
                                                   struct finder *finder, uint64_t channel)
{
    if (finder->channel != channel)
        finder->by = factors_of(of, (int64_t)channel);
    finder->channel = channel;
    return &finder->by;
}

template <typename P>
__global__ void normalize_rows(struct ls_cuda_batch_norm of, uint64_t packs,
                               const typename P::number *x, typename P::number *y)
{
    for (LS_EACH(i, packs)) {
        float z[P::WIDTH];
        struct finder finder = {{0, 0, 0, 0, 0, 0, 0}, UINT64_MAX};
        struct ls_channel_place at =
            ls_channel_at(i * P::WIDTH, (uint64_t)of.rows.channels, inner_of(&of.rows));
        ls_read(P(), x, i, z);
        for (int k = 0; k < P::WIDTH; k++, ls_next_channel(&at)) {
            const struct factors *by = factors_at(&of, &finder, at.channel);
            z[k] = by->scale * normal(by, z[k]) + by->bias;
            z[k] = of.relu ? gate(z[k], z[k], of.slope) : z[k];
        }
        ls_write(P(), y, i, z);
    }
}

int ls_cuda_batch_norm_forward(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                               const void *x, void *y)
{
    const struct ls_cuda_batch_norm by = *of;
    const uint64_t n = size_of(&by.rows);
    const size_t first = first_of(&by.rows);
    const void *const from = behind_first(x, first);
    void *const to = behind_first(y, first);
    const uintptr_t addresses = (uintptr_t)from | (uintptr_t)to;
    return ls_by_pack(by.rows.bf16, n, addresses, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = n / P::WIDTH;
        return LS_LAUNCH(normalize_rows<P>, ls_blocks(packs), LS_THREADS, stream, by, packs,
                         (const T *)from, (T *)to);
    });
}

/* The gradient behind f of an element. */
__device__ static float behind(const struct ls_cuda_batch_norm *of, const struct factors *by,
                               float dy, float x, const float *y)
{
    if (!of->relu)
        return dy;
    return gate(y != NULL ? *y : by->scale * normal(by, x) + by->bias, dy, of->slope);
}

template <typename P>
__global__ void normalize_rows_backward(struct ls_cuda_batch_norm of, uint64_t packs,
                                        const typename P::number *dy, const typename P::number *x,
                                        const typename P::number *y, typename P::number *dx)
{
    for (LS_EACH(i, packs)) {
        float slope[P::WIDTH], number[P::WIDTH], made[P::WIDTH];
        struct finder finder = {{0, 0, 0, 0, 0, 0, 0}, UINT64_MAX};
        struct ls_channel_place at =
            ls_channel_at(i * P::WIDTH, (uint64_t)of.rows.channels, inner_of(&of.rows));
        ls_read(P(), dy, i, slope);
        ls_read(P(), x, i, number);
        if (y != NULL)
            ls_read(P(), y, i, made);
        for (int k = 0; k < P::WIDTH; k++, ls_next_channel(&at)) {
            const struct factors *by = factors_at(&of, &finder, at.channel);
            float dz = behind(&of, by, slope[k], number[k], y != NULL ? &made[k] : NULL);
            if (of.merged != NULL)
                dz = (dz - by->mean_dz) - normal(by, number[k]) * by->mean_dzx;
            slope[k] = by->scale * by->inverse * dz;
        }
        ls_write(P(), dx, i, slope);
    }
}

int ls_cuda_batch_norm_backward(cudaStream_t stream, const struct ls_cuda_batch_norm *of,
                                const void *dy, const void *x, const void *y, void *dx)
{
    const struct ls_cuda_batch_norm by = *of;
    const uint64_t n = size_of(&by.rows);
    const size_t first = first_of(&by.rows);
    const void *const slope = behind_first(dy, first), *const from = behind_first(x, first);
    const void *const made = behind_first(y, first);
    void *const to = behind_first(dx, first);
    const uintptr_t addresses =
        (uintptr_t)slope | (uintptr_t)from | (uintptr_t)made | (uintptr_t)to;
    return ls_by_pack(by.rows.bf16, n, addresses, [=](auto pack) {
        using P = decltype(pack);
        typedef typename P::number T;
        const uint64_t packs = n / P::WIDTH;
        return LS_LAUNCH(normalize_rows_backward<P>, ls_blocks(packs), LS_THREADS, stream, by,
                         packs, (const T *)slope, (const T *)from, (const T *)made, (T *)to);
    });
}

/* ---- Sums of gradients ----------------------------------------------------------------------- */

template <typename T>
__global__ void sum_gradients(struct ls_cuda_batch_norm of, const T *dy, const T *x, const T *y,
                              bool begins, double *row, double *total)
{
    const struct ls_lane_group at = ls_find_lane_group(are_across(&of.rows));
    const int64_t channels = of.rows.channels, padded = ls_sync_round(channels);
    if (row != NULL)
        begin_row(&of.rows, row);
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)channels, at.groups); r++) {
        const int64_t c = (int64_t)(r * at.groups + at.group);
        const bool there = c < channels;
        const struct channel channel = channel_of(&of.rows, c);
        const struct factors by = factors_of(&of, there ? c : 0);
        double plain = 0, along = 0;
        const struct lane_terms terms =
            terms_of(&of.rows, &channel, 0, channel.count, 2, &at, there);
        for (int64_t k = 0; k < terms.runs; k++) {
            const int64_t first = terms.first + k * terms.run_step;
            LS_UNROLL_BY(4)
            for (int64_t p = terms.begin; p < terms.end; p += terms.by) {
                const int64_t i = first + p * terms.step;
                const float number = ls_number(x[i]), made = y != NULL ? ls_number(y[i]) : 0;
                const float dz =
                    behind(&of, &by, ls_number(dy[i]), number, y != NULL ? &made : NULL);
                plain += (double)dz;
                along += (double)dz * (double)normal(&by, number);
            }
        }
        plain = ls_fold_for_all(&at, plain);
        along = ls_fold_for_all(&at, along);
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
                            const void *dy, const void *x, const void *y, bool begins, double *row,
                            double *total)
{
    const struct ls_cuda_batch_norm by = *of;
    return ls_by_type(by.rows.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(sum_gradients<T>, ls_lane_blocks((uint64_t)by.rows.channels), LS_THREADS,
                         stream, by, (const T *)dy, (const T *)x, (const T *)y, begins, row, total);
    });
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
