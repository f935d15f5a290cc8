/* Softmax and losses of portable nets, in fp32; the sums of losses in double. See
 * ops/reference/portable.h. SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/label.h"
#include "device/loss.h"
#include "ops/reference/portable.h"

/* The class that a label names; -1: none, or it counts nowhere. */
static int64_t class_of(const struct ls_loss_attr *attr, float label, int64_t classes)
{
    return ls_label_ignored(label, attr->has_ignore, attr->ignore_label)
               ? -1
               : ls_label_class(label, classes);
}

/* log max(p, least) */
static double log_of(float p, float least)
{
    return (double)Sleef_cinz_logf1_u10purec(p < least ? least : p);
}

/* ---- Softmax --------------------------------------------------------------------------------- */

/* Where class c of position i is. */
static int64_t place_of(const struct ls_axes *split, int64_t i, int64_t c)
{
    return (i / split->inner * split->dim + c) * split->inner + i % split->inner;
}

static void add_class(const struct ls_axes *split, struct ls_float_lanes *sum, int64_t c, float x)
{
    sum->lane[split->inner == 1 ? c % LS_REF_LANES : 0] += x;
}

/* Sums over classes: in lanes where nothing lies behind them, else one after the other. */
static void make_probabilities(const struct ls_axes *split, const float *x, float *y)
{
    for (int64_t i = 0; i < split->outer * split->inner; i++) {
        struct ls_float_lanes sum = {{0}};
        float largest = -INFINITY;
        for (int64_t c = 0; c < split->dim; c++) {
            const float number = x[place_of(split, i, c)];
            largest = number > largest ? number : largest;
        }
        for (int64_t c = 0; c < split->dim; c++) {
            const int64_t at = place_of(split, i, c);
            y[at] = Sleef_cinz_expf1_u10purec(x[at] - largest);
            add_class(split, &sum, c, y[at]);
        }
        const float total = ls_float_fold(&sum);
        for (int64_t c = 0; c < split->dim; c++)
            y[place_of(split, i, c)] /= total;
    }
}

static void softmax(const struct ls_call *call)
{
    const struct ls_axes split = ls_axes(call->op->input[0], call->op->attr.axis, 1);
    const float *x = call->in[0];
    float *y = call->out[0];
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++)
        y[i] = ls_ref_masked(call, i) ? -INFINITY : x[i];
    make_probabilities(&split, y, y);
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++)
        y[i] = ls_ref_masked(call, i) ? 0 : y[i];
}

static void softmax_backward(const struct ls_call *call)
{
    const struct ls_axes split = ls_axes(call->op->input[0], call->op->attr.axis, 1);
    const float *y = call->in[0], *dy = call->in[1];
    float *dx = call->out[0];
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        struct ls_float_lanes sum = {{0}};
        for (int64_t c = 0; c < split.dim; c++)
            add_class(&split, &sum, c, dy[place_of(&split, i, c)] * y[place_of(&split, i, c)]);
        const float dot = ls_float_fold(&sum);
        for (int64_t c = 0; c < split.dim; c++) {
            const int64_t at = place_of(&split, i, c);
            dx[at] = (dy[at] - dot) * y[at];
        }
    }
}

/* ---- Softmax loss ---------------------------------------------------------------------------- */

/* The part of the labels' own classes. */
static double sum_true(const struct ls_axes *split, const struct ls_call *call,
                       struct ls_loss_sums *sums)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float *p = call->out[0], *label = call->in[1];
    const float least = attr->clamped ? LS_LEAST_PROBABILITY : FLT_MIN;
    double sum = 0;
    for (int64_t i = 0; i < sums->positions; i++) {
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            continue;
        const int64_t class = ls_label_class(label[i], split->dim);
        sums->valid++;
        sums->bad_label = sums->bad_label || class < 0;
        if (class < 0)
            continue;
        sums->weights += ls_loss_weight(attr, class);
        sum -= ls_loss_weight(attr, class) * log_of(p[place_of(split, i, class)], least);
    }
    return sum;
}

/* Of all classes of the positions behind place `o`, class by class, in parts of 256 positions. */
static double sum_place(const struct ls_axes *split, const struct ls_call *call, int64_t o)
{
    enum { PART = 256 };
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float *p = call->out[0], *label = call->in[1];
    double sum = 0;
    for (int64_t c = 0; c < split->dim; c++)
        for (int64_t first = 0; first < split->inner; first += PART) {
            double part = 0;
            for (int64_t i = first; i < split->inner && i < first + PART; i++) {
                const int64_t at = o * split->inner + i;
                if (!ls_label_ignored(label[at], attr->has_ignore, attr->ignore_label))
                    part -= log_of(p[place_of(split, at, c)], FLT_MIN);
            }
            sum += ls_loss_weight(attr, c) * part;
        }
    return sum;
}

static void softmax_loss(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_axes split = ls_axes(call->op->input[0], attr->axis, 1);
    const double smoothing = (double)attr->smoothing;
    struct ls_loss_sums sums = {.positions = split.outer * split.inner, .samples = split.outer};
    double all = 0;
    make_probabilities(&split, call->in[0], call->out[0]);
    sums.sum = sum_true(&split, call, &sums);
    for (int64_t o = 0; smoothing > 0 && o < split.outer; o++)
        all += sum_place(&split, call, o);
    if (smoothing > 0)
        sums.sum = (1 - smoothing) * sums.sum + smoothing / (double)split.dim * all;
    ls_loss_add(attr, call->context, &sums);
}

/* What is clamped has the gradient of a constant in the logarithm's derivative. */
static double shrink(const struct ls_loss_attr *attr, float p)
{
    return attr->clamped && p < LS_LEAST_PROBABILITY ? (double)p / (double)LS_LEAST_PROBABILITY : 1;
}

/* Without weights and smoothing: in fp32. */
static void loss_backward_plain(const struct ls_axes *split, const struct ls_call *call, int64_t i,
                                int64_t class)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float factor = ls_loss_factor(attr, call->context), *p = call->in[0];
    const float less = (float)shrink(attr, p[place_of(split, i, class)]);
    for (int64_t c = 0; c < split->dim; c++) {
        const int64_t at = place_of(split, i, c);
        const float slope = (c == class ? p[at] - 1.0F : p[at]) * factor;
        ((float *)call->out[0])[at] = less < 1 ? slope * less : slope;
    }
}

/* With them: in double, rounded once. */
static void loss_backward_mixed(const struct ls_axes *split, const struct ls_call *call, int64_t i,
                                int64_t class)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float *p = call->in[0];
    const double share = (double)attr->smoothing / (double)split->dim;
    double all = 0, own = (1 - (double)attr->smoothing) * ls_loss_weight(attr, class);
    for (int64_t c = 0; c < split->dim; c++)
        all += ls_loss_weight(attr, c);
    own *= shrink(attr, p[place_of(split, i, class)]);
    for (int64_t c = 0; c < split->dim; c++) {
        const int64_t at = place_of(split, i, c);
        double part = share * ls_loss_weight(attr, c);
        part = c == class ? part + own : part;
        const double slope = (own + share * all) * (double)p[at] - part;
        ((float *)call->out[0])[at] = (float)(slope * ls_loss_scale(attr, call->context));
    }
}

static void softmax_loss_backward(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_axes split = ls_axes(call->op->input[0], attr->axis, 1);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t class = class_of(attr, ls_number(call, 1, i), split.dim);
        for (int64_t c = 0; class < 0 && c < split.dim; c++)
            ((float *)call->out[0])[place_of(&split, i, c)] = 0;
        if (class >= 0 && attr->class_weight == NULL && attr->smoothing == 0)
            loss_backward_plain(&split, call, i, class);
        else if (class >= 0)
            loss_backward_mixed(&split, call, i, class);
    }
}

/* ---- Other losses ---------------------------------------------------------------------------- */

static void log_loss(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const int64_t samples = call->op->input[0]->shape.dim[0];
    const int64_t classes = ls_size(call->op->input[0]) / samples;
    struct ls_loss_sums sums = {.positions = samples, .samples = samples};
    for (int64_t n = 0; n < samples; n++) {
        const float label = ls_number(call, 1, n);
        if (ls_label_ignored(label, attr->has_ignore, attr->ignore_label))
            continue;
        const int64_t class = ls_label_class(label, classes);
        sums.valid++;
        sums.bad_label = sums.bad_label || class < 0;
        if (class < 0)
            continue;
        sums.weights += ls_loss_weight(attr, class);
        sums.sum -= ls_loss_weight(attr, class) *
                    log_of(ls_number(call, 0, n * classes + class), LS_LEAST_PROBABILITY);
    }
    ls_loss_add(attr, call->context, &sums);
}

static void log_loss_backward(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const int64_t samples = call->op->input[0]->shape.dim[0];
    const int64_t classes = ls_size(call->op->input[0]) / samples;
    memset(call->out[0], 0, ls_value_bytes(call->op->output[0]));
    for (int64_t n = 0; n < samples; n++) {
        const int64_t class = class_of(attr, ls_number(call, 1, n), classes);
        if (class < 0)
            continue;
        const float p = ls_number(call, 0, n * classes + class);
        const double scale = ls_loss_scale(attr, call->context) * ls_loss_weight(attr, class);
        ((float *)call->out[0])[n * classes + class] =
            (float)(-scale / (double)(p < LS_LEAST_PROBABILITY ? LS_LEAST_PROBABILITY : p));
    }
}

static void sigmoid_loss(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_value *value = call->op->input[0];
    struct ls_loss_sums sums = {.positions = ls_size(value),
                                .samples = ls_value_sample_rows(value)};
    for (int64_t i = 0; i < ls_size(value); i++) {
        const float x = ls_number(call, 0, i), target = ls_number(call, 1, i);
        const float soft = Sleef_cinz_expf1_u10purec(-fabsf(x)) + 1.0F;
        if (ls_label_ignored(target, attr->has_ignore, attr->ignore_label))
            continue;
        sums.sum += (double)Sleef_cinz_logf1_u10purec(soft) -
                    (double)x * ((double)target - (x >= 0 ? 1.0 : 0.0));
        sums.valid++;
    }
    ls_loss_add(attr, call->context, &sums);
}

static float sigmoid_loss_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float target = ls_number(call, 1, i);
    const float p = 1.0F / (1.0F + Sleef_cinz_expf1_u10purec(-ls_number(call, 0, i)));
    if (ls_label_ignored(target, attr->has_ignore, attr->ignore_label))
        return 0;
    return (p - target) * ls_loss_factor(attr, call->context);
}

/* In lanes, which are added one after the other. */
static void euclidean_loss(const struct ls_call *call)
{
    const struct ls_value *value = call->op->input[0];
    const int64_t samples = ls_value_sample_rows(value);
    struct ls_loss_sums sums = {.valid = samples, .positions = samples, .samples = samples};
    struct ls_lane_sum squares = {{0}};
    for (int64_t i = 0; i < ls_size(value); i++) {
        const double apart = ls_at(call, 0, i) - ls_at(call, 1, i);
        squares.lane[i % LS_REF_LANES] += apart * apart;
    }
    for (int l = 0; l < LS_REF_LANES; l++)
        sums.sum += squares.lane[l];
    sums.sum /= 2;
    ls_loss_add(&call->op->attr.loss, call->context, &sums);
}

static float euclidean_loss_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float factor = attr->scale * ls_loss_factor(attr, call->context);
    return (ls_number(call, 0, i) - ls_number(call, 1, i)) * factor;
}

const struct ls_compute ls_portable_losses[LS_OP_KINDS] = {
    [LS_OP_SOFTMAX] = {.run = softmax},
    [LS_OP_SOFTMAX_BACKWARD] = {.run = softmax_backward},
    [LS_OP_SOFTMAX_LOSS] = {.run = softmax_loss},
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = {.run = softmax_loss_backward},
    [LS_OP_LOG_LOSS] = {.run = log_loss},
    [LS_OP_LOG_LOSS_BACKWARD] = {.run = log_loss_backward},
    [LS_OP_SIGMOID_LOSS] = {.run = sigmoid_loss},
    [LS_OP_SIGMOID_LOSS_BACKWARD] = {.number = sigmoid_loss_backward},
    [LS_OP_EUCLIDEAN_LOSS] = {.run = euclidean_loss},
    [LS_OP_EUCLIDEAN_LOSS_BACKWARD] = {.number = euclidean_loss_backward},
};
