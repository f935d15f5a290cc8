/* PReLU and its gradients.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/prelu.h"

#include "ops/cpu/vector/lanes.h"

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

static void run_all(const struct ls_prelu *prelu, const float *from, const float *sign,
                    const float *slope, float *to)
{
    int64_t lanes = prelu->lanes, run = prelu->points * lanes;
    for (int64_t o = 0; o < prelu->outer; o++)
        for (int64_t c = 0; c < prelu->channels; c += lanes, from += run, sign += run, to += run)
            if (lanes == 1)
                run_points(from, sign, slope[c], to, prelu->points);
            else
                KNOWN_LANES(lanes, run_lanes, from, sign, slope + c, to, prelu->points);
}

static void prelu_forward(const struct ls_prelu *prelu, const float *x, const float *slope,
                          float *y)
{
    run_all(prelu, x, x, slope, y);
}

static void prelu_data(const struct ls_prelu *prelu, const float *dy, const float *x,
                       const float *slope, float *dx)
{
    run_all(prelu, dy, x, slope, dx);
}

static inline double term(float dy, float x)
{
    double product = (double)dy * (double)x;
    return x > 0 ? 0.0 : product;
}

static double sum_points(const float *dy, const float *x, int64_t points)
{
    double lane[LS_LANES] = {0};
    int64_t whole = points - points % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += term(dy[i + l], x[i + l]);
    for (int64_t i = whole; i < points; i++)
        lane[i - whole] += term(dy[i], x[i]);
    return ls_fold_lanes_double(lane);
}

static ALWAYS_INLINE void sum_lanes(const float *restrict dy, const float *restrict x,
                                    double *restrict sum, int64_t points, int64_t lanes)
{
    for (int64_t p = 0; p < points; p++)
        for (int64_t l = 0; l < lanes; l++)
            sum[l] += term(dy[p * lanes + l], x[p * lanes + l]);
}

static void prelu_slope(const struct ls_prelu *prelu, const float *dy, const float *x, double *sum)
{
    int64_t lanes = prelu->lanes, run = prelu->points * lanes;
    for (int64_t c = 0; c < prelu->channels; c++)
        sum[c] = 0;
    for (int64_t o = 0; o < prelu->outer; o++)
        for (int64_t c = 0; c < prelu->channels; c += lanes, dy += run, x += run)
            if (lanes == 1)
                sum[c] += sum_points(dy, x, prelu->points);
            else
                KNOWN_LANES(lanes, sum_lanes, dy, x, sum + c, prelu->points);
}

const struct ls_vector_prelu LS_ISA_NAME(ls_vector_prelu) = {
    .forward = prelu_forward,
    .data = prelu_data,
    .slope = prelu_slope,
};
