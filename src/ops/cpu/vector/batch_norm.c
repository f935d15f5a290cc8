/* Loops of batch normalisation: over channels, to the loops for what lies how.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/batch_norm.h"

#include "ops/cpu/vector/batch_norm_registers.h"
#include "ops/cpu/vector/lanes.h"

/* The numbers of one channel. */
struct channel {
    float mean, rest, inv_std, scale, bias, factor, mean_dz, mean_dzx, slope;
};

/* Those of channel c that each pass has; 0 for what only `backward` has. */
static inline struct channel channel_at(const struct ls_batch_norm_channels *channels, int64_t c)
{
    return (struct channel){.mean = channels->mean[c],
                            .rest = channels->rest[c],
                            .inv_std = channels->inv_std[c],
                            .scale = channels->scale[c],
                            .bias = channels->bias[c],
                            .slope = channels->slope};
}

static inline float normal(float x, const struct channel *channel)
{
    return ((x - channel->mean) - channel->rest) * channel->inv_std;
}

/* The same, in every lane of a register. */
struct wide_channel {
    LS_REGISTER mean, rest, inv_std, scale, bias, factor, mean_dz, mean_dzx, slope;
};

static ALWAYS_INLINE struct wide_channel widen_channel(const struct channel *channel)
{
    return (struct wide_channel){.mean = LS_SPREAD(channel->mean),
                                 .rest = LS_SPREAD(channel->rest),
                                 .inv_std = LS_SPREAD(channel->inv_std),
                                 .scale = LS_SPREAD(channel->scale),
                                 .bias = LS_SPREAD(channel->bias),
                                 .factor = LS_SPREAD(channel->factor),
                                 .mean_dz = LS_SPREAD(channel->mean_dz),
                                 .mean_dzx = LS_SPREAD(channel->mean_dzx),
                                 .slope = LS_SPREAD(channel->slope)};
}

static ALWAYS_INLINE LS_REGISTER wide_normal(LS_REGISTER x, const struct wide_channel *channel)
{
    return ((x - channel->mean) - channel->rest) * channel->inv_std;
}

/* Sixteen lanes of doubles in registers: a register of floats becomes two. */
#if LS_WIDTH == 16
#define WIDEST(name) name##16
#elif LS_WIDTH == 8
#define WIDEST(name) name##8
#elif LS_WIDTH == 4
#define WIDEST(name) name##4
#else
#define WIDEST(name) name##1
#endif
#define DOUBLES          WIDEST(dreg)
#define LOWER            WIDEST(lower)
#define UPPER            WIDEST(upper)
#define MULTIPLY_ADD     WIDEST(multiply_add)
#define POSITIVE         WIDEST(positive)
#define STORE_DOUBLES    WIDEST(store_doubles)
#define EACH_REGISTER(k) _Pragma("GCC unroll 16") for (int k = 0; k < LS_LANES / LS_WIDTH; k++)
enum { LANE_PARTS = 2 * LS_LANES / LS_WIDTH };

static ALWAYS_INLINE void load_lanes(const double lane[LS_LANES], DOUBLES parts[LANE_PARTS])
{
    EACH_REGISTER(k)
    {
        memcpy(&parts[2 * k], lane + k * LS_WIDTH, sizeof *parts);
        if (LS_WIDTH > 1)
            memcpy(&parts[2 * k + 1], lane + k * LS_WIDTH + LS_WIDTH / 2, sizeof *parts);
        else
            parts[2 * k + 1] = (DOUBLES){0};
    }
}

static ALWAYS_INLINE void store_lanes(const DOUBLES parts[LANE_PARTS], double lane[LS_LANES])
{
    EACH_REGISTER(k)
    STORE_DOUBLES(lane + k * LS_WIDTH, parts[2 * k], parts[2 * k + 1]);
}

static inline double square_of(float distance)
{
    return (double)distance * (double)distance;
}

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

#define ROWS_PASTE(name, type) name##_of_##type

#define NUMBER     float
#define GET(x)     (x)
#define PUT(x)     (x)
#define GETS       LS_LOAD
#define PUTS       LS_STORE
#define GET_LOWER  WIDEST(load_lower)
#define GET_UPPER  WIDEST(load_upper)
#define ROWS(name) ROWS_PASTE(name, fp32)
#include "ops/cpu/vector/batch_norm_rows.h"
#undef NUMBER
#undef GET
#undef PUT
#undef GETS
#undef PUTS
#undef GET_LOWER
#undef GET_UPPER
#undef ROWS

#define NUMBER          uint16_t
#define GET(x)          ls_widen_bf16(x)
#define PUT(x)          ls_round_bf16(x)
#define GETS            ls_load_bf16
#define PUTS            ls_store_bf16
#define GET_LOWER(from) LOWER(ls_load_bf16(from))
#define GET_UPPER(from) UPPER(ls_load_bf16(from))
#define ROWS(name)      ROWS_PASTE(name, bf16)
#include "ops/cpu/vector/batch_norm_rows.h"
#undef NUMBER
#undef GET
#undef PUT
#undef GETS
#undef PUTS
#undef GET_LOWER
#undef GET_UPPER
#undef ROWS

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

static void vector_moments(const struct ls_batch_norm_view *view, const void *numbers, double *mean,
                           double *m2)
{
    const float *x = numbers;
    if (view->bf16)
        moments_of_bf16(view, numbers, mean, m2);
    else if (view->block == 1)
        moments_of_fp32(view, x, mean, m2);
    else
#define DO(width) column_moments##width(view, x + o, mean + c, m2 + c)
        EACH_COLUMN(view, DO)
#undef DO
}

static void vector_forward(const struct ls_batch_norm_view *view,
                           const struct ls_batch_norm_channels *channels, const void *from,
                           void *to)
{
    const float *x = from;
    float *y = to;
    if (view->bf16)
        forward_of_bf16(view, channels, from, to);
    else if (view->block == 1)
        forward_of_fp32(view, channels, x, y);
    else
#define DO(width) column_forward##width(view, channels, c, x + o, y + o)
        EACH_COLUMN(view, DO)
#undef DO
}

static void vector_sums(const struct ls_batch_norm_view *view,
                        const struct ls_batch_norm_channels *channels, const void *gradient,
                        const void *from, const void *to, double *sum_dz, double *sum_dzx)
{
    const float *dy = gradient, *x = from, *y = to;
    if (view->bf16)
        sums_of_bf16(view, channels, gradient, from, to, sum_dz, sum_dzx);
    else if (view->block == 1)
        sums_of_fp32(view, channels, dy, x, y, sum_dz, sum_dzx);
    else
#define DO(width)                                                                                  \
    column_sums##width(view, channels, c, dy + o, x + o, y == NULL ? NULL : y + o, sum_dz + c,     \
                       sum_dzx + c)
        EACH_COLUMN(view, DO)
#undef DO
}

static void vector_backward(const struct ls_batch_norm_view *view,
                            const struct ls_batch_norm_channels *channels, const void *gradient,
                            const void *from, const void *to, void *result)
{
    const float *dy = gradient, *x = from, *y = to;
    float *dx = result;
    if (view->bf16)
        backward_of_bf16(view, channels, gradient, from, to, result);
    else if (view->block == 1)
        backward_of_fp32(view, channels, dy, x, y, dx);
    else
#define DO(width)                                                                                  \
    column_backward##width(view, channels, c, dy + o, x == NULL ? NULL : x + o,                    \
                           y == NULL ? NULL : y + o, dx + o)
        EACH_COLUMN(view, DO)
#undef DO
}

const struct ls_vector_batch_norm LS_ISA_NAME(ls_vector_batch_norm) = {
    .moments = vector_moments,
    .forward = vector_forward,
    .sums = vector_sums,
    .backward = vector_backward,
};
