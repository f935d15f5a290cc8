/* Functions of one number, sums of several values, factors, reductions and resizing, of portable
 * nets. See ops/reference/portable.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "device/activation.h"
#include "ops/reference/portable.h"

/* ---- Of one number --------------------------------------------------------------------------- */

float ls_portable_activation(const struct ls_activation_attr *attr, float x)
{
    return ls_activation_number(attr, x);
}

float ls_portable_slope(const struct ls_activation_attr *attr, float dy, float given)
{
    return ls_activation_slope(attr, dy, given);
}

static float activation(const struct ls_call *call, int64_t i)
{
    return ls_portable_activation(&call->op->attr.activation, ls_number(call, 0, i));
}

static float activation_backward(const struct ls_call *call, int64_t i)
{
    return ls_portable_slope(&call->op->attr.activation, ls_number(call, 0, i),
                             ls_number(call, 1, i));
}

/* ---- Of several values ----------------------------------------------------------------------- */

/* One input after the other. */
static float eltwise(const struct ls_call *call, int64_t i)
{
    const struct ls_eltwise_attr *attr = &call->op->attr.eltwise;
    const int inputs = call->op->inputs - attr->gated;
    const float *by = attr->method == LS_ELTWISE_SUM ? attr->coefficients : NULL;
    float s = ls_number(call, 0, i) * (by != NULL ? by[0] : 1);
    for (int k = 1; k < inputs; k++) {
        const float x = ls_number(call, k, i);
        if (attr->method == LS_ELTWISE_SUM)
            s = s + (by != NULL ? by[k] * x : x);
        else
            s = attr->method == LS_ELTWISE_PROD ? s * x : s > x ? s : x;
    }
    if (attr->gated)
        return ls_through_relu(s, ls_number(call, inputs, i), attr->relu_slope);
    return attr->relu ? ls_relu_of(s, attr->relu_slope) : s;
}

/* The product of the other inputs, then dy. */
static float product_backward(const struct ls_call *call, int64_t i)
{
    const int which = call->op->attr.eltwise.which;
    float others = 1;
    for (int k = 0; k < call->op->inputs - 1; k++)
        others = k != which ? others * ls_number(call, k + 1, i) : others;
    return others * ls_number(call, 0, i);
}

static float eltwise_backward(const struct ls_call *call, int64_t i)
{
    if (call->op->attr.eltwise.method == LS_ELTWISE_PROD)
        return product_backward(call, i);
    return (float)ls_ref_elements[LS_OP_ELTWISE_BACKWARD].element(call, i);
}

static float scale(const struct ls_call *call, int64_t i)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_axes split = ls_axes(call->op->input[0], attr->axis, attr->axes);
    const float *factor = ls_in(call, 1), *bias = ls_in(call, 2);
    const int64_t d = ls_along(&split, i);
    const float product = ls_number(call, 0, i) * (factor != NULL ? factor[d] : 1);
    return bias != NULL ? product + bias[d] : product;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* dfactor and dbias of one number of the factor: what lies behind it in lanes, which go on from one
 * place in front of it to the next; where nothing does, one place after the other. */
static void scale_sums(const struct ls_call *call)
{
    const struct ls_scale_attr *attr = &call->op->attr.scale;
    const struct ls_axes split = ls_axes(call->op->input[0], attr->axis, attr->axes);
    const float *dy = call->in[0], *x = ls_in(call, 1) != NULL ? ls_in(call, 1) : dy;
    for (int64_t d = 0; d < split.dim; d++) {
        struct ls_lane_sum factor = {{0}}, bias = {{0}};
        for (int64_t o = 0; o < split.outer; o++)
            for (int64_t i = 0; i < split.inner; i++) {
                const int64_t at = (o * split.dim + d) * split.inner + i;
                factor.lane[i % LS_REF_LANES] += (double)dy[at] * (double)x[at];
                bias.lane[i % LS_REF_LANES] += (double)dy[at];
            }
        if (call->out[0] != NULL)
            ((float *)call->out[0])[d] = (float)ls_lane_fold(&factor);
        if (call->out[1] != NULL)
            ((float *)call->out[1])[d] = (float)ls_lane_fold(&bias);
    }
}

/* A channel's points in lanes, then over the samples; a slope for all: then over the channels. */
static void prelu_slope(const struct ls_call *call)
{
    const struct ls_axes split = ls_axes(call->op->input[1], 1, 1);
    const bool shared = call->op->output[0]->shape.rank == 0;
    double total = 0;
    for (int64_t c = 0; c < split.dim; c++) {
        double sum = 0;
        for (int64_t n = 0; n < split.outer; n++) {
            struct ls_lane_sum points = {{0}};
            for (int64_t p = 0; p < split.inner; p++) {
                const int64_t at = (n * split.dim + c) * split.inner + p;
                const double x = ls_at(call, 1, at);
                points.lane[p % LS_REF_LANES] += x > 0 ? 0 : ls_at(call, 0, at) * x;
            }
            sum += ls_lane_fold(&points);
        }
        total += sum;
        ((float *)call->out[0])[shared ? 0 : c] = (float)(shared ? total : sum);
    }
}

/* The copies one after the other, in double. */
static float tile_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_tile_attr *attr = &call->op->attr.tile;
    const struct ls_value *dx = call->op->output[0];
    const int64_t run = ls_shape_count(&dx->shape, attr->axis, dx->shape.rank);
    const int64_t first = i / run * attr->tiles * run + i % run;
    double sum = ls_at(call, 0, first);
    for (int64_t t = 1; t < attr->tiles; t++)
        sum += ls_at(call, 0, first + t * run);
    return (float)sum;
}

/* Elements in lanes; chunks of LS_EXACT_CHUNK by halves. */
static double sum_values(const float *x, int64_t n)
{
    const int64_t chunks = (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    struct ls_lane_sum sum = {{0}};
    if (chunks > 1) {
        const int64_t half = (chunks - chunks / 2) * LS_EXACT_CHUNK;
        return sum_values(x, half) + sum_values(x + half, n - half);
    }
    for (int64_t i = 0; i < n; i++)
        sum.lane[i % LS_REF_LANES] += (double)x[i];
    return ls_lane_fold(&sum);
}

static double reduced(const struct ls_reduction_attr *attr, const float *x, int64_t n)
{
    double sum = 0;
    if (attr->method == LS_REDUCE_ASUM)
        ls_plain_sums.magnitudes(x, (size_t)n, &sum, NULL);
    else if (attr->method == LS_REDUCE_SUMSQ)
        ls_plain_sums.squares(x, (size_t)n, &sum, NULL);
    else
        sum = sum_values(x, n);
    return (double)attr->coeff * sum;
}

static int64_t run_of(const struct ls_call *call, const struct ls_value *x)
{
    return ls_shape_count(&x->shape, call->op->attr.reduction.axis, x->shape.rank);
}

static float reduce(const struct ls_call *call, int64_t i)
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const int64_t run = run_of(call, call->op->input[0]);
    const double sum = reduced(attr, (const float *)call->in[0] + i * run, run);
    return (float)(sum / (attr->method == LS_REDUCE_MEAN ? (double)run : 1));
}

static void reduce_loss(const struct ls_call *call)
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const int64_t n = ls_size(call->op->input[0]);
    double *record = call->context->partials + attr->metric_offset;
    record[0] += reduced(attr, call->in[0], n);
    record[1] += (double)n;
}

/* in: (dy), (x: ASUM, SUMSQ) */
static float reduce_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_reduction_attr *attr = &call->op->attr.reduction;
    const bool square = attr->method == LS_REDUCE_SUMSQ;
    const float x =
        square || attr->method == LS_REDUCE_ASUM ? ls_number(call, call->op->inputs - 1, i) : 1;
    const int64_t run = run_of(call, call->op->output[0]);
    double wide = (double)attr->coeff;
    if (call->op->kind == LS_OP_REDUCE_BACKWARD)
        wide = wide / (attr->method == LS_REDUCE_MEAN ? (double)run : 1) * ls_at(call, 0, i / run);
    else
        wide = wide * (double)attr->loss_weight /
               (attr->normalizer < 0 ? 1 : call->context->normalizers[attr->normalizer]);
    const float factor = (float)wide;
    if (square)
        return 2 * factor * x;
    return x > 0 ? factor : x < 0 ? -factor : 0;
}

static void sum_loss(const struct ls_call *call)
{
    call->context->partials[call->op->attr.loss.metric_offset] +=
        sum_values(call->in[0], ls_size(call->op->input[0]));
}

/* ---- Resizing -------------------------------------------------------------------------------- */

/* A position of y lies between two of x. */
struct between {
    int64_t low, high;
    float near, far;
};

static struct between place(const struct ls_resize_attr *attr, int64_t in, int64_t out, int64_t i)
{
    const int64_t left = in - attr->begin - attr->end, steps = out > 1 ? out - 1 : 1;
    const int64_t rest = i * (left - 1) % steps, low = attr->begin + i * (left - 1) / steps;
    return (struct between){.low = low,
                            .high = low + (rest > 0),
                            .near = (float)((double)(steps - rest) / (double)steps),
                            .far = (float)((double)rest / (double)steps)};
}

/* Two rows of x are blended, then two columns of the blend. */
static float resize(const struct ls_call *call, int64_t i)
{
    const int64_t *x = call->op->input[0]->shape.dim, *y = call->op->output[0]->shape.dim;
    const struct ls_resize_attr *attr = &call->op->attr.resize;
    const struct between row = place(attr, x[2], y[2], i / y[3] % y[2]);
    const struct between column = place(attr, x[3], y[3], i % y[3]);
    const float *plane = (const float *)call->in[0] + i / y[3] / y[2] * x[2] * x[3];
    const float *low = plane + row.low * x[3], *high = plane + row.high * x[3];
    const float left = row.near * low[column.low] + row.far * high[column.low];
    const float right = row.near * low[column.high] + row.far * high[column.high];
    return column.near * left + column.far * right;
}

/* A row of dy goes to columns: those of the positions in front of it first. */
static void spread_row(const struct ls_resize_attr *attr, const float *dy, int64_t in, int64_t out,
                       float *row)
{
    memset(row, 0, (size_t)in * sizeof *row);
    for (int64_t j = 0; j < out; j++) {
        const struct between at = place(attr, in, out, j);
        row[at.low] += at.near * dy[j];
        if (at.low + 1 < in)
            row[at.low + 1] += at.far * dy[j];
    }
}

/* Rows of dy from the top to the bottom, each to two rows of dx. */
static void resize_backward(const struct ls_call *call)
{
    const int64_t *x = call->op->output[0]->shape.dim, *y = call->op->input[0]->shape.dim;
    const struct ls_resize_attr *attr = &call->op->attr.resize;
    float *row = call->scratch;
    memset(call->out[0], 0, ls_value_bytes(call->op->output[0]));
    for (int64_t i = 0; i < y[0] * y[1] * y[2]; i++) {
        float *dx = (float *)call->out[0] + i / y[2] * x[2] * x[3];
        const struct between at = place(attr, x[2], y[2], i % y[2]);
        spread_row(attr, (const float *)call->in[0] + i * y[3], x[3], y[3], row);
        for (int64_t c = 0; c < x[3]; c++)
            dx[at.low * x[3] + c] += at.near * row[c];
        for (int64_t c = 0; c < x[3]; c++)
            dx[at.high * x[3] + c] += at.far * row[c];
    }
}

static size_t row_bytes(const struct ls_op *op)
{
    return (size_t)op->output[0]->shape.dim[3] * sizeof(float);
}

const struct ls_compute ls_portable_elements[LS_OP_KINDS] = {
    [LS_OP_ACTIVATION] = {.number = activation},
    [LS_OP_ACTIVATION_BACKWARD] = {.number = activation_backward},
    [LS_OP_PRELU_SLOPE] = {.run = prelu_slope},
    [LS_OP_ELTWISE] = {.number = eltwise},
    [LS_OP_ELTWISE_BACKWARD] = {.number = eltwise_backward},
    [LS_OP_SCALE] = {.number = scale},
    [LS_OP_SCALE_SUMS] = {.run = scale_sums},
    [LS_OP_REDUCE] = {.number = reduce},
    [LS_OP_REDUCE_BACKWARD] = {.number = reduce_backward},
    [LS_OP_REDUCE_LOSS] = {.run = reduce_loss},
    [LS_OP_REDUCE_LOSS_BACKWARD] = {.number = reduce_backward},
    [LS_OP_TILE_BACKWARD] = {.number = tile_backward},
    [LS_OP_RESIZE] = {.number = resize},
    [LS_OP_RESIZE_BACKWARD] = {.run = resize_backward, .scratch = row_bytes},
    [LS_OP_SUM_LOSS] = {.run = sum_loss},
};
