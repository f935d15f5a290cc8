/* Pooling, and normalisation by what is around, of portable nets. See ops/reference/portable.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "ops/reference/portable.h"
#include "ops/reference/windows.h"

/* ---- Pooling --------------------------------------------------------------------------------- */

/* A window of all planes at a time. */
struct pool {
    const struct ls_call *call;
    struct ls_ref_windows windows;
    const struct ls_ref_pair *pair;
    int64_t pairs;
    float factor; /* 1 / what an average divides by */
};

/* Averages of a window: one position after the other, times the factor. */
static void average(const struct pool *pool, int64_t plane, int64_t at)
{
    const float *x = (const float *)pool->call->in[0] + plane * pool->windows.x_points;
    float sum = 0;
    for (int64_t p = 0; p < pool->pairs; p++)
        sum += x[pool->pair[p].x];
    ((float *)pool->call->out[0])[plane * pool->windows.y_points + at] = sum * pool->factor;
}

/* The first of the largest; a NaN is none. */
static void largest(const struct pool *pool, int64_t plane, int64_t at)
{
    const struct ls_call *call = pool->call;
    const int64_t o = plane * pool->windows.y_points + at;
    const float *x = (const float *)call->in[0] + plane * pool->windows.x_points;
    float best = -FLT_MAX;
    int64_t winner = -1;
    for (int64_t p = 0; p < pool->pairs; p++) {
        winner = x[pool->pair[p].x] > best ? pool->pair[p].x : winner;
        best = x[pool->pair[p].x] > best ? x[pool->pair[p].x] : best;
    }
    ((float *)call->out[0])[o] = best;
    if (call->op->outputs > 1 && call->out[1] != NULL)
        ((int32_t *)call->out[1])[o] = (int32_t)winner;
}

/* A position of dx gets what windows give it in their order. */
static void spread(const struct pool *pool, int64_t plane, int64_t at)
{
    const struct ls_call *call = pool->call;
    const int64_t o = plane * pool->windows.y_points + at;
    const bool maximum = call->op->attr.pooling.method == LS_POOL_MAX;
    float *dx = (float *)call->out[0] + plane * pool->windows.x_points;
    const float dy = ls_number(call, 0, o), share = dy * pool->factor;
    if (maximum && ((const int32_t *)call->in[1])[o] >= 0)
        dx[((const int32_t *)call->in[1])[o]] += dy;
    for (int64_t p = 0; !maximum && p < pool->pairs; p++)
        dx[pool->pair[p].x] += share;
}

static void each_window(const struct ls_call *call, const struct ls_value *x,
                        const struct ls_value *y,
                        void (*task)(const struct pool *, int64_t plane, int64_t at))
{
    struct pool pool = {.call = call,
                        .windows = ls_ref_windows_of(&call->op->attr.pooling.window, x, y),
                        .pair = call->scratch};
    for (int64_t at = 0; at < pool.windows.y_points; at++) {
        const double size = ls_ref_pool_size(&pool.windows, at);
        pool.pairs = ls_ref_list_pairs(&pool.windows, at, call->scratch);
        pool.factor = size > 0 ? 1.0F / (float)size : 0;
        for (int64_t plane = 0; plane < ls_shape_count(&x->shape, 0, 2); plane++)
            task(&pool, plane, at);
    }
}

static void pooling(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const bool maximum = op->attr.pooling.method == LS_POOL_MAX;
    each_window(call, op->input[0], op->output[0], maximum ? largest : average);
}

static void pooling_backward(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    memset(call->out[0], 0, ls_value_bytes(op->output[0]));
    each_window(call, op->output[0], op->input[0], spread);
}

/* ---- Local response normalisation ------------------------------------------------------------ */

static float factor_of(const struct ls_lrn_attr *attr)
{
    const double places = (double)attr->size * (attr->within ? (double)attr->size : 1.0);
    return (float)((double)attr->alpha / places);
}

static float slope_of(const struct ls_lrn_attr *attr)
{
    const double places = (double)attr->size * (attr->within ? (double)attr->size : 1.0);
    return (float)(2 * ((double)attr->alpha / places) * (double)attr->beta);
}

static float lrn_scale(const struct ls_call *call, int64_t at);
static float lrn_power(const struct ls_lrn_attr *attr, float s);

/* x^2, or (ratios) y dy / s. */
static float lrn_term(const struct ls_call *call, int64_t at, bool ratios)
{
    if (!ratios)
        return ls_number(call, 0, at) * ls_number(call, 0, at);
    return ls_number(call, 2, at) * ls_number(call, 1, at) * (1.0F / lrn_scale(call, at));
}

/* The sum along the axis of `rows` around element `at`, from the first place on, where what is
 * outside is zeros. */
static float sum_along(const struct ls_call *call, const struct ls_axes *rows, int64_t at,
                       bool ratios)
{
    const int64_t half = call->op->attr.lrn.size / 2, place = ls_along(rows, at);
    const int64_t reach = half < rows->dim ? half : rows->dim - 1;
    float sum = 0;
    for (int64_t i = -reach; i <= reach; i++) {
        const bool inside = place + i >= 0 && place + i < rows->dim;
        const float term = inside ? lrn_term(call, at + i * rows->inner, ratios) : 0;
        sum = i == -reach ? term : sum + term;
    }
    return sum;
}

/* The sum around: over channels, or along rows and then over rows of a plane. */
static float sum_around(const struct ls_call *call, int64_t at, bool ratios)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    const struct ls_axes channels = ls_axes(call->op->input[0], 1, 1);
    if (!attr->within)
        return sum_along(call, &channels, at, ratios);
    const struct ls_axes rows = ls_axes(call->op->input[0], 2, 1);
    const struct ls_axes columns = ls_axes(call->op->input[0], 3, 1);
    const int64_t row = ls_along(&rows, at), half = attr->size / 2;
    const int64_t first = row - half > 0 ? row - half : 0;
    const int64_t last = row + half < rows.dim - 1 ? row + half : rows.dim - 1;
    float sum = 0;
    for (int64_t r = first; r <= last; r++) {
        const float along = sum_along(call, &columns, at + (r - row) * rows.inner, ratios);
        sum = r == first ? along : sum + along;
    }
    return sum;
}

/* s */
static float lrn_scale(const struct ls_call *call, int64_t at)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    if (call->op->kind == LS_OP_LRN_BACKWARD && !attr->within)
        return ls_number(call, 3, at);
    return (attr->within ? 1 : attr->k) + factor_of(attr) * sum_around(call, at, false);
}

/* s^-beta, for the exponents that networks have by roots and quotients. */
static float lrn_power(const struct ls_lrn_attr *attr, float s)
{
    const float inverse = 1.0F / s;
    if (attr->beta == 0.75F)
        return inverse * sqrtf(sqrtf(s));
    if (attr->beta == 0.5F)
        return inverse * sqrtf(s);
    return attr->beta == 1 ? inverse : Sleef_cinz_powf1_u10purec(s, -attr->beta);
}

static void lrn(const struct ls_call *call)
{
    float *scale = call->op->outputs > 1 ? call->out[1] : NULL;
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++) {
        const float s = lrn_scale(call, i);
        ((float *)call->out[0])[i] = ls_number(call, 0, i) * lrn_power(&call->op->attr.lrn, s);
        if (scale != NULL)
            scale[i] = s;
    }
}

/* in: x, y, dy, (scale). */
static float lrn_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_lrn_attr *attr = &call->op->attr.lrn;
    const float own = ls_number(call, 2, i) * lrn_power(attr, lrn_scale(call, i));
    return own - slope_of(attr) * ls_number(call, 0, i) * sum_around(call, i, true);
}

const struct ls_compute ls_portable_windows[LS_OP_KINDS] = {
    [LS_OP_POOLING] = {.run = pooling, .scratch = ls_ref_pair_bytes},
    [LS_OP_POOLING_BACKWARD] = {.run = pooling_backward, .scratch = ls_ref_pair_bytes},
    [LS_OP_LRN] = {.run = lrn},
    [LS_OP_LRN_BACKWARD] = {.number = lrn_backward},
};
