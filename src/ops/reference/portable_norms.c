/* Normalisation by the batch and by sample, of portable nets. See ops/reference/portable.h.
 *
 * Statistics are sums in double. A channel's positions in a sample are added up in lanes; where it
 * has one position alone, samples follow each other in four (or two) sums. Numbers are normalised
 * in fp32, ((x - mean) - rest) / deviation, where rest is what the float of the mean leaves out.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/reference/norms.h"
#include "ops/reference/portable.h"

/* ---- By the batch: sums ---------------------------------------------------------------------- */

/* The numbers of a channel in a part, and how they are added up. */
struct channel {
    const struct ls_value *x;
    struct ls_part part;
    int64_t c, count;
    int64_t run;  /* numbers that are in lanes from the first on, before others are */
    bool columns; /* no lanes */
};

static struct channel channel_of(const struct ls_value *x, const struct ls_part *part, int64_t c)
{
    const int64_t points = ls_shape_count(&x->shape, 2, x->shape.rank);
    const int64_t count = part->count * ls_ref_rows(x) * points;
    return (struct channel){.x = x,
                            .part = *part,
                            .c = c,
                            .count = count,
                            .run = x->shape.dim[1] == 1 ? count : points,
                            .columns = points == 1 && x->shape.dim[1] > 1};
}

static int64_t place(const struct channel *channel, int64_t j)
{
    return ls_ref_place(channel->x, &channel->part, channel->c, j);
}

/* Where term j of a channel is added; `sums` is how many sums there are in place of lanes. */
static double *slot(struct ls_lane_sum *sum, const struct channel *channel, int64_t j, int sums)
{
    return &sum->lane[channel->columns ? j % sums : j % channel->run % LS_REF_LANES];
}

static double fold(const struct ls_lane_sum *sum, const struct channel *channel)
{
    const double *of = sum->lane;
    return channel->columns ? (of[0] + of[2]) + (of[1] + of[3]) : ls_lane_fold(sum);
}

/* Mean and M2 of the numbers [from, from + count) of a channel, with distances from a float near
 * the mean. */
static void measure_piece(const struct ls_call *call, const struct channel *channel, int64_t from,
                          int64_t count, double *mean, double *m2)
{
    struct ls_lane_sum sum = {{0}}, squares = {{0}};
    for (int64_t j = 0; j < count; j++)
        *slot(&sum, channel, j, 4) += ls_at(call, 0, place(channel, from + j));
    *mean = fold(&sum, channel) / (double)count;
    const float shift = (float)*mean;
    for (int64_t j = 0; j < count; j++) {
        const float apart = ls_number(call, 0, place(channel, from + j)) - shift;
        *slot(&squares, channel, j, 4) += (double)apart * (double)apart;
    }
    const double off = *mean - (double)shift;
    *m2 = fold(&squares, channel) - (double)count * (off * off);
    *m2 = *m2 < 0 ? 0 : *m2;
}

/* Numbers without lanes by pieces, which are joined as parts are (device/merge.c). */
static void measure_channel(const struct ls_call *call, const struct channel *channel, double *mean,
                            double *m2)
{
    const int64_t piece = channel->columns ? 2048 : channel->count;
    for (int64_t from = 0; from < channel->count; from += piece) {
        const int64_t count = channel->count - from < piece ? channel->count - from : piece;
        double next_mean, next_m2;
        measure_piece(call, channel, from, count, &next_mean, &next_m2);
        if (from == 0) {
            *mean = next_mean;
            *m2 = next_m2;
            continue;
        }
        const double share = (double)count / ((double)from + (double)count);
        const double apart = next_mean - *mean, weight = (double)from * share;
        *mean = *mean + apart * share;
        *m2 = (*m2 + next_m2) + (apart * apart) * weight;
    }
}

static void moments(const struct ls_call *call)
{
    const struct ls_value *x = call->op->input[0];
    const int64_t channels = x->shape.dim[1], padded = ls_sync_round(channels);
    for (int p = 0, parts = 1; p < parts; p++) {
        const struct ls_part part = ls_ref_part(call, x, p, &parts);
        double *row = ls_ref_start_row(call, x, call->op->attr.batch_norm.moments, p, &part);
        for (int64_t c = 0; c < channels; c++) {
            const struct channel channel = channel_of(x, &part, c);
            measure_channel(call, &channel, &row[c], &row[padded + c]);
        }
    }
}

/* ---- By the batch: numbers ------------------------------------------------------------------- */

/* What the numbers of a channel in a group of samples are normalised by. */
struct factors {
    float mean, rest, inverse, scale, bias;
    float mean_dz, mean_dzx; /* backward, by the batch */
};

/* Mean and variance as a / c and b / c. */
static void read_averages(const struct ls_call *call, int first, int64_t c, struct factors *to)
{
    const float *a = ls_in(call, first), *b = ls_in(call, first + 1), *by = ls_in(call, first + 2);
    const double divisor = by != NULL ? (double)*by : 1;
    const double mean = divisor == 0 || a == NULL ? 0 : (double)a[c] / divisor;
    const double variance = divisor == 0 || b == NULL ? 1 : (double)b[c] / divisor;
    const double eps = (double)call->op->attr.batch_norm.eps;
    to->mean = (float)mean;
    to->rest = (float)(mean - (double)to->mean);
    to->inverse = (float)(1 / sqrt((variance < 0 ? 0 : variance) + eps));
}

static struct factors factors_of(const struct ls_call *call, const struct ls_part *part, int64_t c)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const int first = call->op->kind == LS_OP_BATCH_NORM ? 1 : 3;
    const int64_t padded = ls_sync_round(call->op->input[first == 1 ? 0 : 1]->shape.dim[1]);
    const float *scale = ls_in(call, first + 3), *bias = ls_in(call, first + 4);
    struct factors factors = {.scale = scale != NULL ? scale[c] : 1,
                              .bias = bias != NULL ? bias[c] : 0};
    if (attr->moments < 0) {
        read_averages(call, first, c, &factors);
        return factors;
    }
    const float *merged = call->context->merged[attr->moments] + part->merged * 4 * padded + c;
    factors.mean = merged[0];
    factors.rest = merged[padded];
    factors.inverse = merged[2 * padded];
    if (call->op->kind == LS_OP_BATCH_NORM_BACKWARD) {
        const float *sums = call->context->merged[attr->sums] + part->merged * 2 * padded + c;
        factors.mean_dz = sums[0];
        factors.mean_dzx = sums[padded];
    }
    return factors;
}

static float normal(const struct factors *by, float x)
{
    return ((x - by->mean) - by->rest) * by->inverse;
}

static float gate(float z, float through, float slope)
{
    return z > 0 ? through : slope * through;
}

/* The gradient behind f of element i. */
static float behind(const struct ls_call *call, const struct factors *by, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const float *y = ls_in(call, 2), dy = ls_number(call, 0, i);
    if (!attr->relu)
        return dy;
    const float z = y != NULL ? y[i] : by->scale * normal(by, ls_number(call, 1, i)) + by->bias;
    return gate(z, dy, attr->relu_slope);
}

/* Element i of y, or of dx. */
static float forward_number(const struct ls_call *call, const struct factors *by, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const float z = by->scale * normal(by, ls_number(call, 0, i)) + by->bias;
    return attr->relu ? gate(z, z, attr->relu_slope) : z;
}

static float backward_number(const struct ls_call *call, const struct factors *by, int64_t i)
{
    float dz = behind(call, by, i);
    if (call->op->attr.batch_norm.moments >= 0)
        dz = (dz - by->mean_dz) - normal(by, ls_number(call, 1, i)) * by->mean_dzx;
    return by->scale * by->inverse * dz;
}

/* All numbers, part by part and channel by channel. */
static void batch_norm(const struct ls_call *call)
{
    const bool forward = call->op->kind == LS_OP_BATCH_NORM;
    const struct ls_value *x = call->op->input[forward ? 0 : 1];
    for (int p = 0, parts = 1; p < parts; p++) {
        const struct ls_part part = ls_ref_part(call, x, p, &parts);
        for (int64_t c = 0; c < x->shape.dim[1]; c++) {
            const struct factors by = factors_of(call, &part, c);
            const struct channel channel = channel_of(x, &part, c);
            for (int64_t j = 0; j < channel.count; j++) {
                const int64_t i = place(&channel, j);
                ((float *)call->out[0])[i] =
                    forward ? forward_number(call, &by, i) : backward_number(call, &by, i);
            }
        }
    }
}

/* The sums of dz and of dz x^ of a channel in a part. */
static void sum_channel(const struct ls_call *call, const struct channel *channel, double *dz_sum,
                        double *dzx_sum)
{
    const struct factors by = factors_of(call, &channel->part, channel->c);
    struct ls_lane_sum plain = {{0}}, along = {{0}};
    for (int64_t j = 0; j < channel->count; j++) {
        const int64_t i = place(channel, j);
        const float dz = behind(call, &by, i);
        *slot(&plain, channel, j, 2) += (double)dz;
        *slot(&along, channel, j, 2) += (double)dz * (double)normal(&by, ls_number(call, 1, i));
    }
    *dz_sum = fold(&plain, channel);
    *dzx_sum = fold(&along, channel);
}

static void batch_norm_sums(const struct ls_call *call)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const struct ls_value *x = call->op->input[1];
    const int64_t padded = ls_sync_round(x->shape.dim[1]);
    const bool partial = attr->sums >= 0 && attr->moments >= 0;
    for (int64_t c = 0; c < x->shape.dim[1]; c++) {
        double total_dz = 0, total_dzx = 0;
        for (int p = 0, parts = 1; p < parts; p++) {
            const struct ls_part part = ls_ref_part(call, x, p, &parts);
            const struct channel channel = channel_of(x, &part, c);
            double dz, dzx;
            sum_channel(call, &channel, &dz, &dzx);
            double *row =
                partial ? call->context->partial[attr->sums] + p * (2 * padded + LS_SYNC_ROW_END)
                        : NULL;
            if (partial && c == 0)
                ls_ref_start_row(call, x, attr->sums, p, &part);
            if (partial) {
                row[c] = dz;
                row[padded + c] = dzx;
            }
            total_dz += dz;
            total_dzx += dzx;
        }
        if (call->op->outputs > 0 && call->out[0] != NULL)
            ((float *)call->out[0])[c] = (float)total_dzx;
        if (call->op->outputs > 1 && call->out[1] != NULL)
            ((float *)call->out[1])[c] = (float)total_dz;
    }
}

/* ---- By sample ------------------------------------------------------------------------------- */

/* A group of values of a sample: where it begins, and whether each value has a number of scale and
 * bias for itself; else each `points` of them do. */
struct group {
    const float *stats;
    int64_t first, size, points;
    bool each;
};

static struct group group_of(const struct ls_call *call, int64_t first, const float *stats)
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const int64_t points = ls_axes(call->op->input[0], attr->axis, 1).inner;
    return (struct group){.stats = stats,
                          .first = first,
                          .size = ls_ref_group_size(call),
                          .points = points,
                          .each = attr->elements || points == 1};
}

static float x_hat(const float *stats, float x)
{
    return ((x - stats[0]) - stats[1]) * stats[2];
}

static void measure_group(const struct ls_call *call, int64_t first, float stats[LS_REF_STATS])
{
    const int64_t n = ls_ref_group_size(call);
    struct ls_lane_sum sum = {{0}}, squares = {{0}};
    for (int64_t i = 0; i < n; i++)
        sum.lane[i % LS_REF_LANES] += ls_at(call, 0, first + i);
    const double mean = call->op->attr.normalize.around_zero ? 0 : ls_lane_fold(&sum) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double apart = ls_at(call, 0, first + i) - mean;
        squares.lane[i % LS_REF_LANES] += apart * apart;
    }
    ls_ref_fill_stats(call, mean, ls_lane_fold(&squares) / (double)n, stats);
}

static void normalize(const struct ls_call *call)
{
    const float *scale = ls_in(call, 1), *bias = ls_in(call, 2);
    const int64_t n = ls_ref_group_size(call);
    float *kept = call->op->outputs > 1 ? call->out[1] : NULL, stats[LS_REF_STATS];
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++) {
        const int64_t f = ls_ref_factor(call, i);
        if (i % n == 0)
            measure_group(call, i, stats);
        for (int k = 0; i % n == 0 && kept != NULL && k < LS_REF_STATS; k++)
            kept[i / n * LS_REF_STATS + k] = stats[k];
        ((float *)call->out[0])[i] =
            (scale != NULL ? scale[f] : 1) * x_hat(stats, ls_number(call, 0, i)) +
            (bias != NULL ? bias[f] : 0);
    }
}

/* Sums of dz and of dz x^ of values [from, from + n), in lanes; `scale` NULL: of dy. */
static void sum_values(const struct ls_call *call, const struct group *group, int64_t from,
                       int64_t n, const float *scale, double sums[2])
{
    struct ls_lane_sum plain = {{0}}, along = {{0}};
    for (int64_t i = 0; i < n; i++) {
        double dz = ls_at(call, 0, from + i);
        if (scale != NULL)
            dz *= (double)scale[ls_ref_factor(call, from + i)];
        plain.lane[i % LS_REF_LANES] += dz;
        along.lane[i % LS_REF_LANES] +=
            dz * (double)x_hat(group->stats, ls_number(call, 1, from + i));
    }
    sums[0] = ls_lane_fold(&plain);
    sums[1] = ls_lane_fold(&along);
}

/* Of a whole group: with a factor for some points, point by point and then by factor. */
static void sum_group(const struct ls_call *call, const struct group *group, const float *scale,
                      double sums[2])
{
    sums[0] = sums[1] = 0;
    if (scale == NULL || group->each) {
        sum_values(call, group, group->first, group->size, scale, sums);
        return;
    }
    for (int64_t i = 0; i < group->size; i += group->points) {
        double own[2];
        sum_values(call, group, group->first + i, group->points, NULL, own);
        for (int k = 0; k < 2; k++)
            sums[k] += (double)scale[ls_ref_factor(call, group->first + i)] * own[k];
    }
}

/* in: dy, x, stats, (scale). */
static void normalize_data(const struct ls_call *call)
{
    const float *scale = ls_in(call, 3), *stats = call->in[2];
    const int64_t n = ls_ref_group_size(call);
    for (int64_t first = 0; first < ls_size(call->op->input[0]); first += n) {
        const struct group group = group_of(call, first, stats + first / n * LS_REF_STATS);
        double sums[2];
        sum_group(call, &group, scale, sums);
        const bool around_zero = call->op->attr.normalize.around_zero;
        const float plain = around_zero ? 0 : (float)(sums[0] / (double)n);
        const float mean = (float)(sums[1] / (double)n * (double)group.stats[3]);
        for (int64_t i = first; i < first + n; i++) {
            const float along = x_hat(group.stats, ls_number(call, 1, i)) * mean;
            const float factor = scale != NULL ? scale[ls_ref_factor(call, i)] : 1;
            ((float *)call->out[0])[i] =
                ((factor * ls_number(call, 0, i) - plain) - along) * group.stats[2];
        }
    }
}

/* Adds to the sums of each number of scale and bias: group by group, in each in lanes. */
static void normalize_sums(const struct ls_call *call)
{
    const float *stats = call->in[2];
    const int64_t n = ls_ref_group_size(call);
    for (int64_t first = 0; first < ls_size(call->op->input[0]); first += n) {
        const struct group group = group_of(call, first, stats + first / n * LS_REF_STATS);
        const int64_t run = group.each ? 1 : group.points;
        for (int64_t i = first; i < first + n; i += run) {
            const int64_t f = ls_ref_factor(call, i);
            double own[2];
            sum_values(call, &group, i, run, NULL, own);
            for (int k = 0; k < 2; k++)
                if (call->sum[k] != NULL)
                    call->sum[k][f] += own[1 - k];
        }
    }
}

const struct ls_compute ls_portable_norms[LS_OP_KINDS] = {
    [LS_OP_MOMENTS] = {.run = moments},
    [LS_OP_BATCH_NORM] = {.run = batch_norm},
    [LS_OP_BATCH_NORM_SUMS] = {.run = batch_norm_sums},
    [LS_OP_BATCH_NORM_BACKWARD] = {.run = batch_norm},
    [LS_OP_NORMALIZE] = {.run = normalize},
    [LS_OP_NORMALIZE_DATA] = {.run = normalize_data},
    [LS_OP_NORMALIZE_SUMS] = {.add = normalize_sums},
};
