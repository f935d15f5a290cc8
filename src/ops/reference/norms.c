/* Normalisation: by the batch, by sample, by what is around.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/reference/norms.h"

/* ---- By the batch ---------------------------------------------------------------------------- */

int64_t ls_ref_rows(const struct ls_value *x)
{
    return x->rows > 0 ? x->rows : 1;
}

struct ls_part ls_ref_part(const struct ls_call *call, const struct ls_value *x, int p, int *count)
{
    const int moments = call->op->attr.batch_norm.moments;
    *count = 1;
    if (moments < 0)
        return (struct ls_part){.count = x->shape.dim[0] / ls_ref_rows(x)};
    const int grouping = call->op->layer->graph->syncs[moments].grouping;
    struct ls_part part = call->context->parts[grouping].part[p];
    *count = call->context->parts[grouping].count;
    if (ls_ref_rows(x) == x->shape.dim[0]) /* its one sample may be the batch */
        part.count = 1;
    return part;
}

int64_t ls_ref_place(const struct ls_value *x, const struct ls_part *part, int64_t c, int64_t j)
{
    const int64_t points = ls_shape_count(&x->shape, 2, x->shape.rank);
    return ((part->first * ls_ref_rows(x) + j / points) * x->shape.dim[1] + c) * points +
           j % points;
}

double *ls_ref_start_row(const struct ls_call *call, const struct ls_value *x, int sync, int p,
                         const struct ls_part *part)
{
    const int64_t padded = ls_sync_round(x->shape.dim[1]), length = 2 * padded + LS_SYNC_ROW_END;
    double *row = call->context->partial[sync] + p * length;
    memset(row, 0, (size_t)length * sizeof *row);
    row[2 * padded] =
        (double)(part->count * ls_ref_rows(x) * ls_shape_count(&x->shape, 2, x->shape.rank));
    return row;
}

/* The means first, then the squares around them. */
static void moments(const struct ls_call *call)
{
    const struct ls_value *x = call->op->input[0];
    const int64_t channels = x->shape.dim[1], padded = ls_sync_round(channels);
    for (int p = 0, parts = 1; p < parts; p++) {
        const struct ls_part part = ls_ref_part(call, x, p, &parts);
        double *row = ls_ref_start_row(call, x, call->op->attr.batch_norm.moments, p, &part);
        const int64_t count = (int64_t)row[2 * padded];
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t j = 0; j < count; j++)
                row[c] += ls_at(call, 0, ls_ref_place(x, &part, c, j)) / (double)count;
            for (int64_t j = 0; j < count; j++) {
                const double apart = ls_at(call, 0, ls_ref_place(x, &part, c, j)) - row[c];
                row[padded + c] += apart * apart;
            }
        }
    }
}

/* What an element of x is normalised by, and what comes of it. */
struct normal {
    double inverse, scale, x_hat, z, dz; /* dz: the gradient behind f; backward only */
    const float *means;                  /* of dz and, `padded` further on, of dz x^ */
    int64_t c, padded;
    int part;
};

static struct normal normalise(const struct ls_call *call, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const int x = call->op->kind == LS_OP_BATCH_NORM ? 0 : 1, first = x == 0 ? 1 : 3;
    const struct ls_value *value = call->op->input[x];
    const struct ls_axes axes = ls_axes(value, 1, 1);
    const int64_t c = ls_along(&axes, i), row = i / axes.inner / axes.dim;
    const float *a = ls_in(call, first), *b = ls_in(call, first + 1);
    const float *factor = ls_in(call, first + 2), *scale = ls_in(call, first + 3);
    const float *bias = ls_in(call, first + 4), *y = ls_in(call, 2);
    struct normal normal = {.c = c, .padded = ls_sync_round(axes.dim)};
    double by = factor != NULL ? (double)*factor : 1, mean = 0, variance = 1;
    if (attr->moments >= 0) {
        int parts;
        struct ls_part part = ls_ref_part(call, value, 0, &parts);
        while (row >= (part.first + part.count) * ls_ref_rows(value))
            part = ls_ref_part(call, value, ++normal.part, &parts);
        const float *merged =
            call->context->merged[attr->moments] + part.merged * 4 * normal.padded;
        mean = (double)merged[c] + (double)merged[normal.padded + c];
        normal.inverse = (double)merged[2 * normal.padded + c];
        if (call->op->kind == LS_OP_BATCH_NORM_BACKWARD)
            normal.means = call->context->merged[attr->sums] + part.merged * 2 * normal.padded + c;
    } else {
        mean = a != NULL && by != 0 ? (double)a[c] / by : 0;
        variance = b != NULL && by != 0 ? (double)b[c] / by : 1;
        normal.inverse = 1 / sqrt((variance < 0 ? 0 : variance) + (double)attr->eps);
    }
    normal.scale = scale != NULL ? (double)scale[c] : 1;
    normal.x_hat = (ls_at(call, x, i) - mean) * normal.inverse;
    normal.z = normal.scale * normal.x_hat + (bias != NULL ? (double)bias[c] : 0);
    if (x > 0)
        normal.dz = ls_at(call, 0, i);
    if (x > 0 && attr->relu)
        normal.dz =
            ls_relu_backward(normal.dz, y != NULL ? y[i] > 0 : normal.z > 0, attr->relu_slope);
    return normal;
}

static double batch_norm(const struct ls_call *call, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const double z = normalise(call, i).z;
    return attr->relu ? ls_relu(z, attr->relu_slope) : z;
}

/* dscale and dbias; partial results where the statistics are those of a batch. */
static int64_t batch_norm_sums(const struct ls_call *call, int64_t i, double term[2])
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const struct normal normal = normalise(call, i);
    term[0] = normal.dz * normal.x_hat;
    term[1] = normal.dz;
    if (attr->sums < 0 || attr->moments < 0)
        return normal.c;
    for (int p = 0, parts = 1; i == 0 && p < parts; p++) {
        const struct ls_part part = ls_ref_part(call, call->op->input[1], p, &parts);
        ls_ref_start_row(call, call->op->input[1], attr->sums, p, &part);
    }
    double *row = call->context->partial[attr->sums] + normal.c;
    row += normal.part * (2 * normal.padded + LS_SYNC_ROW_END);
    row[0] += term[1];
    row[normal.padded] += term[0];
    return normal.c;
}

static double batch_norm_backward(const struct ls_call *call, int64_t i)
{
    struct normal normal = normalise(call, i);
    if (normal.means != NULL)
        normal.dz -= (double)normal.means[0] + normal.x_hat * (double)normal.means[normal.padded];
    return normal.scale * normal.inverse * normal.dz;
}

/* ---- By sample ------------------------------------------------------------------------------- */

int64_t ls_ref_group_size(const struct ls_call *call)
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const struct ls_axes axes = ls_axes(call->op->input[0], attr->axis, 1);
    return axes.dim / attr->groups * axes.inner;
}

int64_t ls_ref_factor(const struct ls_call *call, int64_t i)
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const struct ls_axes axes = ls_axes(call->op->input[0], attr->axis, 1);
    return attr->elements ? i % (axes.dim * axes.inner) : ls_along(&axes, i);
}

static double x_hat(const float *stats, double x)
{
    return (x - (double)stats[0] - (double)stats[1]) * (double)stats[2];
}

void ls_ref_fill_stats(const struct ls_call *call, double mean, double variance,
                       float stats[LS_REF_STATS])
{
    /* Larger ratios belong to deviations that are nothing but eps, where x^ is next to 0. */
    static const double largest_ratio = 1e30;
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const double root = sqrt(variance), eps = (double)attr->eps;
    const double deviation = attr->behind ? root + eps : sqrt(variance + eps);
    const double ratio = !attr->behind ? 1 : root > 0 ? deviation / root : 0;
    stats[0] = (float)mean;
    stats[1] = (float)(mean - (double)stats[0]);
    stats[2] = attr->variance ? (float)(1 / deviation) : 1;
    stats[3] = attr->variance ? (float)(ratio < largest_ratio ? ratio : largest_ratio) : 0;
}

static void measure(const struct ls_call *call, int64_t first, float stats[LS_REF_STATS])
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const double n = (double)ls_ref_group_size(call);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < ls_ref_group_size(call); i++)
        mean += attr->around_zero ? 0 : ls_at(call, 0, first + i) / n;
    for (int64_t i = 0; i < ls_ref_group_size(call); i++)
        variance += (ls_at(call, 0, first + i) - mean) * (ls_at(call, 0, first + i) - mean) / n;
    ls_ref_fill_stats(call, mean, variance, stats);
}

static void normalize(const struct ls_call *call)
{
    const float *scale = ls_in(call, 1), *bias = ls_in(call, 2);
    const int64_t n = ls_ref_group_size(call);
    float stats[LS_REF_STATS] = {0};
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++) {
        const int64_t f = ls_ref_factor(call, i);
        if (i % n == 0)
            measure(call, i, stats);
        for (int64_t k = 0; i % n == 0 && k < LS_REF_STATS && call->sum[1] != NULL; k++)
            call->sum[1][i / n * LS_REF_STATS + k] = (double)stats[k];
        call->sum[0][i] = (scale != NULL ? (double)scale[f] : 1) * x_hat(stats, ls_at(call, 0, i)) +
                          (bias != NULL ? (double)bias[f] : 0);
    }
}

/* in: dy, x, stats, (scale). */
static void normalize_data(const struct ls_call *call)
{
    const float *scale = ls_in(call, 3), *stats = call->in[2];
    const bool around_zero = call->op->attr.normalize.around_zero;
    const int64_t n = ls_ref_group_size(call);
    for (int64_t first = 0; first < ls_size(call->op->input[0]);
         first += n, stats += LS_REF_STATS) {
        double plain = 0, along = 0;
        for (int64_t i = first; i < first + 2 * n; i++) { /* the sums first, then dx */
            const int64_t at = i < first + n ? i : i - n;
            const double hat = x_hat(stats, ls_at(call, 1, at));
            const double factor = scale != NULL ? (double)scale[ls_ref_factor(call, at)] : 1;
            const double dz = factor * ls_at(call, 0, at);
            plain += i == at && !around_zero ? dz / (double)n : 0;
            along += i == at ? dz * hat / (double)n * (double)stats[3] : 0;
            call->sum[0][at] = (dz - plain - hat * along) * (double)stats[2];
        }
    }
}

static int64_t normalize_sums(const struct ls_call *call, int64_t i, double term[2])
{
    const float *stats = (const float *)call->in[2] + i / ls_ref_group_size(call) * LS_REF_STATS;
    term[1] = ls_at(call, 0, i);
    term[0] = term[1] * x_hat(stats, ls_at(call, 1, i));
    return ls_ref_factor(call, i);
}

/* ---- By what is around ----------------------------------------------------------------------- */

/* s */
static double lrn_scale(const struct ls_call *call, int64_t at);

/* alpha / n, or alpha / n^2 within planes. */
static double share_of(const struct ls_lrn_attr *attr)
{
    return (double)attr->alpha / ((double)attr->size * (attr->within ? (double)attr->size : 1));
}

/* The sum over the places around one, `size` channels or size x size positions, of x^2; `ratios`:
 * of y dy / s. */
static double sum_around(const struct ls_call *call, int64_t at, bool ratios)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    const struct ls_axes rows = ls_axes(call->op->input[0], attr->within ? 2 : 1, 1);
    const int64_t half = attr->size / 2, width = attr->within ? rows.inner : 1;
    const int a = ratios ? 1 : 0, b = ratios ? 2 : 0;
    double sum = 0;
    for (int64_t i = -half; i <= half; i++)
        for (int64_t j = attr->within ? -half : 0; j <= (attr->within ? half : 0); j++) {
            const int64_t row = ls_along(&rows, at) + i, column = at % width + j;
            const int64_t to = at + i * rows.inner + j;
            if (row >= 0 && row < rows.dim && column >= 0 && column < width)
                sum += ls_at(call, a, to) * ls_at(call, b, to) / (ratios ? lrn_scale(call, to) : 1);
        }
    return sum;
}

static double lrn_scale(const struct ls_call *call, int64_t at)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    if (call->op->kind == LS_OP_LRN_BACKWARD && !attr->within)
        return ls_at(call, 3, at);
    return (attr->within ? 1 : (double)attr->k) + share_of(attr) * sum_around(call, at, false);
}

static void lrn(const struct ls_call *call)
{
    const double beta = (double)call->op->attr.lrn.beta;
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++) {
        const double s = lrn_scale(call, i);
        call->sum[0][i] = ls_at(call, 0, i) * Sleef_cinz_powd1_u10purec(s, -beta);
        if (call->sum[1] != NULL)
            call->sum[1][i] = s;
    }
}

/* in: x, y, dy, (scale). */
static double lrn_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    const double beta = (double)attr->beta;
    return ls_at(call, 2, i) * Sleef_cinz_powd1_u10purec(lrn_scale(call, i), -beta) -
           2 * share_of(attr) * beta * ls_at(call, 0, i) * sum_around(call, i, true);
}

const struct ls_compute ls_ref_norms[LS_OP_KINDS] = {
    [LS_OP_MOMENTS] = {.run = moments},
    [LS_OP_BATCH_NORM] = {.element = batch_norm},
    [LS_OP_BATCH_NORM_SUMS] = {.terms = batch_norm_sums},
    [LS_OP_BATCH_NORM_BACKWARD] = {.element = batch_norm_backward},
    [LS_OP_NORMALIZE] = {.add = normalize},
    [LS_OP_NORMALIZE_DATA] = {.add = normalize_data},
    [LS_OP_NORMALIZE_SUMS] = {.terms = normalize_sums},
    [LS_OP_LRN] = {.add = lrn},
    [LS_OP_LRN_BACKWARD] = {.element = lrn_backward},
};
