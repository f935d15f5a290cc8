/* Normalisation of each sample by itself, and its gradients.
 *
 * Factors (scale, bias) lie along channels, or, where points are 1 or each element has its own,
 * along the elements of a group. Elements are worked on in single precision: (x - mean) - rest
 * loses nothing where x and mean are close.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/normalize.h"

#include <math.h>

#include "ops/cpu/vector/lanes.h"

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

static double sum(const float *x, int64_t n)
{
    double lane[LS_LANES] = {0};
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += (double)x[i + l];
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += (double)x[i];
    return ls_fold_lanes_double(lane);
}

static double squares_around(const float *x, double mean, int64_t n)
{
    double lane[LS_LANES] = {0};
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++) {
            double distance = (double)x[i + l] - mean;
            lane[l] += distance * distance;
        }
    for (int64_t i = whole; i < n; i++) {
        double distance = (double)x[i] - mean;
        lane[i - whole] += distance * distance;
    }
    return ls_fold_lanes_double(lane);
}

static struct stats measure(const struct ls_vector_normalize_job *normalize, const float *x)
{
    int64_t n = values_of(normalize);
    double mean = sum(x, n) / (double)n, eps = (double)normalize->eps;
    struct stats stats = {.mean = (float)mean, .inverse = 1, .ratio = 0};
    stats.rest = (float)(mean - (double)stats.mean);
    if (!normalize->variance)
        return stats;
    double variance = squares_around(x, mean, n) / (double)n, root = sqrt(variance);
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

static void write_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                        const float *x, const float *scale, const float *bias, float *y)
{
    int64_t points = normalize->points;
    if (scale == NULL || bias == NULL)
        write_run(stats, x, 1, 0, y, values_of(normalize));
    else if (factor_each(normalize))
        write_each(stats, x, scale, bias, y, values_of(normalize));
    else
        for (int64_t c = 0; c < normalize->channels; c++)
            write_run(stats, x + c * points, scale[c], bias[c], y + c * points, points);
}

static void normalize_forward(const struct ls_vector_normalize_job *normalize, const float *x,
                              const float *scale, const float *bias, float *y, float *stats)
{
    int64_t values = values_of(normalize);
    for (int64_t o = 0; o < normalize->outer; o++)
        for (int64_t g = 0; g < normalize->groups; g++, x += values, y += values) {
            int64_t first = g * normalize->channels;
            const struct stats own = measure(normalize, x);
            if (stats != NULL)
                keep(own, stats + (o * normalize->groups + g) * LS_NORMALIZE_STATS);
            write_group(normalize, own, x, scale != NULL ? scale + first : NULL,
                        bias != NULL ? bias + first : NULL, y);
        }
}

/* Sums of dz and of dz x^. */
struct sums {
    double plain, along;
};

static struct sums sum_run(struct stats stats, const float *dy, const float *x, int64_t n)
{
    double plain[LS_LANES] = {0}, along[LS_LANES] = {0};
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++) {
            plain[l] += (double)dy[i + l];
            along[l] += (double)dy[i + l] * (double)normalised(stats, x[i + l]);
        }
    for (int64_t i = whole; i < n; i++) {
        plain[i - whole] += (double)dy[i];
        along[i - whole] += (double)dy[i] * (double)normalised(stats, x[i]);
    }
    return (struct sums){ls_fold_lanes_double(plain), ls_fold_lanes_double(along)};
}

static struct sums sum_each(struct stats stats, const float *dy, const float *x, const float *scale,
                            int64_t n)
{
    double plain[LS_LANES] = {0}, along[LS_LANES] = {0};
    int64_t whole = n - n % LS_LANES;
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
    return (struct sums){ls_fold_lanes_double(plain), ls_fold_lanes_double(along)};
}

static struct sums sum_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                             const float *dy, const float *x, const float *scale)
{
    int64_t points = normalize->points;
    if (scale == NULL)
        return sum_run(stats, dy, x, values_of(normalize));
    if (factor_each(normalize))
        return sum_each(stats, dy, x, scale, values_of(normalize));
    struct sums all = {0, 0};
    for (int64_t c = 0; c < normalize->channels; c++) {
        struct sums own = sum_run(stats, dy + c * points, x + c * points, points);
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

static void differentiate_group(const struct ls_vector_normalize_job *normalize, struct stats stats,
                                const float *dy, const float *x, const float *scale, float *dx)
{
    int64_t points = normalize->points, n = values_of(normalize);
    const struct sums sums = sum_group(normalize, stats, dy, x, scale);
    const struct means means = {(float)(sums.plain / (double)n),
                                (float)(sums.along / (double)n * (double)stats.ratio)};
    if (scale == NULL)
        differentiate_run(stats, means, dy, x, 1, dx, n);
    else if (factor_each(normalize))
        differentiate_each(stats, means, dy, x, scale, dx, n);
    else
        for (int64_t c = 0; c < normalize->channels; c++)
            differentiate_run(stats, means, dy + c * points, x + c * points, scale[c],
                              dx + c * points, points);
}

static void normalize_data(const struct ls_vector_normalize_job *normalize, const float *dy,
                           const float *x, const float *stats, const float *scale, float *dx)
{
    int64_t values = values_of(normalize), groups = normalize->outer * normalize->groups;
    for (int64_t i = 0; i < groups; i++) {
        int64_t first = i % normalize->groups * normalize->channels, at = i * values;
        differentiate_group(normalize, kept(stats + i * LS_NORMALIZE_STATS), dy + at, x + at,
                            scale != NULL ? scale + first : NULL, dx + at);
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

static void normalize_sums(const struct ls_vector_normalize_job *normalize, const float *dy,
                           const float *x, const float *stats, double *scale, double *bias)
{
    bool each = factor_each(normalize);
    int64_t values = values_of(normalize), points = normalize->points;
    int64_t own = each ? values : normalize->channels;
    for (int64_t i = 0; i < normalize->groups * own; i++)
        scale[i] = bias[i] = 0;
    for (int64_t i = 0; i < normalize->outer * normalize->groups; i++, dy += values, x += values) {
        int64_t first = i % normalize->groups * own;
        const struct stats group = kept(stats + i * LS_NORMALIZE_STATS);
        if (each)
            add_each(group, dy, x, scale + first, bias + first, values);
        for (int64_t c = 0; !each && c < own; c++) {
            struct sums sums = sum_run(group, dy + c * points, x + c * points, points);
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
