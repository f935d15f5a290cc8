/* See bf16_ends.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_ends.h"

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* z > 0 or no number: z, else `below`. */
static ALWAYS_INLINE LS_REGISTER choose(LS_REGISTER z, LS_REGISTER below)
{
#if LS_ISA_IS(AVX512)
    return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(z, LS_SPREAD(0.0F), _CMP_LE_OQ), below);
#elif LS_ISA_IS(AVX2)
    return _mm256_blendv_ps(z, below, _mm256_cmp_ps(z, LS_SPREAD(0.0F), _CMP_LE_OQ));
#elif LS_ISA_IS(SSE41)
    return _mm_blendv_ps(z, below, _mm_cmple_ps(z, LS_SPREAD(0.0F)));
#else
    return z <= 0 ? below : z;
#endif
}

/* What becomes of a register of sums. The flags are constants. */
static ALWAYS_INLINE LS_REGISTER finish(LS_REGISTER sum, const float *bias, bool relu, float slope)
{
    if (bias != NULL)
        sum = sum + LS_LOAD(bias);
    LS_REGISTER below = LS_SPREAD(0.0F);
    if (slope < 0 || slope > 0)
        below = LS_SPREAD(slope) * sum;
    if (relu)
        sum = choose(sum, below);
    return sum;
}

/* One row. `bias` goes on by `step` from element to element: 1, or 0 where it holds a register of
 * the same. */
static ALWAYS_INLINE void row(const struct ls_bf16_ends *ends, const float *bias, size_t step,
                              const float *x, void *y, bool bf16, bool relu, size_t n)
{
    const float slope = ends->slope;
    uint16_t *rounded = y;
    float *wide = y, rest[LS_WIDTH] = {0}, rest_bias[LS_WIDTH] = {0};
    size_t i = 0;
    for (; i + LS_WIDTH <= n; i += LS_WIDTH) {
        const LS_REGISTER z =
            finish(LS_LOAD(x + i), bias != NULL ? bias + i * step : NULL, relu, slope);
        if (bf16)
            ls_store_bf16(rounded + i, z);
        else
            LS_STORE(wide + i, z);
    }
    if (i == n)
        return;
    const size_t left = n - i;
    uint16_t some[LS_WIDTH];
    memcpy(rest, x + i, left * sizeof *rest);
    if (bias != NULL)
        memcpy(rest_bias, bias + i * step, left * sizeof *rest_bias);
    const LS_REGISTER z = finish(LS_LOAD(rest), bias != NULL ? rest_bias : NULL, relu, slope);
    ls_store_bf16(some, z);
    LS_STORE(rest, z);
    if (bf16)
        memcpy(rounded + i, some, left * sizeof *some);
    else
        memcpy(wide + i, rest, left * sizeof *rest);
}

static ALWAYS_INLINE void any_row(const struct ls_bf16_ends *ends, const float *bias, size_t step,
                                  const float *x, void *y, bool bf16, size_t n)
{
    if (ends->relu)
        row(ends, bias, step, x, y, bf16, true, n);
    else
        row(ends, bias, step, x, y, bf16, false, n);
}

/* One bias for all. */
static ALWAYS_INLINE void one_row(const struct ls_bf16_ends *ends, const float *bias,
                                  const float *x, void *y, bool bf16, size_t n)
{
    float all[LS_WIDTH];
    if (bias == NULL) {
        any_row(ends, NULL, 0, x, y, bf16, n);
        return;
    }
    LS_STORE(all, LS_SPREAD(*bias));
    any_row(ends, all, 0, x, y, bf16, n);
}

static void to_bf16(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                    uint16_t *restrict y, size_t n)
{
    any_row(ends, bias, 1, x, y, true, n);
}

static void to_f32(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                   float *restrict y, size_t n)
{
    any_row(ends, bias, 1, x, y, false, n);
}

static void row_to_bf16(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                        uint16_t *restrict y, size_t n)
{
    one_row(ends, bias, x, y, true, n);
}

static void row_to_f32(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                       float *restrict y, size_t n)
{
    one_row(ends, bias, x, y, false, n);
}

static void block_to_bf16(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                          uint16_t *y)
{
    const float *sums = block->sums;
    for (size_t row = 0; row < block->rows; row++, sums += block->pitch, y += block->to_pitch)
        row_to_bf16(ends, block->bias != NULL ? block->bias + row : NULL, sums, y, block->columns);
}

static void block_to_f32(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                         float *y)
{
    const float *sums = block->sums;
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
