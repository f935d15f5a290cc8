/* Factors and biases. See ops/cpu/vector/scale.h.
 *
 * An absent factor is 1 and an absent bias is -0, which change no bit of x.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/scale.h"

#include "ops/cpu/vector/chunks.h"

/* ---- Forward --------------------------------------------------------------------------------- */

static void row(const float *x, float factor, float bias, float *y, int64_t n)
{
    LS_ELEMENTWISE
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * factor + bias;
}

/* One number of the factor for each element of a row. */
static void rows(const float *x, const float *factor, const float *bias, float *y, int64_t n)
{
    if (factor == NULL) {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] + bias[i];
    } else if (bias == NULL) {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * factor[i];
    } else {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * factor[i] + bias[i];
    }
}

/* Numbers [at, at + n), all of which have number d of the factor. */
static void forward_row(const struct ls_scale *scale, const void *x, float factor, float bias,
                        void *y, int64_t at, int64_t n)
{
    const bool bf16 = scale->bf16;
    float wide[LS_CHUNK], wide_y[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        float *to = ls_chunk_begin(bf16, y, at + i, wide_y);
        row(ls_chunk_read(bf16, x, at + i, count, wide), factor, bias, to, count);
        ls_chunk_end(bf16, y, at + i, count, to);
    }
}

/* Numbers [at, at + dim), which have a number of the factor each. */
static void forward_rows(const struct ls_scale *scale, const void *x, const float *factor,
                         const float *bias, void *y, int64_t at)
{
    const bool bf16 = scale->bf16;
    float wide[LS_CHUNK], wide_y[LS_CHUNK];
    for (int64_t i = 0, count; i < scale->dim; i += count) {
        count = ls_chunk_count(bf16, scale->dim - i);
        float *to = ls_chunk_begin(bf16, y, at + i, wide_y);
        rows(ls_chunk_read(bf16, x, at + i, count, wide), factor != NULL ? factor + i : NULL,
             bias != NULL ? bias + i : NULL, to, count);
        ls_chunk_end(bf16, y, at + i, count, to);
    }
}

static void forward_plain(const struct ls_scale *scale, const void *x, const float *factor,
                          const float *bias, void *y)
{
    for (int64_t o = 0; o < scale->outer; o++) {
        if (scale->inner == 1) {
            forward_rows(scale, x, factor, bias, y, o * scale->dim);
            continue;
        }
        for (int64_t d = 0; d < scale->dim; d++)
            forward_row(scale, x, factor != NULL ? factor[d] : 1.0F, bias != NULL ? bias[d] : -0.0F,
                        y, (o * scale->dim + d) * scale->inner, scale->inner);
    }
}

/* The factor's numbers for the channels of a block; zeros behind the last channel. */
static void spread(const struct ls_scale *scale, const float *factor, float absent, int64_t sample,
                   int64_t first, float *lane)
{
    int64_t stride = scale->by_channel ? scale->channels : 1;
    const float *from = factor;
    if (factor != NULL && scale->by_sample)
        from += sample * stride;
    for (int64_t i = 0; i < scale->block; i++) {
        float value = absent;
        if (factor != NULL && first + i < scale->channels)
            value = from[scale->by_channel ? first + i : 0];
        lane[i] = first + i < scale->channels ? value : 0.0F;
    }
}

static inline void forward_block(const float *x, const float *factor, const float *bias, float *y,
                                 int64_t points, int lanes)
{
    LS_ELEMENTWISE
    for (int64_t p = 0; p < points; p++)
        for (int i = 0; i < lanes; i++)
            y[p * lanes + i] = x[p * lanes + i] * factor[i] + bias[i];
}

static void forward_blocked(const struct ls_scale *scale, const float *x, const float *factor,
                            const float *bias, float *y)
{
    int64_t size = scale->points * scale->block;
    for (int64_t n = 0; n < scale->samples; n++)
        for (int64_t c = 0; c < scale->channels; c += scale->block) {
            float by[LS_LANES], add[LS_LANES];
            spread(scale, factor, 1.0F, n, c, by);
            spread(scale, bias, -0.0F, n, c, add);
            if (scale->block == 16)
                forward_block(x, by, add, y, scale->points, 16);
            else
                forward_block(x, by, add, y, scale->points, 8);
            x += size;
            y += size;
        }
}

static void forward(const struct ls_scale *scale, const void *x, const float *factor,
                    const float *bias, void *y)
{
    if (scale->block > 1)
        forward_blocked(scale, x, factor, bias, y);
    else
        forward_plain(scale, x, factor, bias, y);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static int64_t slots_of(const struct ls_scale *scale)
{
    return scale->by_channel ? (scale->channels + scale->block - 1) / scale->block : 1;
}

static int64_t scratch_doubles(const struct ls_scale *scale)
{
    if (scale->block > 1)
        return slots_of(scale) * 2 * LS_LANES;
    return scale->inner == 1 ? 2 * scale->dim : 0;
}

/* Element i of n goes to lane i % 16. */
static void add_row(const float *dy, const float *x, int64_t n, double *factor, double *bias)
{
    double along[LS_LANES], plain[LS_LANES];
    int64_t i = 0;
    memcpy(along, factor, sizeof along);
    memcpy(plain, bias, sizeof plain);
    for (; i + LS_LANES <= n; i += LS_LANES)
        for (int lane = 0; lane < LS_LANES; lane++) {
            double gradient = dy[i + lane];
            along[lane] += gradient * x[i + lane];
            plain[lane] += gradient;
        }
    for (int lane = 0; i + lane < n; lane++) {
        double gradient = dy[i + lane];
        along[lane] += gradient * x[i + lane];
        plain[lane] += gradient;
    }
    memcpy(factor, along, sizeof along);
    memcpy(bias, plain, sizeof plain);
}

static void store(double factor, double bias, int64_t i, float *dfactor, float *dbias)
{
    if (dfactor != NULL)
        dfactor[i] = (float)factor;
    if (dbias != NULL)
        dbias[i] = (float)bias;
}

static void add_each(const float *dy, const float *x, int64_t n, double *factor, double *bias)
{
    LS_ELEMENTWISE
    for (int64_t d = 0; d < n; d++) {
        double gradient = dy[d];
        factor[d] += gradient * x[d];
        bias[d] += gradient;
    }
}

/* Adds numbers [at, at + n): in lanes, or each to a sum of its own. */
static void add_numbers(const struct ls_scale *scale, const void *dy, const void *x, int64_t at,
                        int64_t n, bool each, double *factor, double *bias)
{
    const bool bf16 = scale->bf16;
    float wide_dy[LS_CHUNK], wide_x[LS_CHUNK];
    for (int64_t i = 0, count; i < n; i += count) {
        count = ls_chunk_count(bf16, n - i);
        const float *gradient = ls_chunk_read(bf16, dy, at + i, count, wide_dy);
        const float *from = ls_chunk_read(bf16, x, at + i, count, wide_x);
        if (each)
            add_each(gradient, from, count, factor + i, bias + i);
        else
            add_row(gradient, from, count, factor, bias);
    }
}

/* Sums over rows of one number for each element. */
static void sums_rows(const struct ls_scale *scale, const void *dy, const void *x, double *scratch,
                      float *dfactor, float *dbias)
{
    int64_t dim = scale->dim;
    double *factor = scratch, *bias = scratch + dim;
    for (int64_t d = 0; d < 2 * dim; d++)
        scratch[d] = 0;
    for (int64_t o = 0; o < scale->outer; o++)
        add_numbers(scale, dy, x, o * dim, dim, true, factor, bias);
    for (int64_t d = 0; d < dim; d++)
        store(factor[d], bias[d], d, dfactor, dbias);
}

static void sums_plain(const struct ls_scale *scale, const void *dy, const void *x, float *dfactor,
                       float *dbias)
{
    for (int64_t d = 0; d < scale->dim; d++) {
        double factor[LS_LANES] = {0}, bias[LS_LANES] = {0};
        for (int64_t o = 0; o < scale->outer; o++)
            add_numbers(scale, dy, x, (o * scale->dim + d) * scale->inner, scale->inner, false,
                        factor, bias);
        store(ls_fold_lanes_double(factor), ls_fold_lanes_double(bias), d, dfactor, dbias);
    }
}

/* The points of one block, channel by channel; slot: factor and bias, 16 lanes each. */
static inline void add_block(const float *dy, const float *x, int64_t points, double *slot,
                             int lanes)
{
    double factor[LS_LANES], bias[LS_LANES];
    memcpy(factor, slot, sizeof factor);
    memcpy(bias, slot + LS_LANES, sizeof bias);
    for (int64_t p = 0; p < points; p++)
        for (int i = 0; i < lanes; i++) {
            double gradient = dy[p * lanes + i];
            factor[i] += gradient * x[p * lanes + i];
            bias[i] += gradient;
        }
    memcpy(slot, factor, sizeof factor);
    memcpy(slot + LS_LANES, bias, sizeof bias);
}

/* Hands out what the slots have, for the factor's numbers from `at` on. */
static void store_slots(const struct ls_scale *scale, const double *slot, int64_t at,
                        float *dfactor, float *dbias)
{
    if (!scale->by_channel) {
        store(ls_fold_lanes_double(slot), ls_fold_lanes_double(slot + LS_LANES), at, dfactor,
              dbias);
        return;
    }
    for (int64_t c = 0; c < scale->channels; c++) {
        const double *own = slot + c / scale->block * (2 * (int64_t)LS_LANES) + c % scale->block;
        store(own[0], own[LS_LANES], at + c, dfactor, dbias);
    }
}

static void sums_blocked(const struct ls_scale *scale, const float *dy, const float *x,
                         double *scratch, float *dfactor, float *dbias)
{
    int64_t size = scale->points * scale->block, doubles = scratch_doubles(scale);
    int64_t stride = scale->by_channel ? scale->channels : 1;
    for (int64_t n = 0; n < scale->samples; n++) {
        for (int64_t i = 0; i < doubles && (n == 0 || scale->by_sample); i++)
            scratch[i] = 0;
        double *slot = scratch;
        for (int64_t c = 0; c < scale->channels; c += scale->block) {
            if (scale->block == 16)
                add_block(dy, x, scale->points, slot, 16);
            else
                add_block(dy, x, scale->points, slot, 8);
            dy += size;
            x += size;
            slot += scale->by_channel ? 2 * LS_LANES : 0;
        }
        if (scale->by_sample || n == scale->samples - 1)
            store_slots(scale, scratch, scale->by_sample ? n * stride : 0, dfactor, dbias);
    }
}

static void sums(const struct ls_scale *scale, const void *dy, const void *x, double *scratch,
                 float *dfactor, float *dbias)
{
    if (scale->block > 1)
        sums_blocked(scale, dy, x, scratch, dfactor, dbias);
    else if (scale->inner == 1)
        sums_rows(scale, dy, x, scratch, dfactor, dbias);
    else
        sums_plain(scale, dy, x, dfactor, dbias);
}

const struct ls_vector_scale LS_ISA_NAME(ls_vector_scale) = {
    .forward = forward,
    .scratch = scratch_doubles,
    .sums = sums,
};
