/* See bf16_ends.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/bf16_ends.h"

#include "ops/cpu/vector/bf16_transpose.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* z > 0 or no number: z, else `below`. */
static ALWAYS_INLINE LS_REGISTER choose(LS_REGISTER z, LS_REGISTER below)
{
#if LS_ISA_IS(AVX512)
    return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(z, LS_SPREAD(0.0F), _CMP_LE_OQ), below);
#elif LS_ISA_IS(AVX2)
    return _mm256_blendv_ps(z, below, _mm256_cmp_ps(z, LS_SPREAD(0.0F), _CMP_LE_OQ));
#else
    return z <= 0 ? below : z;
#endif
}

/* What is added to a row: nothing, one number, or one for each element. */
enum biases { NONE, ONE, EACH };

/* What becomes of a register of sums. The flags are constants here and below. */
static ALWAYS_INLINE LS_REGISTER finish(LS_REGISTER sum, enum biases biases, LS_REGISTER bias,
                                        bool relu, float slope)
{
    if (biases != NONE)
        sum = sum + bias;
    LS_REGISTER below = LS_SPREAD(0.0F);
    if (slope < 0 || slope > 0)
        below = LS_SPREAD(slope) * sum;
    if (relu)
        sum = choose(sum, below);
    return sum;
}

#if LS_ISA_IS(AVX512)

/* The last elements of a row, less than a register of them. */
static ALWAYS_INLINE void rest(const float *x, enum biases biases, const float *bias, void *y,
                               bool bf16, bool relu, float slope, size_t left)
{
    const __mmask16 there = (__mmask16)((1U << left) - 1);
    LS_REGISTER added = LS_SPREAD(0.0F);
    if (biases == ONE)
        added = LS_SPREAD(*bias);
    if (biases == EACH)
        added = _mm512_maskz_loadu_ps(there, bias);
    const LS_REGISTER z = finish(_mm512_maskz_loadu_ps(there, x), biases, added, relu, slope);
    uint16_t some[LS_WIDTH];
    if (bf16) {
        ls_store_bf16(some, z);
        const __m256i rounded = _mm256_loadu_si256((const __m256i *)(const void *)some);
        _mm256_mask_storeu_epi16(y, there, rounded);
    } else {
        _mm512_mask_storeu_ps(y, there, z);
    }
}

#else

static ALWAYS_INLINE void rest(const float *x, enum biases biases, const float *bias, void *y,
                               bool bf16, bool relu, float slope, size_t left)
{
    float sums[LS_WIDTH] = {0}, each[LS_WIDTH] = {0};
    uint16_t some[LS_WIDTH];
    memcpy(sums, x, left * sizeof *sums);
    LS_REGISTER added = LS_SPREAD(0.0F);
    if (biases == ONE)
        added = LS_SPREAD(*bias);
    if (biases == EACH) {
        memcpy(each, bias, left * sizeof *each);
        added = LS_LOAD(each);
    }
    const LS_REGISTER z = finish(LS_LOAD(sums), biases, added, relu, slope);
    ls_store_bf16(some, z);
    LS_STORE(sums, z);
    if (bf16)
        memcpy(y, some, left * sizeof *some);
    else
        memcpy(y, sums, left * sizeof *sums);
}

#endif

static ALWAYS_INLINE void row(const struct ls_bf16_ends *ends, enum biases biases,
                              const float *bias, const float *x, void *y, bool bf16, bool relu,
                              size_t n)
{
    const float slope = ends->slope;
    uint16_t *rounded = y;
    float *wide = y;
    LS_REGISTER added = LS_SPREAD(0.0F);
    if (biases == ONE)
        added = LS_SPREAD(*bias);
    size_t i = 0;
    for (; i + LS_WIDTH <= n; i += LS_WIDTH) {
        if (biases == EACH)
            added = LS_LOAD(bias + i);
        const LS_REGISTER z = finish(LS_LOAD(x + i), biases, added, relu, slope);
        if (bf16)
            ls_store_bf16(rounded + i, z);
        else
            LS_STORE(wide + i, z);
    }
    if (i < n)
        rest(x + i, biases, biases == EACH ? bias + i : bias,
             bf16 ? (void *)(rounded + i) : (void *)(wide + i), bf16, relu, slope, n - i);
}

static ALWAYS_INLINE void any_row(const struct ls_bf16_ends *ends, enum biases biases,
                                  const float *bias, const float *x, void *y, bool bf16, size_t n)
{
    if (bias == NULL && ends->relu)
        row(ends, NONE, NULL, x, y, bf16, true, n);
    else if (bias == NULL)
        row(ends, NONE, NULL, x, y, bf16, false, n);
    else if (ends->relu)
        row(ends, biases, bias, x, y, bf16, true, n);
    else
        row(ends, biases, bias, x, y, bf16, false, n);
}

static void to_bf16(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                    uint16_t *restrict y, size_t n)
{
    any_row(ends, EACH, bias, x, y, true, n);
}

static void to_f32(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                   float *restrict y, size_t n)
{
    any_row(ends, EACH, bias, x, y, false, n);
}

static void row_to_bf16(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                        uint16_t *restrict y, size_t n)
{
    any_row(ends, ONE, bias, x, y, true, n);
}

static void row_to_f32(const struct ls_bf16_ends *ends, const float *bias, const float *restrict x,
                       float *restrict y, size_t n)
{
    any_row(ends, ONE, bias, x, y, false, n);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

enum { PIECE = 128 }; /* elements that are put apart together */

#if LS_ISA_IS(AVX512)

/* A row to every second place. */
static ALWAYS_INLINE void seconds(const struct ls_bf16_ends *ends, enum biases biases,
                                  const float *bias, const float *x, uint16_t *y, bool relu,
                                  size_t n)
{
    uint16_t some[LS_WIDTH];
    LS_REGISTER added = LS_SPREAD(0.0F);
    if (biases == ONE)
        added = LS_SPREAD(*bias);
    for (size_t i = 0; i < n; i += LS_WIDTH, y += 2 * LS_WIDTH) {
        const size_t left = n - i < LS_WIDTH ? n - i : LS_WIDTH;
        const LS_REGISTER sums = _mm512_maskz_loadu_ps((__mmask16)((1U << left) - 1), x + i);
        ls_store_bf16(some, finish(sums, biases, added, relu, ends->slope));
        const __m256i rounded = _mm256_loadu_si256((const __m256i *)(const void *)some);
        _mm512_mask_storeu_epi16(y, UINT32_C(0x55555555) >> (32 - 2 * left),
                                 _mm512_cvtepu16_epi32(rounded));
    }
}

static void row_to_seconds(const struct ls_bf16_ends *ends, const float *bias, const float *x,
                           uint16_t *y, size_t n)
{
    if (bias == NULL && !ends->relu)
        seconds(ends, NONE, NULL, x, y, false, n);
    else if (bias == NULL)
        seconds(ends, NONE, NULL, x, y, true, n);
    else if (!ends->relu)
        seconds(ends, ONE, bias, x, y, false, n);
    else
        seconds(ends, ONE, bias, x, y, true, n);
}

#endif

static void row_apart(const struct ls_bf16_ends *ends, const float *bias, const float *x,
                      uint16_t *y, size_t step, size_t n)
{
#if LS_ISA_IS(AVX512)
    if (step == 2) {
        row_to_seconds(ends, bias, x, y, n);
        return;
    }
#endif
    uint16_t some[PIECE];
    for (size_t i = 0, count; i < n; i += count, y += count * step) {
        count = n - i < PIECE ? n - i : PIECE;
        row_to_bf16(ends, bias, x + i, some, count);
        for (size_t j = 0; j < count; j++)
            y[j * step] = some[j];
    }
}

static void block_to_bf16(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                          uint16_t *y)
{
    const float *sums = block->sums, *bias = block->bias;
    for (size_t r = 0; r < block->rows; r++, sums += block->pitch, y += block->to_pitch) {
        if (block->step == 1)
            row_to_bf16(ends, bias, sums, y, block->columns);
        else
            row_apart(ends, bias, sums, y, block->step, block->columns);
        bias = bias != NULL ? bias + 1 : NULL;
    }
}

static void block_to_f32(const struct ls_bf16_ends *ends, const struct ls_bf16_block *block,
                         float *y)
{
    float some[PIECE];
    const float *sums = block->sums, *bias = block->bias;
    for (size_t r = 0; r < block->rows; r++, sums += block->pitch, y += block->to_pitch) {
        if (block->step == 1)
            row_to_f32(ends, bias, sums, y, block->columns);
        for (size_t i = 0, n; block->step != 1 && i < block->columns; i += n) {
            n = block->columns - i < PIECE ? block->columns - i : PIECE;
            row_to_f32(ends, bias, sums + i, some, n);
            for (size_t j = 0; j < n; j++)
                y[(i + j) * block->step] = some[j];
        }
        bias = bias != NULL ? bias + 1 : NULL;
    }
}

/* ---- Transposed ------------------------------------------------------------------------------ */

#if LS_ISA_IS(AVX512)

/* Up to WIDTH rows and columns. */
static inline void transpose_square(const float *x, size_t pitch, size_t rows, size_t columns,
                                    float *y, size_t y_pitch)
{
    const __mmask16 across = (__mmask16)(columns < WIDTH ? (1U << columns) - 1 : 0xffff);
    const __mmask16 down = (__mmask16)(rows < WIDTH ? (1U << rows) - 1 : 0xffff);
    __m512i square[WIDTH];
    UNROLL
    for (size_t i = 0; i < WIDTH; i++)
        square[i] =
            i < rows ? _mm512_maskz_loadu_epi32(across, x + i * pitch) : _mm512_setzero_si512();
    transpose(square);
    UNROLL
    for (size_t i = 0; i < WIDTH; i++)
        if (i < columns)
            _mm512_mask_storeu_epi32(y + i * y_pitch, down, square[i]);
}

#else

static inline void transpose_square(const float *x, size_t pitch, size_t rows, size_t columns,
                                    float *y, size_t y_pitch)
{
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < rows; r++)
            y[c * y_pitch + r] = x[r * pitch + c];
}

#endif

/* Some columns at a time, whose cache lines stay until all rows are written. */
static void transpose_rows(const float *x, size_t pitch, size_t rows, size_t columns, float *y,
                           size_t y_pitch)
{
    enum { SIDE = 16 };
    for (size_t c = 0; c < columns; c += SIDE)
        for (size_t r = 0; r < rows; r += SIDE)
            transpose_square(x + r * pitch + c, pitch, rows - r < SIDE ? rows - r : SIDE,
                             columns - c < SIDE ? columns - c : SIDE, y + c * y_pitch + r, y_pitch);
}

const struct ls_vector_bf16_ends LS_ISA_NAME(ls_vector_bf16_ends) = {
    .to_bf16 = to_bf16,
    .to_f32 = to_f32,
    .row_to_bf16 = row_to_bf16,
    .row_to_f32 = row_to_f32,
    .block_to_bf16 = block_to_bf16,
    .block_to_f32 = block_to_f32,
    .transpose = transpose_rows,
};
