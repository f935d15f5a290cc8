/* The bias of each channel, and its gradient. See channel_bias.h.
 *
 * Sums in a plain layout are kept in sixteen lanes for each sample, samples are added in order; in
 * a blocked layout each lane is a channel, and its numbers are added in the order of memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/channel_bias.h"

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The biases of the channels of a block, zeros behind the last channel. */
static void load_block(const struct ls_channel_shape *shape, int64_t first, const float *b,
                       float lane[LS_LANES])
{
    for (int64_t i = 0; i < shape->block; i++)
        lane[i] = first + i < shape->channels ? b[first + i] : 0;
}

enum end { PLAIN, RELU, SLOPE };

static ALWAYS_INLINE float finish(float z, enum end end, float slope)
{
    if (end == PLAIN)
        return z;
    float negative = end == RELU ? 0.0F : slope * z; /* 0 * z is -0, or NaN for an infinite z */
    return z < 0 ? negative : z;
}

static ALWAYS_INLINE void add_block(const float *lane, int64_t points, int64_t block, enum end end,
                                    float slope, float *restrict y)
{
    for (int64_t p = 0; p < points; p++)
        for (int64_t i = 0; i < block; i++)
            y[p * block + i] = finish(y[p * block + i] + lane[i], end, slope);
}

static ALWAYS_INLINE void add_all(const struct ls_channel_shape *shape, const float *b,
                                  enum end end, float slope, float *y)
{
    float lane[LS_LANES];
    int64_t block = shape->block;
    for (int64_t n = 0; n < shape->samples; n++)
        for (int64_t c = 0; c < shape->channels; c += block) {
            load_block(shape, c, b, lane);
            if (block == 1)
                add_block(lane, shape->points, 1, end, slope, y);
            else if (block == 8)
                add_block(lane, shape->points, 8, end, slope, y);
            else
                add_block(lane, shape->points, 16, end, slope, y);
            y += shape->points * block;
        }
}

static void bias_add(const struct ls_channel_shape *shape, const float *b, float *y)
{
    add_all(shape, b, PLAIN, 0, y);
}

static void bias_add_relu(const struct ls_channel_shape *shape, const float *b, float slope,
                          float *y)
{
    if (slope == 0)
        add_all(shape, b, RELU, 0, y);
    else
        add_all(shape, b, SLOPE, slope, y);
}

static double sum_plain(const float *x, int64_t points)
{
    double lane[LS_LANES] = {0};
    int64_t p = 0;
    for (; p + LS_LANES <= points; p += LS_LANES)
        for (int i = 0; i < LS_LANES; i++)
            lane[i] += (double)x[p + i];
    for (int i = 0; p + i < points; i++)
        lane[i] += (double)x[p + i];
    return ls_fold_lanes_double(lane);
}

static ALWAYS_INLINE void sum_block(const float *x, int64_t points, int64_t block, double *lane)
{
    for (int64_t p = 0; p < points; p++)
        for (int64_t i = 0; i < block; i++)
            lane[i] += (double)x[p * block + i];
}

static void bias_sum(const struct ls_channel_shape *shape, const float *dy, float *db)
{
    int64_t block = shape->block, blocks = (shape->channels + block - 1) / block;
    for (int64_t k = 0; k < blocks; k++) {
        double lane[LS_LANES] = {0};
        for (int64_t n = 0; n < shape->samples; n++) {
            const float *x = dy + (n * blocks + k) * shape->points * block;
            if (block == 1)
                lane[0] += sum_plain(x, shape->points);
            else if (block == 8)
                sum_block(x, shape->points, 8, lane);
            else
                sum_block(x, shape->points, 16, lane);
        }
        for (int64_t i = 0; i < block && k * block + i < shape->channels; i++)
            db[k * block + i] = (float)lane[i];
    }
}

const struct ls_vector_channel_bias LS_ISA_NAME(ls_vector_channel_bias) = {
    .add = bias_add,
    .add_relu = bias_add_relu,
    .sum = bias_sum,
};
