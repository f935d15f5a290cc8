/* PReLU and its gradients.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/prelu.h"

#include "ops/cpu/vector/chunks.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Calls RUN(run, lanes) with a number of lanes that the compiler knows where it is that of a
 * block. */
#define KNOWN_LANES(lanes, RUN, ...)                                                               \
    do {                                                                                           \
        if ((lanes) == 16)                                                                         \
            RUN(__VA_ARGS__, 16);                                                                  \
        else if ((lanes) == 8)                                                                     \
            RUN(__VA_ARGS__, 8);                                                                   \
        else                                                                                       \
            RUN(__VA_ARGS__, lanes);                                                               \
    } while (0)

/* One channel: `from` is x (forward) or dy, its sign that of `sign`. */
static void run_points(const float *from, const float *sign, float slope, float *to, int64_t points)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < points; i++) {
        float above = from[i], below = slope * above;
        to[i] = sign[i] > 0 ? above : below;
    }
}

static ALWAYS_INLINE void run_lanes(const float *from, const float *sign, const float *slope,
                                    float *to, int64_t points, int64_t lanes)
{
    for (int64_t p = 0; p < points; p++) {
        LS_ELEMENTWISE
        for (int64_t l = 0; l < lanes; l++) {
            float above = from[p * lanes + l], below = slope[l] * above;
            to[p * lanes + l] = sign[p * lanes + l] > 0 ? above : below;
        }
    }
}

/* The points of channel c, or the channels from c on where they lie beside each other, from number
 * `first` of the arrays on. */
static void run_some(const struct ls_prelu *prelu, int64_t first, int64_t c, const void *from,
                     const void *sign, const float *slope, void *to)
{
    const bool bf16 = prelu->bf16;
    const int64_t lanes = prelu->lanes, run = prelu->points * lanes;
    float wide[LS_CHUNK], wide_sign[LS_CHUNK], wide_to[LS_CHUNK];
    for (int64_t i = 0, n; i < run; i += n) {
        n = ls_chunk_count(bf16, run - i);
        const float *x = ls_chunk_read(bf16, from, first + i, n, wide);
        const float *gate = from == sign ? x : ls_chunk_read(bf16, sign, first + i, n, wide_sign);
        float *y = ls_chunk_begin(bf16, to, first + i, wide_to);
        if (lanes == 1)
            run_points(x, gate, slope[c], y, n);
        else if (bf16) /* plain: there is one point */
            run_lanes(x, gate, slope + c + i, y, 1, n);
        else
            KNOWN_LANES(lanes, run_lanes, x, gate, slope + c, y, prelu->points);
        ls_chunk_end(bf16, to, first + i, n, y);
    }
}

static void run_all(const struct ls_prelu *prelu, const void *from, const void *sign,
                    const float *slope, void *to)
{
    const int64_t lanes = prelu->lanes, run = prelu->points * lanes;
    int64_t first = 0;
    for (int64_t o = 0; o < prelu->outer; o++)
        for (int64_t c = 0; c < prelu->channels; c += lanes, first += run)
            run_some(prelu, first, c, from, sign, slope, to);
}

static void prelu_forward(const struct ls_prelu *prelu, const void *x, const float *slope, void *y)
{
    run_all(prelu, x, x, slope, y);
}

static void prelu_data(const struct ls_prelu *prelu, const void *dy, const void *x,
                       const float *slope, void *dx)
{
    run_all(prelu, dy, x, slope, dx);
}

static inline double term(float dy, float x)
{
    double product = (double)dy * (double)x;
    return x > 0 ? 0.0 : product;
}

/* Adds points to lanes, from the first on. */
static void add_points(const float *dy, const float *x, int64_t points, double lane[LS_LANES])
{
    double sum[LS_LANES];
    int64_t whole = points - points % LS_LANES;
    memcpy(sum, lane, sizeof sum);
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            sum[l] += term(dy[i + l], x[i + l]);
    for (int64_t i = whole; i < points; i++)
        sum[i - whole] += term(dy[i], x[i]);
    memcpy(lane, sum, sizeof sum);
}

static ALWAYS_INLINE void sum_lanes(const float *restrict dy, const float *restrict x,
                                    double *restrict sum, int64_t points, int64_t lanes)
{
    for (int64_t p = 0; p < points; p++)
        for (int64_t l = 0; l < lanes; l++)
            sum[l] += term(dy[p * lanes + l], x[p * lanes + l]);
}

/* The sums of what run_some is about. */
static void sum_some(const struct ls_prelu *prelu, int64_t first, const void *dy, const void *x,
                     double *sum)
{
    const bool bf16 = prelu->bf16;
    const int64_t lanes = prelu->lanes, run = prelu->points * lanes;
    double lane[LS_LANES] = {0};
    float wide_dy[LS_CHUNK], wide_x[LS_CHUNK];
    for (int64_t i = 0, n; i < run; i += n) {
        n = ls_chunk_count(bf16, run - i);
        const float *gradient = ls_chunk_read(bf16, dy, first + i, n, wide_dy);
        const float *from = ls_chunk_read(bf16, x, first + i, n, wide_x);
        if (lanes == 1)
            add_points(gradient, from, n, lane);
        else if (bf16)
            sum_lanes(gradient, from, sum + i, 1, n);
        else
            KNOWN_LANES(lanes, sum_lanes, gradient, from, sum, prelu->points);
    }
    if (lanes == 1)
        *sum += ls_fold_lanes_double(lane);
}

static void prelu_slope(const struct ls_prelu *prelu, const void *dy, const void *x, double *sum)
{
    const int64_t lanes = prelu->lanes, run = prelu->points * lanes;
    int64_t first = 0;
    for (int64_t c = 0; c < prelu->channels; c++)
        sum[c] = 0;
    for (int64_t o = 0; o < prelu->outer; o++)
        for (int64_t c = 0; c < prelu->channels; c += lanes, first += run)
            sum_some(prelu, first, dy, x, sum + c);
}

const struct ls_vector_prelu LS_ISA_NAME(ls_vector_prelu) = {
    .forward = prelu_forward,
    .data = prelu_data,
    .slope = prelu_slope,
};
