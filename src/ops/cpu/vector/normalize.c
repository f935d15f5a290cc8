/* Normalisation of each sample by itself, and its gradients.
 *
 * Factors (scale, bias) lie along channels, or, where points are 1 or each element has its own,
 * along the elements of a group. Elements are worked on in single precision: (x - mean) - rest
 * loses nothing where x and mean are close.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/normalize.h"

#include <math.h>

#include "ops/cpu/vector/chunks.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Larger ratios belong to deviations that are nothing but eps, where x^ is next to 0. */
static const double largest_ratio = 1e30;

struct stats {
    float mean, rest, inverse, ratio;
};

static int64_t values_of(const struct ls_vector_normalize_job *normalize)
{
    return normalize->channels * normalize->points;
}

/* Whether factors go along the elements of a group, one by one. */
static bool factor_each(const struct ls_vector_normalize_job *normalize)
{
    return normalize->elements || normalize->points == 1;
}

/* Adds n values to lanes, from the first on. */
static void add_values(const float *x, int64_t n, double lanes[LS_LANES])
{
    double lane[LS_LANES];
    int64_t whole = n - n % LS_LANES;
    memcpy(lane, lanes, sizeof lane);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += (double)x[i + l];
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += (double)x[i];
    memcpy(lanes, lane, sizeof lane);
}

static void add_squares(const float *x, double mean, int64_t n, double lanes[LS_LANES])
{
    double lane[LS_LANES];
    int64_t whole = n - n % LS_LANES;
    memcpy(lane, lanes, sizeof lane);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++) {
            double distance = (double)x[i + l] - mean;
            lane[l] += distance * distance;
        }
    for (int64_t i = whole; i < n; i++) {
        double distance = (double)x[i] - mean;
        lane[i - whole] += distance * distance;
    }
    memcpy(lanes, lane, sizeof lane);
}

static double sum(bool bf16, const void *x, int64_t n)
{
    double lane[LS_LANES] = {0};
    float wide[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        add_values(ls_chunk_read(bf16, x, i, count, wide), count, lane);
    }
    return ls_fold_lanes_double(lane);
}

static double squares_around(bool bf16, const void *x, double mean, int64_t n)
{
    double lane[LS_LANES] = {0};
    float wide[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        add_squares(ls_chunk_read(bf16, x, i, count, wide), mean, count, lane);
    }
    return ls_fold_lanes_double(lane);
}

static struct stats measure(const struct ls_vector_normalize_job *normalize, const void *x)
{
    int64_t n = values_of(normalize);
    double mean = 0, eps = (double)normalize->eps;
    if (!normalize->around_zero)
        mean = sum(normalize->bf16, x, n) / (double)n;
    struct stats stats = {.mean = (float)mean, .inverse = 1, .ratio = 0};
    stats.rest = (float)(mean - (double)stats.mean);
    if (!normalize->variance)
        return stats;
    double variance = squares_around(normalize->bf16, x, mean, n) / (double)n;
    double root = sqrt(variance);
    double deviation = normalize->behind ? root + eps : sqrt(variance + eps);
    double ratio = !normalize->behind ? 1 : root > 0 ? deviation / root : 0;
    stats.inverse = (float)(1 / deviation);
    stats.ratio = (float)(ratio < largest_ratio ? ratio : largest_ratio);
    return stats;
}

static void keep(struct stats stats, float *to)
{
    to[0] = stats.mean;
    to[1] = stats.rest;
    to[2] = stats.inverse;
    to[3] = stats.ratio;
}

static struct stats kept(const float *from)
{
    return (struct stats){from[0], from[1], from[2], from[3]};
}

static ALWAYS_INLINE float normalised(struct stats stats, float x)
{
    return ((x - stats.mean) - stats.rest) * stats.inverse;
}

static void write_run(struct stats stats, const float *x, float scale, float bias, float *y,
                      int64_t n)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++)
        y[i] = scale * normalised(stats, x[i]) + bias;
}

static void write_each(struct stats stats, const float *x, const float *scale, const float *bias,
                       float *y, int64_t n)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++)
        y[i] = scale[i] * normalised(stats, x[i]) + bias[i];
}

/* + 0, as by a bias that is 0: -0 becomes +0. */
static void write_scaled(struct stats stats, const float *x, const float *scale, float *y,
                         int64_t n)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++)
        y[i] = scale[i] * normalised(stats, x[i]) + 0.0F;
}

/* n values from x and y on: with factors each (scale and bias point to them; bias
 * may be NULL), or with the same. */
static void write_values(bool bf16, struct stats stats, const void *x, bool each,
                         const float *scale, const float *bias, void *y, int64_t n)
{
    float wide[LS_CHUNK], wide_y[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        const float *from = ls_chunk_read(bf16, x, i, count, wide);
        float *to = ls_chunk_begin(bf16, y, i, wide_y);
        if (each && bias == NULL)
            write_scaled(stats, from, scale + i, to, count);
        else if (each)
            write_each(stats, from, scale + i, bias + i, to, count);
        else
            write_run(stats, from, *scale, *bias, to, count);
        ls_chunk_end(bf16, y, i, count, to);
    }
}

static void write_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                        const void *x, const float *scale, const float *bias, void *y)
{
    static const float one = 1, zero = 0;
    const bool bf16 = normalize->bf16;
    int64_t points = normalize->points;
    if (scale == NULL) {
        write_values(bf16, stats, x, false, &one, &zero, y, values_of(normalize));
        return;
    }
    if (factor_each(normalize)) {
        write_values(bf16, stats, x, true, scale, bias, y, values_of(normalize));
        return;
    }
    for (int64_t c = 0; c < normalize->channels; c++)
        write_values(bf16, stats, ls_chunk_at(bf16, x, c * points), false, scale + c, bias + c,
                     (void *)ls_chunk_at(bf16, y, c * points), points);
}

static void normalize_forward(const struct ls_vector_normalize_job *normalize, const void *x,
                              const float *scale, const float *bias, void *y, float *stats)
{
    const bool bf16 = normalize->bf16;
    const int64_t values = values_of(normalize), groups = normalize->outer * normalize->groups;
    for (int64_t i = 0; i < groups; i++) {
        const int64_t first = i % normalize->groups * normalize->channels;
        const void *from = ls_chunk_at(bf16, x, i * values);
        const struct stats own = measure(normalize, from);
        if (stats != NULL)
            keep(own, stats + i * LS_NORMALIZE_STATS);
        write_group(normalize, own, from, scale != NULL ? scale + first : NULL,
                    bias != NULL ? bias + first : NULL, (void *)ls_chunk_at(bf16, y, i * values));
    }
}

/* Sums of dz and of dz x^. */
struct sums {
    double plain, along;
};

/* Of values in lanes; loops have copies, which become registers. */
struct lane_sums {
    double plain[LS_LANES], along[LS_LANES];
};

static void add_run(struct stats stats, const float *dy, const float *x, int64_t n,
                    struct lane_sums *sums)
{
    double plain[LS_LANES], along[LS_LANES];
    int64_t whole = n - n % LS_LANES;
    memcpy(plain, sums->plain, sizeof plain);
    memcpy(along, sums->along, sizeof along);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++) {
            plain[l] += (double)dy[i + l];
            along[l] += (double)dy[i + l] * (double)normalised(stats, x[i + l]);
        }
    for (int64_t i = whole; i < n; i++) {
        plain[i - whole] += (double)dy[i];
        along[i - whole] += (double)dy[i] * (double)normalised(stats, x[i]);
    }
    memcpy(sums->plain, plain, sizeof plain);
    memcpy(sums->along, along, sizeof along);
}

static void add_scaled(struct stats stats, const float *dy, const float *x, const float *scale,
                       int64_t n, struct lane_sums *sums)
{
    double plain[LS_LANES], along[LS_LANES];
    int64_t whole = n - n % LS_LANES;
    memcpy(plain, sums->plain, sizeof plain);
    memcpy(along, sums->along, sizeof along);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++) {
            double dz = (double)dy[i + l] * (double)scale[i + l];
            plain[l] += dz;
            along[l] += dz * (double)normalised(stats, x[i + l]);
        }
    for (int64_t i = whole; i < n; i++) {
        double dz = (double)dy[i] * (double)scale[i];
        plain[i - whole] += dz;
        along[i - whole] += dz * (double)normalised(stats, x[i]);
    }
    memcpy(sums->plain, plain, sizeof plain);
    memcpy(sums->along, along, sizeof along);
}

/* Of n values from dy and x on; `scale`, a number for each of them, may be NULL. */
static struct sums sum_values(bool bf16, struct stats stats, const void *dy, const void *x,
                              const float *scale, int64_t n)
{
    struct lane_sums sums = {{0}, {0}};
    float wide_dy[LS_CHUNK], wide_x[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        const float *gradient = ls_chunk_read(bf16, dy, i, count, wide_dy);
        const float *from = ls_chunk_read(bf16, x, i, count, wide_x);
        if (scale == NULL)
            add_run(stats, gradient, from, count, &sums);
        else
            add_scaled(stats, gradient, from, scale + i, count, &sums);
    }
    return (struct sums){ls_fold_lanes_double(sums.plain), ls_fold_lanes_double(sums.along)};
}

static struct sums sum_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                             const void *dy, const void *x, const float *scale)
{
    const bool bf16 = normalize->bf16;
    int64_t points = normalize->points;
    if (scale == NULL || factor_each(normalize))
        return sum_values(bf16, stats, dy, x, scale, values_of(normalize));
    struct sums all = {0, 0};
    for (int64_t c = 0; c < normalize->channels; c++) {
        struct sums own = sum_values(bf16, stats, ls_chunk_at(bf16, dy, c * points),
                                     ls_chunk_at(bf16, x, c * points), NULL, points);
        all.plain += (double)scale[c] * own.plain;
        all.along += (double)scale[c] * own.along;
    }
    return all;
}

/* The means of dz and of dz x^ (times the ratio) of a group. */
struct means {
    float plain, along;
};

static void differentiate_run(struct stats stats, struct means means, const float *dy,
                              const float *x, float scale, float *dx, int64_t n)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++) {
        float along = normalised(stats, x[i]) * means.along;
        dx[i] = ((scale * dy[i] - means.plain) - along) * stats.inverse;
    }
}

static void differentiate_each(struct stats stats, struct means means, const float *dy,
                               const float *x, const float *scale, float *dx, int64_t n)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++) {
        float along = normalised(stats, x[i]) * means.along;
        dx[i] = ((scale[i] * dy[i] - means.plain) - along) * stats.inverse;
    }
}

/* n values from dy, x and dx on; scale: as in write_values. */
static void differentiate_values(bool bf16, struct stats stats, struct means means, const void *dy,
                                 const void *x, bool each, const float *scale, void *dx, int64_t n)
{
    float wide_dy[LS_CHUNK], wide_x[LS_CHUNK], wide_dx[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        const float *gradient = ls_chunk_read(bf16, dy, i, count, wide_dy);
        const float *from = ls_chunk_read(bf16, x, i, count, wide_x);
        float *to = ls_chunk_begin(bf16, dx, i, wide_dx);
        if (each)
            differentiate_each(stats, means, gradient, from, scale + i, to, count);
        else
            differentiate_run(stats, means, gradient, from, *scale, to, count);
        ls_chunk_end(bf16, dx, i, count, to);
    }
}

static void differentiate_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                                const void *dy, const void *x, const float *scale, void *dx)
{
    static const float one = 1;
    const bool bf16 = normalize->bf16, each = scale != NULL && factor_each(normalize);
    int64_t points = normalize->points, n = values_of(normalize);
    const struct sums sums = sum_group(normalize, stats, dy, x, scale);
    const struct means means = {normalize->around_zero ? 0 : (float)(sums.plain / (double)n),
                                (float)(sums.along / (double)n * (double)stats.ratio)};
    if (scale == NULL || each) {
        differentiate_values(bf16, stats, means, dy, x, each, each ? scale : &one, dx, n);
        return;
    }
    for (int64_t c = 0; c < normalize->channels; c++)
        differentiate_values(bf16, stats, means, ls_chunk_at(bf16, dy, c * points),
                             ls_chunk_at(bf16, x, c * points), false, scale + c,
                             (void *)ls_chunk_at(bf16, dx, c * points), points);
}

static void normalize_data(const struct ls_vector_normalize_job *normalize, const void *dy,
                           const void *x, const float *stats, const float *scale, void *dx)
{
    const bool bf16 = normalize->bf16;
    int64_t values = values_of(normalize), groups = normalize->outer * normalize->groups;
    for (int64_t i = 0; i < groups; i++) {
        int64_t first = i % normalize->groups * normalize->channels, at = i * values;
        differentiate_group(normalize, kept(stats + i * LS_NORMALIZE_STATS),
                            ls_chunk_at(bf16, dy, at), ls_chunk_at(bf16, x, at),
                            scale != NULL ? scale + first : NULL,
                            (void *)ls_chunk_at(bf16, dx, at));
    }
}

static void add_each(struct stats stats, const float *restrict dy, const float *restrict x,
                     double *restrict scale, double *restrict bias, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        scale[i] += (double)dy[i] * (double)normalised(stats, x[i]);
        bias[i] += (double)dy[i];
    }
}

/* Each value to sums of its own. */
static void add_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                      const void *dy, const void *x, double *scale, double *bias)
{
    const bool bf16 = normalize->bf16;
    const int64_t n = values_of(normalize);
    float wide_dy[LS_CHUNK], wide_x[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        add_each(stats, ls_chunk_read(bf16, dy, i, count, wide_dy),
                 ls_chunk_read(bf16, x, i, count, wide_x), scale + i, bias + i, count);
    }
}

static void normalize_sums(const struct ls_vector_normalize_job *normalize, const void *dy,
                           const void *x, const float *stats, double *scale, double *bias)
{
    const bool each = factor_each(normalize), bf16 = normalize->bf16;
    int64_t values = values_of(normalize), points = normalize->points;
    int64_t own = each ? values : normalize->channels;
    for (int64_t i = 0; i < normalize->groups * own; i++)
        scale[i] = bias[i] = 0;
    for (int64_t i = 0; i < normalize->outer * normalize->groups; i++) {
        int64_t first = i % normalize->groups * own;
        const struct stats group = kept(stats + i * LS_NORMALIZE_STATS);
        const void *gradient = ls_chunk_at(bf16, dy, i * values);
        const void *from = ls_chunk_at(bf16, x, i * values);
        if (each)
            add_group(normalize, group, gradient, from, scale + first, bias + first);
        for (int64_t c = 0; !each && c < own; c++) {
            struct sums sums = sum_values(bf16, group, ls_chunk_at(bf16, gradient, c * points),
                                          ls_chunk_at(bf16, from, c * points), NULL, points);
            scale[first + c] += sums.along;
            bias[first + c] += sums.plain;
        }
    }
}

const struct ls_vector_normalize LS_ISA_NAME(ls_vector_normalize) = {
    .forward = normalize_forward,
    .data = normalize_data,
    .sums = normalize_sums,
};
