/* Loops of batch normalisation: over channels, to the loops for what lies how.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/batch_norm.h"

#include "ops/cpu/vector/batch_norm_registers.h"
#include "ops/cpu/vector/batch_norm_rows.h"

/* DO(where, which) for all positions of a channel, the sums a, b, c, d taken in turn. */
#define EACH_POSITION(view, DO, a, b, c, d)                                                        \
    do {                                                                                           \
        const int64_t step = (view)->point_stride, points = (view)->points;                        \
        for (int64_t run = 0; run < (view)->runs; run++) {                                         \
            int64_t at = run * (view)->run_stride, p = 0;                                          \
            for (; p + 4 <= points; p += 4, at += 4 * step) {                                      \
                DO(at, a);                                                                         \
                DO(at + step, b);                                                                  \
                DO(at + 2 * step, c);                                                              \
                DO(at + 3 * step, d);                                                              \
            }                                                                                      \
            if (p < points)                                                                        \
                DO(at, a);                                                                         \
            if (p + 1 < points)                                                                    \
                DO(at + step, b);                                                                  \
            if (p + 2 < points)                                                                    \
                DO(at + 2 * step, c);                                                              \
        }                                                                                          \
    } while (0)

static double value_count(const struct ls_batch_norm_view *view)
{
    return (double)view->runs * (double)view->points;
}

/* Sums to means, and the floats next to these. */
static ALWAYS_INLINE void to_mean(const struct ls_batch_norm_view *view, int n, double *mean,
                                  float *shift)
{
    const double count = value_count(view);
    for (int i = 0; i < n; i++) {
        mean[i] /= count;
        shift[i] = (float)mean[i];
    }
}

/* sum (x - mean)^2 = sum (x - shift)^2 - count (mean - shift)^2. The distances from a float near
 * the mean are exact where cancellation is, and rounded as floats elsewhere. */
static ALWAYS_INLINE void to_m2(const struct ls_batch_norm_view *view, int n, const double *mean,
                                const float *shift, double *squares)
{
    const double count = value_count(view);
    for (int i = 0; i < n; i++) {
        double off = mean[i] - (double)shift[i];
        double m2 = squares[i] - count * (off * off);
        squares[i] = m2 < 0 ? 0 : m2; /* a NaN stays one */
    }
}

/* The moments of `next` values are added to those of `count` values; as in device/merge.c. */
static ALWAYS_INLINE void join_moments(int n, double count, double next, const double *next_mean,
                                       const double *next_m2, double *mean, double *m2)
{
    const double share = next / (count + next), weight = count * share;
    for (int i = 0; i < n; i++) {
        double apart = next_mean[i] - mean[i];
        mean[i] = mean[i] + apart * share;
        m2[i] = (m2[i] + next_m2[i]) + (apart * apart) * weight;
    }
}

/* Positions of a channel that are looked at twice before the next ones: at most 128 KiB. */
enum { PIECE = 2048 };

#define NAME_PASTE_(name, width) name##width
#define NAME_PASTE(name, width)  NAME_PASTE_(name, width)
#define NAME(name)               NAME_PASTE(name, WIDTH)

#if LS_WIDTH >= 16
#define WIDTH 16
#include "ops/cpu/vector/batch_norm_columns.h"
#undef WIDTH
#endif
#if LS_WIDTH >= 8
#define WIDTH 8
#include "ops/cpu/vector/batch_norm_columns.h"
#undef WIDTH
#else
#define WIDTH 4
#include "ops/cpu/vector/batch_norm_columns.h"
#undef WIDTH
#endif
#define WIDTH 1
#include "ops/cpu/vector/batch_norm_columns.h"
#undef WIDTH

#if LS_WIDTH >= 16
#define WIDE(DO)                                                                                   \
    if (left >= 16) {                                                                              \
        DO(16);                                                                                    \
        c += 16;                                                                                   \
    } else if (left >= 8) {                                                                        \
        DO(8);                                                                                     \
        c += 8;                                                                                    \
    }
#elif LS_WIDTH >= 8
#define WIDE(DO)                                                                                   \
    if (left >= 8) {                                                                               \
        DO(8);                                                                                     \
        c += 8;                                                                                    \
    }
#else
#define WIDE(DO)                                                                                   \
    if (left >= 4) {                                                                               \
        DO(4);                                                                                     \
        c += 4;                                                                                    \
    }
#endif

/* DO(width) for all channels, as many at a time as registers hold and as lie side by side: those
 * from c on, whose first value is at o. */
#define EACH_COLUMN(view, DO)                                                                      \
    for (int64_t c = 0; c < (view)->channels;) {                                                   \
        int64_t inside = c % (view)->block, left = (view)->block - inside;                         \
        int64_t o = c / (view)->block * (view)->block_stride + inside;                             \
        WIDE(DO)                                                                                   \
        else                                                                                       \
        {                                                                                          \
            DO(1);                                                                                 \
            c += 1;                                                                                \
        }                                                                                          \
    }

static void moments_of_rows(const struct ls_batch_norm_view *view, const float *x, double *mean,
                            double *m2)
{
    for (int64_t c = 0; c < view->channels; c++) {
        const float *first = x + c * view->block_stride;
        double lane[LS_LANES] = {0}, square[LS_LANES] = {0};
        float shift;
        for (int64_t run = 0; run < view->runs; run++)
            row_sum(first + run * view->run_stride, view->points, lane);
        mean[c] = ls_fold_lanes_double(lane);
        to_mean(view, 1, &mean[c], &shift);
        for (int64_t run = 0; run < view->runs; run++)
            row_squares(first + run * view->run_stride, view->points, shift, square);
        m2[c] = ls_fold_lanes_double(square);
        to_m2(view, 1, &mean[c], &shift, &m2[c]);
    }
}

static void vector_moments(const struct ls_batch_norm_view *view, const float *x, double *mean,
                           double *m2)
{
    if (view->block == 1) {
        moments_of_rows(view, x, mean, m2);
        return;
    }
#define DO(width) column_moments##width(view, x + o, mean + c, m2 + c)
    EACH_COLUMN(view, DO)
#undef DO
}

static void vector_forward(const struct ls_batch_norm_view *view,
                           const struct ls_batch_norm_channels *channels, const float *x, float *y)
{
    if (view->block > 1) {
#define DO(width) column_forward##width(view, channels, c, x + o, y + o)
        EACH_COLUMN(view, DO)
#undef DO
        return;
    }
    for (int64_t c = 0; c < view->channels; c++) {
        const struct channel channel = {.mean = channels->mean[c],
                                        .rest = channels->rest[c],
                                        .inv_std = channels->inv_std[c],
                                        .scale = channels->scale[c],
                                        .bias = channels->bias[c],
                                        .slope = channels->slope};
        for (int64_t run = 0; run < view->runs; run++) {
            int64_t at = c * view->block_stride + run * view->run_stride;
            row_forward(x + at, view->points, &channel, channels->relu, y + at);
        }
    }
}

static void sums_of_row(const struct ls_batch_norm_view *view, const struct channel *channel,
                        bool relu, const float *dy, const float *x, const float *y, double *sum_dz,
                        double *sum_dzx)
{
    double lane[LS_LANES] = {0}, lane_x[LS_LANES] = {0};
    for (int64_t run = 0; run < view->runs; run++) {
        int64_t at = run * view->run_stride;
        if (!relu)
            row_sums(dy + at, x + at, NULL, view->points, channel, GATE_OPEN, lane, lane_x);
        else if (y != NULL)
            row_sums(dy + at, x + at, y + at, view->points, channel, GATE_Y, lane, lane_x);
        else
            row_sums(dy + at, x + at, NULL, view->points, channel, GATE_X, lane, lane_x);
    }
    *sum_dz = ls_fold_lanes_double(lane);
    *sum_dzx = ls_fold_lanes_double(lane_x);
}

static void vector_sums(const struct ls_batch_norm_view *view,
                        const struct ls_batch_norm_channels *channels, const float *dy,
                        const float *x, const float *y, double *sum_dz, double *sum_dzx)
{
    if (view->block > 1) {
#define DO(width)                                                                                  \
    column_sums##width(view, channels, c, dy + o, x + o, y == NULL ? NULL : y + o, sum_dz + c,     \
                       sum_dzx + c)
        EACH_COLUMN(view, DO)
#undef DO
        return;
    }
    for (int64_t c = 0; c < view->channels; c++) {
        const struct channel channel = {.mean = channels->mean[c],
                                        .rest = channels->rest[c],
                                        .inv_std = channels->inv_std[c],
                                        .scale = channels->scale[c],
                                        .bias = channels->bias[c],
                                        .slope = channels->slope};
        int64_t o = c * view->block_stride;
        sums_of_row(view, &channel, channels->relu, dy + o, x + o, y == NULL ? NULL : y + o,
                    sum_dz + c, sum_dzx + c);
    }
}

static void backward_of_row(const struct ls_batch_norm_view *view, const struct channel *channel,
                            bool relu, const float *dy, const float *x, const float *y, float *dx)
{
    for (int64_t run = 0; run < view->runs; run++) {
        int64_t at = run * view->run_stride;
        const float *from = x == NULL ? NULL : x + at;
        if (!relu)
            row_backward(dy + at, from, NULL, view->points, channel, GATE_OPEN, dx + at);
        else if (y != NULL)
            row_backward(dy + at, from, y + at, view->points, channel, GATE_Y, dx + at);
        else
            row_backward(dy + at, from, NULL, view->points, channel, GATE_X, dx + at);
    }
}

static void vector_backward(const struct ls_batch_norm_view *view,
                            const struct ls_batch_norm_channels *channels, const float *dy,
                            const float *x, const float *y, float *dx)
{
    if (view->block > 1) {
#define DO(width)                                                                                  \
    column_backward##width(view, channels, c, dy + o, x == NULL ? NULL : x + o,                    \
                           y == NULL ? NULL : y + o, dx + o)
        EACH_COLUMN(view, DO)
#undef DO
        return;
    }
    for (int64_t c = 0; c < view->channels; c++) {
        const struct channel channel = {.mean = channels->mean[c],
                                        .rest = channels->rest[c],
                                        .inv_std = channels->inv_std[c],
                                        .scale = channels->scale[c],
                                        .bias = channels->bias[c],
                                        .factor = channels->factor[c],
                                        .mean_dz = x == NULL ? 0 : channels->mean_dz[c],
                                        .mean_dzx = x == NULL ? 0 : channels->mean_dzx[c],
                                        .slope = channels->slope};
        int64_t o = c * view->block_stride;
        backward_of_row(view, &channel, channels->relu, dy + o, x == NULL ? NULL : x + o,
                        y == NULL ? NULL : y + o, dx + o);
    }
}

const struct ls_vector_batch_norm LS_ISA_NAME(ls_vector_batch_norm) = {
    .moments = vector_moments,
    .forward = vector_forward,
    .sums = vector_sums,
    .backward = vector_backward,
};
