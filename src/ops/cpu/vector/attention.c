/* See vector/attention.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/attention.h"

#include "ops/cpu/vector/registers.h"

/* Lanes of a tile's row, with those behind its columns. */
static inline size_t whole(size_t columns)
{
    return (columns + LS_LANES - 1) / LS_LANES * LS_LANES;
}

/* ---- The exponential of device/attention_power.h, of a register
 * ------------------------------------ */

#if LS_ISA_IS(AVX512)

INLINE REGISTER scaled_power(REGISTER p, REGISTER t, REGISTER x)
{
    __m512i bits = _mm512_add_epi32(_mm512_castps_si512(t), _mm512_set1_epi32(127));
    REGISTER y = _mm512_mul_ps(p, _mm512_castsi512_ps(_mm512_slli_epi32(bits, 23)));
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, SPREAD(LS_ATTENTION_LEAST), _CMP_NLT_UQ), y);
}

#define AT_MOST(x, most)   _mm512_min_ps(most, x)
#define SUBTRACT(a, b)     _mm512_sub_ps(a, b)
#define MULTIPLY(a, b)     _mm512_mul_ps(a, b)
#define LARGER(a, largest) _mm512_max_ps(a, largest)

#elif LS_ISA_IS(AVX2)

INLINE REGISTER scaled_power(REGISTER p, REGISTER t, REGISTER x)
{
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(127));
    REGISTER y = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23)));
    return _mm256_and_ps(y, _mm256_cmp_ps(x, SPREAD(LS_ATTENTION_LEAST), _CMP_NLT_UQ));
}

#define AT_MOST(x, most)   _mm256_min_ps(most, x)
#define SUBTRACT(a, b)     _mm256_sub_ps(a, b)
#define MULTIPLY(a, b)     _mm256_mul_ps(a, b)
#define LARGER(a, largest) _mm256_max_ps(a, largest)

#else

INLINE REGISTER scaled_power(REGISTER p, REGISTER t, REGISTER x)
{
    const float y = p * ls_bits_float((ls_float_bits(t) + 127) << 23);
    return x < LS_ATTENTION_LEAST ? 0 : y;
}

#define AT_MOST(x, most)   ((x) > (most) ? (most) : (x))
#define SUBTRACT(a, b)     ((a) - (b))
#define MULTIPLY(a, b)     ((a) * (b))
#define LARGER(a, largest) ((a) > (largest) ? (a) : (largest))

#endif

INLINE REGISTER power_of(REGISTER x)
{
    static const float c[LS_ATTENTION_TERMS] = LS_ATTENTION_POLYNOMIAL;
    x = AT_MOST(x, SPREAD(LS_ATTENTION_MOST));
    const REGISTER t = FMA(x, SPREAD(LS_ATTENTION_LOG2E), SPREAD(LS_ATTENTION_MAGIC));
    const REGISTER n = SUBTRACT(t, SPREAD(LS_ATTENTION_MAGIC));
    const REGISTER near = FMA(n, SPREAD(-LS_ATTENTION_LN2_A), x);
    const REGISTER r = FMA(n, SPREAD(-LS_ATTENTION_LN2_B), near);
    REGISTER p = SPREAD(c[0]);
    UNROLL
    for (int k = 1; k < LS_ATTENTION_TERMS; k++)
        p = FMA(p, r, SPREAD(c[k]));
    return scaled_power(p, t, x);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

static void hide_outside(float *x, size_t begin, size_t end, size_t all)
{
    for (size_t j = 0; j < begin; j++)
        x[j] = -INFINITY;
    for (size_t j = end; j < all; j++)
        x[j] = -INFINITY;
}

static void hide_pairs(float *x, const float *counts, size_t n)
{
    LS_ELEMENTWISE
    for (size_t j = 0; j < n; j++)
        x[j] = counts[j] == 0 ? -INFINITY : x[j];
}

static void hide_segments(float *x, const float *segment, float other, size_t n)
{
    LS_ELEMENTWISE
    for (size_t j = 0; j < n; j++)
        x[j] = segment[j] == other ? x[j] : -INFINITY;
}

static void scale_row(float *x, float scale, const float *added, size_t n)
{
    if (added != NULL) {
        LS_ELEMENTWISE
        for (size_t j = 0; j < n; j++)
            x[j] = scale * x[j] + added[j];
    } else {
        LS_ELEMENTWISE
        for (size_t j = 0; j < n; j++)
            x[j] = scale * x[j];
    }
}

static void scores(const struct ls_attention_tile *tile, float scale,
                   const struct ls_attention_hidden *hidden)
{
    const size_t columns = tile->columns, all = whole(columns);
    for (size_t i = 0; i < tile->rows; i++) {
        float *x = tile->x + i * tile->pitch;
        scale_row(x, scale, hidden->added != NULL ? hidden->added + i * hidden->mask_pitch : NULL,
                  columns);
        if (hidden->shown != NULL)
            hide_pairs(x, hidden->shown, columns);
        if (hidden->mask != NULL)
            hide_pairs(x, hidden->mask + i * hidden->mask_pitch, columns);
        if (hidden->segment != NULL)
            hide_segments(x, hidden->segment, hidden->other[i], columns);
        if (hidden->cut)
            hide_outside(x, (size_t)hidden->begin[i], (size_t)hidden->end[i], all);
        else
            hide_outside(x, 0, columns, all);
    }
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* The largest of n numbers, a multiple of 16, and of what there is. A NaN is passed over. */
INLINE float largest_of(const float *x, size_t n, float before)
{
    float lane[LS_LANES];
    REGISTER most[LANE_REGISTERS];
    UNROLL
    for (int v = 0; v < LANE_REGISTERS; v++)
        most[v] = SPREAD(before);
    for (size_t j = 0; j < n; j += LS_LANES)
        UNROLL
    for (int v = 0; v < LANE_REGISTERS; v++)
        most[v] = LARGER(LOAD(x + j + v * WIDTH), most[v]);
    UNROLL
    for (int v = 0; v < LANE_REGISTERS; v++)
        STORE(lane + v * WIDTH, most[v]);
    for (int half = LS_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] = lane[i + half] > lane[i] ? lane[i + half] : lane[i];
    return lane[0];
}

/* x = exp(x - base) of n numbers, a multiple of 16; their sum. */
INLINE float powers_of(float *x, float base, size_t n)
{
    const REGISTER less = SPREAD(base);
    REGISTER sum[LANE_REGISTERS];
    UNROLL
    for (int v = 0; v < LANE_REGISTERS; v++)
        sum[v] = ZERO();
    for (size_t j = 0; j < n; j += LS_LANES)
        UNROLL
    for (int v = 0; v < LANE_REGISTERS; v++) {
        const REGISTER y = power_of(SUBTRACT(LOAD(x + j + v * WIDTH), less));
        sum[v] = ADD(sum[v], y);
        STORE(x + j + v * WIDTH, y);
    }
    return fold(sum);
}

FUSED static bool weights(const struct ls_attention_tile *tile, struct ls_attention_state *state)
{
    const size_t all = whole(tile->columns), rows = whole(tile->rows);
    float base[LS_ATTENTION_BLOCK] = {0};
    bool changed = false;
    for (size_t i = 0; i < tile->rows; i++) {
        const float before = state->largest[i];
        const float largest = largest_of(tile->x + i * tile->pitch, all, before);
        base[i] = largest == -INFINITY ? 0 : largest; /* where nothing was seen yet */
        state->factor[i] = before - base[i];
        state->largest[i] = largest;
        changed |= !(before == base[i]);
    }
    for (size_t i = tile->rows; i < rows; i++)
        state->factor[i] = 0;
    for (size_t i = 0; i < rows; i += WIDTH)
        STORE(state->factor + i, power_of(LOAD(state->factor + i)));
    for (size_t i = 0; i < tile->rows; i++) {
        const float sum = powers_of(tile->x + i * tile->pitch, base[i], all);
        state->sum[i] = state->sum[i] * state->factor[i] + sum;
    }
    return changed;
}

FUSED static void recompute(const struct ls_attention_tile *tile, const float *log_sum)
{
    const size_t all = whole(tile->columns);
    for (size_t i = 0; i < tile->rows; i++) {
        const REGISTER less = SPREAD(log_sum[i]);
        float *x = tile->x + i * tile->pitch;
        for (size_t j = 0; j < all; j += WIDTH)
            STORE(x + j, power_of(SUBTRACT(LOAD(x + j), less)));
    }
}

/* ---- The way back ---------------------------------------------------------------------------- */

static void slopes(const struct ls_attention_tile *dx, const float *weight, const float *dot)
{
    for (size_t i = 0; i < dx->rows; i++) {
        const REGISTER less = SPREAD(dot[i]);
        float *x = dx->x + i * dx->pitch;
        const float *w = weight + i * dx->pitch;
        for (size_t j = 0; j < dx->columns; j += WIDTH)
            STORE(x + j, MULTIPLY(LOAD(w + j), SUBTRACT(LOAD(x + j), less)));
    }
}

static void rescale(float *x, size_t pitch, size_t rows, size_t n, const float *factor)
{
    for (size_t i = 0; i < rows; i++, x += pitch) {
        const float by = factor[i];
        LS_ELEMENTWISE
        for (size_t j = 0; j < n; j++)
            x[j] *= by;
    }
}

/* Number i of either array. */
static inline float number(const void *x, bool bf16, size_t i)
{
    return bf16 ? ls_widen_bf16(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

static inline float dot_of(const void *a, const void *b, bool bf16, size_t n)
{
    float lane[LS_LANES] = {0};
    const size_t most = n - n % LS_LANES;
    for (size_t i = 0; i < most; i += LS_LANES)
        for (size_t l = 0; l < LS_LANES; l++)
            lane[l] += number(a, bf16, i + l) * number(b, bf16, i + l);
    for (size_t i = most; i < n; i++)
        lane[i - most] += number(a, bf16, i) * number(b, bf16, i);
    return ls_fold_lanes(lane);
}

static float dot(const void *a, const void *b, bool bf16, size_t n)
{
    return bf16 ? dot_of(a, b, true, n) : dot_of(a, b, false, n);
}

const struct ls_vector_attention LS_ISA_NAME(ls_vector_attention) = {
    .scores = scores,
    .weights = weights,
    .recompute = recompute,
    .slopes = slopes,
    .rescale = rescale,
    .dot = dot,
};
