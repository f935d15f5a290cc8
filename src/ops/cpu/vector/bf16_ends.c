/* See bf16_ends.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_ends.h"

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE float relu(float z, float slope)
{
    float below = slope == 0 ? 0 : slope * z;
    return z <= 0 ? below : z;
}

/* A bias is added where it lies: a loop with an addition that is done for nothing would be longer
 * than one that is not there. */
static void add_each(const float *bias, float *restrict x, size_t n)
{
    for (size_t i = 0; bias != NULL && i < n; i++)
        x[i] = x[i] + bias[i];
}

static void add_one(const float *bias, float *restrict x, size_t n)
{
    const float b = bias != NULL ? *bias : 0;
    for (size_t i = 0; bias != NULL && i < n; i++)
        x[i] = x[i] + b;
}

static ALWAYS_INLINE void write_bf16(const struct ls_bf16_ends *ends, const float *restrict x,
                                     uint16_t *restrict y, size_t n)
{
    const float slope = ends->slope;
    if (ends->relu)
        for (size_t i = 0; i < n; i++)
            y[i] = ls_round_bf16(relu(x[i], slope));
    else
        for (size_t i = 0; i < n; i++)
            y[i] = ls_round_bf16(x[i]);
}

static ALWAYS_INLINE void write_f32(const struct ls_bf16_ends *ends, const float *restrict x,
                                    float *restrict y, size_t n)
{
    const float slope = ends->slope;
    if (ends->relu)
        for (size_t i = 0; i < n; i++)
            y[i] = relu(x[i], slope);
    else
        memcpy(y, x, n * sizeof *y);
}

static void to_bf16(const struct ls_bf16_ends *ends, const float *bias, float *restrict x,
                    uint16_t *restrict y, size_t n)
{
    add_each(bias, x, n);
    write_bf16(ends, x, y, n);
}

static void to_f32(const struct ls_bf16_ends *ends, const float *bias, float *restrict x,
                   float *restrict y, size_t n)
{
    add_each(bias, x, n);
    write_f32(ends, x, y, n);
}

static void row_to_bf16(const struct ls_bf16_ends *ends, const float *bias, float *restrict x,
                        uint16_t *restrict y, size_t n)
{
    add_one(bias, x, n);
    write_bf16(ends, x, y, n);
}

static void row_to_f32(const struct ls_bf16_ends *ends, const float *bias, float *restrict x,
                       float *restrict y, size_t n)
{
    add_one(bias, x, n);
    write_f32(ends, x, y, n);
}

static void block_to_bf16(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                          uint16_t *y)
{
    float *sums = block->sums;
    for (size_t row = 0; row < block->rows; row++, sums += block->pitch, y += block->to_pitch)
        row_to_bf16(ends, block->bias != NULL ? block->bias + row : NULL, sums, y, block->columns);
}

static void block_to_f32(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                         float *y)
{
    float *sums = block->sums;
    for (size_t row = 0; row < block->rows; row++, sums += block->pitch, y += block->to_pitch)
        row_to_f32(ends, block->bias != NULL ? block->bias + row : NULL, sums, y, block->columns);
}

const struct ls_vector_bf16_ends LS_ISA_NAME(ls_vector_bf16_ends) = {
    .to_bf16 = to_bf16,
    .to_f32 = to_f32,
    .row_to_bf16 = row_to_bf16,
    .row_to_f32 = row_to_f32,
    .block_to_bf16 = block_to_bf16,
    .block_to_f32 = block_to_f32,
};
