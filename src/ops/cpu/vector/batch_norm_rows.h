/* For batch_norm.c: batch normalisation where the positions of a channel are contiguous. All
 * pointers are to the channel's first value. Each run starts anew in lane 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BATCH_NORM_ROWS_H
#define LS_OPS_CPU_VECTOR_BATCH_NORM_ROWS_H

#include "ops/cpu/vector/batch_norm.h"
#include "ops/cpu/vector/batch_norm_registers.h"
#include "ops/cpu/vector/lanes.h"

/* The numbers of one channel. */
struct channel {
    float mean, rest, inv_std, scale, bias, factor, mean_dz, mean_dzx, slope;
};

static inline float normal(float x, const struct channel *channel)
{
    return ((x - channel->mean) - channel->rest) * channel->inv_std;
}

static void row_sum(const float *restrict x, int64_t n, double *restrict lane)
{
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += (double)x[i + l];
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += (double)x[i];
}

static inline double square_of(float distance)
{
    return (double)distance * (double)distance;
}

static void row_squares(const float *restrict x, int64_t n, float shift, double *restrict lane)
{
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += square_of(x[i + l] - shift);
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += square_of(x[i] - shift);
}

/* dz of value i. */
static ALWAYS_INLINE float behind(const struct channel *channel, const float *x, const float *y,
                                  float dy, int64_t i, enum gate gate)
{
    if (gate == GATE_OPEN)
        return dy;
    float z = gate == GATE_Y ? y[i] : channel->scale * normal(x[i], channel) + channel->bias;
    return z > 0 ? dy : channel->slope * dy;
}

static ALWAYS_INLINE void row_sums(const float *restrict dy, const float *restrict x,
                                   const float *restrict y, int64_t n,
                                   const struct channel *channel, enum gate gate,
                                   double *restrict lane, double *restrict lane_x)
{
    const struct channel at = *channel;
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++) {
            float dz = behind(&at, x, y, dy[i + l], i + l, gate);
            lane[l] += (double)dz;
            lane_x[l] += (double)dz * (double)normal(x[i + l], &at);
        }
    for (int64_t i = whole; i < n; i++) {
        float dz = behind(&at, x, y, dy[i], i, gate);
        lane[i - whole] += (double)dz;
        lane_x[i - whole] += (double)dz * (double)normal(x[i], &at);
    }
}

static void row_forward(const float *x, int64_t n, const struct channel *channel, bool relu,
                        float *y)
{
    const struct channel at = *channel;
    if (relu) {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < n; i++) {
            float z = at.scale * normal(x[i], &at) + at.bias;
            y[i] = z > 0 ? z : at.slope * z;
        }
    } else {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < n; i++)
            y[i] = at.scale * normal(x[i], &at) + at.bias;
    }
}

static ALWAYS_INLINE void row_backward(const float *dy, const float *x, const float *y, int64_t n,
                                       const struct channel *channel, enum gate gate, float *dx)
{
    const struct channel at = *channel;
    if (x == NULL) {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < n; i++)
            dx[i] = at.factor * behind(&at, x, y, dy[i], i, gate);
        return;
    }
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++) {
        float dz = behind(&at, x, y, dy[i], i, gate);
        dx[i] = at.factor * ((dz - at.mean_dz) - normal(x[i], &at) * at.mean_dzx);
    }
}

#endif
