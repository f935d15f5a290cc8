/* Normalisation: by the batch, by sample, by what is around.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "ir/graph.h"
#include "ir/layer.h"
#include "ops/reference/reference.h"

/* ---- By the batch ---------------------------------------------------------------------------- */

/* The parts of the micro-batch; NULL: it is normalised by saved averages. */
static const struct ls_parts *parts_of(const struct ls_ref_call *call)
{
    const int moments = call->op->attr.batch_norm.moments;
    if (moments < 0)
        return NULL;
    return &call->context->parts[call->op->layer->graph->syncs[moments].grouping];
}

/* An element of x: its part and channel, how many elements these have, and what it is normalised
 * by. */
struct place {
    int part;
    int64_t c, padded, count;
    double inverse, scale, x_hat, z, dz; /* dz: the gradient behind f; backward only */
};

/* Where the merged numbers of a sync are for an element, `arrays` of them for each channel. */
static const float *merged_at(const struct ls_ref_call *call, int sync, const struct place *place,
                              int arrays)
{
    const struct ls_part *part = &parts_of(call)->part[place->part];
    return call->context->merged[sync] + part->merged * arrays * place->padded + place->c;
}

static double *partial_of(const struct ls_ref_call *call, int sync, const struct place *place)
{
    return call->context->partial[sync] + place->part * (2 * place->padded + LS_SYNC_ROW_END);
}

/* Which part and channel element i of x is of. */
static struct place locate(const struct ls_ref_call *call, const struct ls_value *x, int64_t i)
{
    const struct ls_ref_split split = ls_ref_split(x, 1, 1);
    const struct ls_parts *parts = parts_of(call);
    const int64_t row = i / split.inner / split.dim, rows = x->rows > 0 ? x->rows : 1;
    struct place place = {.c = ls_ref_along(&split, i), .padded = ls_sync_round(split.dim)};
    if (parts == NULL)
        return place;
    while (row >= (parts->part[place.part].first + parts->part[place.part].count) * rows)
        place.part++;
    place.count = parts->part[place.part].count * rows * split.inner;
    return place;
}

/* The same with what it is normalised by; inputs from `first` on: (mean, variance, factor),
 * (scale), (bias). */
static struct place normalise(const struct ls_ref_call *call, int x, int first, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const float *a = ls_ref_in(call, first), *b = ls_ref_in(call, first + 1);
    const float *factor = ls_ref_in(call, first + 2), *scale = ls_ref_in(call, first + 3);
    const float *bias = ls_ref_in(call, first + 4), *y = ls_ref_in(call, 2);
    struct place place = locate(call, call->op->input[x], i);
    double mean, by = factor != NULL ? (double)*factor : 1;
    if (attr->moments >= 0) {
        const float *merged = merged_at(call, attr->moments, &place, 4);
        mean = (double)merged[0] + (double)merged[place.padded];
        place.inverse = (double)merged[2 * place.padded];
    } else {
        double variance = b == NULL || by == 0 ? 1 : (double)b[place.c] / by;
        mean = a == NULL || by == 0 ? 0 : (double)a[place.c] / by;
        place.inverse = 1 / sqrt((variance < 0 ? 0 : variance) + (double)attr->eps);
    }
    place.scale = scale != NULL ? (double)scale[place.c] : 1;
    place.x_hat = (ls_ref_at(call, x, i) - mean) * place.inverse;
    place.z = place.scale * place.x_hat + (bias != NULL ? (double)bias[place.c] : 0);
    if (x == 0)
        return place;
    place.dz = ls_ref_at(call, 0, i);
    if (attr->relu)
        place.dz =
            ls_ref_relu_backward(place.dz, y != NULL ? y[i] > 0 : place.z > 0, attr->relu_slope);
    return place;
}

/* Zeroes the rows of partial results for a sync and sets their counts. */
static void start_rows(const struct ls_ref_call *call, int sync, const struct ls_value *x)
{
    const struct ls_parts *parts = parts_of(call);
    const int64_t sample = ls_ref_size(x) / x->shape.dim[0] * (x->rows > 0 ? x->rows : 1);
    for (int p = 0; p < parts->count; p++) {
        const struct place place = locate(call, x, parts->part[p].first * sample);
        double *row = partial_of(call, sync, &place);
        memset(row, 0, (size_t)(2 * place.padded + LS_SYNC_ROW_END) * sizeof *row);
        row[2 * place.padded] = (double)place.count;
    }
}

/* The means first, then the squares around them. */
static void moments(const struct ls_ref_call *call)
{
    const struct ls_value *x = call->op->input[0];
    const int sync = call->op->attr.batch_norm.moments;
    start_rows(call, sync, x);
    for (int64_t i = 0; i < 2 * ls_ref_size(x); i++) {
        const bool second = i >= ls_ref_size(x);
        const int64_t at = second ? i - ls_ref_size(x) : i;
        const struct place place = locate(call, x, at);
        double *row = partial_of(call, sync, &place), apart = ls_ref_at(call, 0, at);
        if (second) {
            apart -= row[place.c] / (double)place.count;
            row[place.padded + place.c] += apart * apart;
        } else {
            row[place.c] += apart;
        }
    }
    const struct ls_parts *parts = parts_of(call);
    for (int64_t k = 0; k < parts->count * x->shape.dim[1]; k++) {
        struct place place = {.part = (int)(k / x->shape.dim[1]),
                              .padded = ls_sync_round(x->shape.dim[1])};
        double *row = partial_of(call, sync, &place);
        row[k % x->shape.dim[1]] /= row[2 * place.padded];
    }
}

static double batch_norm(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const double z = normalise(call, 0, 1, i).z;
    return attr->relu ? ls_ref_relu(z, attr->relu_slope) : z;
}

static int64_t batch_norm_sums(const struct ls_ref_call *call, int64_t i, double term[2])
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    const struct place place = normalise(call, 1, 3, i);
    term[0] = place.dz * place.x_hat;
    term[1] = place.dz;
    if (attr->sums >= 0 && attr->moments >= 0) {
        if (i == 0)
            start_rows(call, attr->sums, call->op->input[1]);
        double *row = partial_of(call, attr->sums, &place) + place.c;
        row[0] += term[1];
        row[place.padded] += term[0];
    }
    return place.c;
}

static double batch_norm_backward(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_batch_norm_attr *attr = &call->op->attr.batch_norm;
    struct place place = normalise(call, 1, 3, i);
    if (attr->moments >= 0) {
        const float *means = merged_at(call, attr->sums, &place, 2);
        place.dz -= (double)means[0] + place.x_hat * (double)means[place.padded];
    }
    return place.scale * place.inverse * place.dz;
}

/* ---- By sample ------------------------------------------------------------------------------- */

/* Larger ratios belong to deviations that are nothing but eps, where x^ is next to 0. */
static const double largest_ratio = 1e30;
enum { STATS = 4 };

/* Numbers of a group of values. */
static int64_t group_size(const struct ls_ref_call *call)
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const struct ls_ref_split split = ls_ref_split(call->op->input[0], attr->axis, 1);
    return split.dim / attr->groups * split.inner;
}

/* Which number of scale and bias is for element i. */
static int64_t factor_of(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const struct ls_ref_split split = ls_ref_split(call->op->input[0], attr->axis, 1);
    return attr->elements ? i % (split.dim * split.inner) : ls_ref_along(&split, i);
}

static double x_hat(const float *stats, double x)
{
    return (x - (double)stats[0] - (double)stats[1]) * (double)stats[2];
}

static void measure(const struct ls_ref_call *call, int64_t first, float stats[STATS])
{
    const struct ls_normalize_attr *attr = &call->op->attr.normalize;
    const int64_t n = group_size(call);
    const double eps = (double)attr->eps;
    double sum = 0, squares = 0, deviation = 1, ratio = 0;
    for (int64_t i = first; i < first + n; i++)
        sum += ls_ref_at(call, 0, i);
    const double mean = sum / (double)n;
    for (int64_t i = first; i < first + n; i++)
        squares += (ls_ref_at(call, 0, i) - mean) * (ls_ref_at(call, 0, i) - mean);
    if (attr->variance) {
        const double root = sqrt(squares / (double)n);
        deviation = attr->behind ? root + eps : sqrt(squares / (double)n + eps);
        ratio = !attr->behind ? 1 : root > 0 ? deviation / root : 0;
    }
    stats[0] = (float)mean;
    stats[1] = (float)(mean - (double)stats[0]);
    stats[2] = (float)(1 / deviation);
    stats[3] = (float)(ratio < largest_ratio ? ratio : largest_ratio);
}

static void normalize(const struct ls_ref_call *call)
{
    const float *scale = ls_ref_in(call, 1), *bias = ls_ref_in(call, 2);
    const int64_t n = group_size(call);
    float *kept = call->op->outputs > 1 ? call->out[1] : NULL, stats[STATS];
    for (int64_t i = 0; i < ls_ref_size(call->op->input[0]); i++) {
        const int64_t f = factor_of(call, i);
        if (i % n == 0)
            measure(call, i, stats);
        if (i % n == 0 && kept != NULL)
            memcpy(kept + i / n * STATS, stats, sizeof stats);
        ((float *)call->out[0])[i] =
            (float)((scale != NULL ? (double)scale[f] : 1) * x_hat(stats, ls_ref_at(call, 0, i)) +
                    (bias != NULL ? (double)bias[f] : 0));
    }
}

/* in: dy, x, stats, (scale). */
static void normalize_data(const struct ls_ref_call *call)
{
    const float *scale = ls_ref_in(call, 3);
    const int64_t n = group_size(call);
    for (int64_t first = 0; first < ls_ref_size(call->op->input[0]); first += n) {
        const float *stats = (const float *)call->in[2] + first / n * STATS;
        double plain = 0, along = 0;
        for (int64_t i = first; i < first + 2 * n; i++) { /* the sums first, then dx */
            const int64_t at = i < first + n ? i : i - n;
            const double hat = x_hat(stats, ls_ref_at(call, 1, at));
            double dz = ls_ref_at(call, 0, at);
            dz *= scale != NULL ? (double)scale[factor_of(call, at)] : 1;
            plain += i == at ? dz / (double)n : 0;
            along += i == at ? dz * hat / (double)n * (double)stats[3] : 0;
            if (i != at)
                ((float *)call->out[0])[at] =
                    (float)((dz - plain - hat * along) * (double)stats[2]);
        }
    }
}

static int64_t normalize_sums(const struct ls_ref_call *call, int64_t i, double term[2])
{
    const float *stats = (const float *)call->in[2] + i / group_size(call) * STATS;
    term[1] = ls_ref_at(call, 0, i);
    term[0] = term[1] * x_hat(stats, ls_ref_at(call, 1, i));
    return factor_of(call, i);
}

/* ---- By what is around ----------------------------------------------------------------------- */

/* The sum of f over the places around one: `size` channels, or size x size positions. */
static double sum_around(const struct ls_ref_call *call, int64_t at,
                         double (*f)(const struct ls_ref_call *call, int64_t at))
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    const struct ls_value *x = call->op->input[0];
    const int first = attr->within ? 2 : 1; /* the first axis that it goes along */
    const struct ls_ref_split rows = ls_ref_split(x, first, 1);
    const int64_t half = attr->size / 2, width = attr->within ? rows.inner : 1;
    double sum = 0;
    for (int64_t i = -half; i <= half; i++)
        for (int64_t j = attr->within ? -half : 0; j <= (attr->within ? half : 0); j++) {
            const int64_t row = ls_ref_along(&rows, at) + i, column = at % width + j;
            if (row >= 0 && row < rows.dim && column >= 0 && column < width)
                sum += f(call, at + i * rows.inner + j);
        }
    return sum;
}

static double square_at(const struct ls_ref_call *call, int64_t at)
{
    return ls_ref_at(call, 0, at) * ls_ref_at(call, 0, at);
}

/* alpha / n, or alpha / n^2 within planes. */
static double share_of(const struct ls_lrn_attr *attr)
{
    return (double)attr->alpha / ((double)attr->size * (attr->within ? (double)attr->size : 1));
}

static double lrn_scale(const struct ls_ref_call *call, int64_t at)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    if (call->op->kind == LS_OP_LRN_BACKWARD && !attr->within)
        return ls_ref_at(call, 3, at);
    return (attr->within ? 1 : (double)attr->k) + share_of(attr) * sum_around(call, at, square_at);
}

static double ratio_at(const struct ls_ref_call *call, int64_t at)
{
    return ls_ref_at(call, 1, at) * ls_ref_at(call, 2, at) / lrn_scale(call, at);
}

static void lrn(const struct ls_ref_call *call)
{
    const double beta = (double)call->op->attr.lrn.beta;
    float *scale = call->op->outputs > 1 ? call->out[1] : NULL;
    for (int64_t i = 0; i < ls_ref_size(call->op->input[0]); i++) {
        const double s = lrn_scale(call, i);
        ((float *)call->out[0])[i] =
            (float)(ls_ref_at(call, 0, i) * Sleef_cinz_powd1_u10purec(s, -beta));
        if (scale != NULL)
            scale[i] = (float)s;
    }
}

/* in: x, y, dy, (scale). */
static double lrn_backward(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    const double beta = (double)attr->beta;
    return ls_ref_at(call, 2, i) * Sleef_cinz_powd1_u10purec(lrn_scale(call, i), -beta) -
           2 * share_of(attr) * beta * ls_ref_at(call, 0, i) * sum_around(call, i, ratio_at);
}

const struct ls_ref_compute ls_ref_norms[LS_OP_KINDS] = {
    [LS_OP_MOMENTS] = {.run = moments},
    [LS_OP_BATCH_NORM] = {.element = batch_norm},
    [LS_OP_BATCH_NORM_SUMS] = {.terms = batch_norm_sums},
    [LS_OP_BATCH_NORM_BACKWARD] = {.element = batch_norm_backward},
    [LS_OP_NORMALIZE] = {.run = normalize},
    [LS_OP_NORMALIZE_DATA] = {.run = normalize_data},
    [LS_OP_NORMALIZE_SUMS] = {.terms = normalize_sums},
    [LS_OP_LRN] = {.run = lrn},
    [LS_OP_LRN_BACKWARD] = {.element = lrn_backward},
};
