/* Softmax, losses, and other figures of the micro-batch.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>
#include <sleef.h>

#include "device/counts.h"
#include "device/label.h"
#include "device/loss.h"
#include "ops/reference/reference.h"

/* The class that label i names; -1: none, -2: it counts nowhere. */
static int64_t class_at(const struct ls_call *call, int64_t i, int64_t classes)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float label = ((const float *)call->in[call->op->kind == LS_OP_COUNT_LABELS ? 0 : 1])[i];
    if (ls_label_ignored(label, attr->has_ignore, attr->ignore_label))
        return -2;
    return ls_label_class(label, classes);
}

/* ---- Softmax and its losses ------------------------------------------------------------------ */

/* The classes: an axis, or all that lies behind the samples. */
static struct ls_axes classes_of(const struct ls_op *op)
{
    const enum ls_op_kind kind = op->kind;
    if (kind == LS_OP_LOG_LOSS || kind == LS_OP_LOG_LOSS_BACKWARD)
        return ls_axes(op->input[0], 1, op->input[0]->shape.rank - 1);
    const bool plain = kind == LS_OP_SOFTMAX || kind == LS_OP_SOFTMAX_BACKWARD;
    return ls_axes(op->input[0], plain ? op->attr.axis : op->attr.loss.axis, 1);
}

/* Where class c of position i is. */
static int64_t place_of(const struct ls_axes *split, int64_t i, int64_t c)
{
    return (i / split->inner * split->dim + c) * split->inner + i % split->inner;
}

bool ls_ref_masked(const struct ls_call *call, int64_t i)
{
    const struct ls_op *op = call->op;
    int64_t at = 0, size = 1;
    if (op->kind != LS_OP_SOFTMAX || op->inputs == 1)
        return false;
    const struct ls_shape *x = &op->input[0]->shape, *mask = &op->input[1]->shape;
    for (int axis = x->rank - 1; axis >= 0; i /= x->dim[axis--]) {
        at += mask->dim[axis] > 1 ? i % x->dim[axis] * size : 0;
        size *= mask->dim[axis];
    }
    return ls_at(call, 1, at) == 0;
}

static void softmax(const struct ls_call *call)
{
    const struct ls_axes split = classes_of(call->op);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        double largest = -(double)INFINITY, sum = 0;
        for (int64_t c = 0; c < split.dim; c++)
            if (!ls_ref_masked(call, place_of(&split, i, c)))
                largest = fmax(largest, ls_at(call, 0, place_of(&split, i, c)));
        for (int64_t c = 0; c < 2 * split.dim; c++) { /* the sum first, then the quotients */
            const int64_t at = place_of(&split, i, c % split.dim);
            const bool masked = ls_ref_masked(call, at);
            const double part =
                masked ? 0 : Sleef_cinz_expd1_u10purec(ls_at(call, 0, at) - largest);
            sum += c < split.dim ? part : 0;
            ((float *)call->out[0])[at] = masked ? 0 : (float)(part / sum);
        }
    }
}

static double softmax_backward(const struct ls_call *call, int64_t i)
{
    const struct ls_axes split = classes_of(call->op);
    const int64_t position = i / split.inner / split.dim * split.inner + i % split.inner;
    double dot = 0;
    for (int64_t c = 0; c < split.dim; c++) {
        const int64_t at = place_of(&split, position, c);
        dot += ls_at(call, 0, at) * ls_at(call, 1, at);
    }
    return (ls_at(call, 1, i) - dot) * ls_at(call, 0, i);
}

/* a[c] = w[c] ((1 - smoothing) [c = class] + smoothing / C); no smoothing in a log loss. */
static double wanted(const struct ls_call *call, int64_t classes, int64_t class, int64_t c)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const double s = (double)attr->smoothing;
    return ls_loss_weight(attr, c) * ((c == class ? 1 - s : 0) + s / (double)classes);
}

/* Of the probabilities that input 0 is, or that output 0 becomes: the sum of -a log p. */
static void log_losses(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_axes split = classes_of(call->op);
    const bool makes = call->op->kind == LS_OP_SOFTMAX_LOSS;
    const float least = makes && !attr->clamped ? FLT_MIN : LS_LEAST_PROBABILITY;
    const float *from = makes ? call->out[0] : call->in[0];
    struct ls_loss_sums sums = {.positions = split.outer * split.inner, .samples = split.outer};
    if (makes)
        softmax(call);
    for (int64_t i = 0; i < sums.positions; i++) {
        const int64_t class = class_at(call, i, split.dim);
        sums.valid += class != -2;
        sums.weights += class >= 0 ? ls_loss_weight(attr, class) : 0;
        sums.bad_label = sums.bad_label || class == -1;
        for (int64_t c = 0; class >= 0 && c < split.dim; c++) {
            const float p = from[place_of(&split, i, c)];
            const double a = wanted(call, split.dim, class, c);
            if (a != 0) /* a NaN stays one */
                sums.sum -= a * Sleef_cinz_logd1_u10purec((double)(p < least ? least : p));
        }
    }
    ls_loss_add(attr, call->context, &sums);
}

/* dx = p sum(a) - a; clamped, where p[label] is less, that of the constant. The gradient of a
 * log loss is -a / p. */
static void log_losses_backward(const struct ls_call *call)
{
    const struct ls_axes split = classes_of(call->op);
    const bool log = call->op->kind == LS_OP_LOG_LOSS_BACKWARD;
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t class = class_at(call, i, split.dim);
        double total = 0, factor = ls_loss_scale(&call->op->attr.loss, call->context);
        for (int64_t c = 0; class >= 0 && c < split.dim; c++)
            total += wanted(call, split.dim, class, c);
        if (class >= 0 && call->op->attr.loss.clamped) {
            const double p = ls_at(call, 0, place_of(&split, i, class));
            factor *= p < (double)LS_LEAST_PROBABILITY ? p / (double)LS_LEAST_PROBABILITY : 1;
        }
        for (int64_t c = 0; class >= 0 && c < split.dim; c++) {
            const int64_t at = place_of(&split, i, c);
            const double p = ls_at(call, 0, at), a = wanted(call, split.dim, class, c);
            if (!log)
                call->sum[0][at] = factor * (total * p - a);
            else if (a != 0)
                call->sum[0][at] =
                    factor * -a /
                    (p < (double)LS_LEAST_PROBABILITY ? (double)LS_LEAST_PROBABILITY : p);
        }
    }
}

/* ---- Losses by element ----------------------------------------------------------------------- */

static void element_losses(const struct ls_call *call)
{
    const struct ls_value *value = call->op->input[0];
    const bool sigmoid = call->op->kind == LS_OP_SIGMOID_LOSS;
    const int64_t samples = ls_value_sample_rows(value);
    struct ls_loss_sums sums = {.positions = sigmoid ? ls_size(value) : samples,
                                .valid = sigmoid ? 0 : samples,
                                .samples = samples};
    for (int64_t i = 0; i < ls_size(value); i++) {
        const double x = ls_at(call, 0, i), target = ls_at(call, 1, i);
        if (!sigmoid)
            sums.sum += (x - target) * (x - target) / 2;
        if (!sigmoid || class_at(call, i, 1) == -2)
            continue;
        sums.sum += Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x)));
        sums.sum -= x * (target - (x >= 0 ? 1 : 0));
        sums.valid++;
    }
    ls_loss_add(&call->op->attr.loss, call->context, &sums);
}

static double sigmoid_loss_backward(const struct ls_call *call, int64_t i)
{
    const double p = 1 / (1 + Sleef_cinz_expd1_u10purec(-ls_at(call, 0, i)));
    return class_at(call, i, 1) == -2
               ? 0
               : (p - ls_at(call, 1, i)) * ls_loss_scale(&call->op->attr.loss, call->context);
}

static double euclidean_loss_backward(const struct ls_call *call, int64_t i)
{
    const double apart = ls_at(call, 0, i) - ls_at(call, 1, i);
    return apart * (double)call->op->attr.loss.scale *
           ls_loss_scale(&call->op->attr.loss, call->context);
}

static void sum_loss(const struct ls_call *call)
{
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++)
        call->context->partials[call->op->attr.loss.metric_offset] += ls_at(call, 0, i);
}

static double sum_loss_backward(const struct ls_call *call, int64_t i)
{
    (void)i;
    return (double)call->op->attr.loss.loss_weight;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

static void count_labels(const struct ls_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const bool weights = attr->normalization == LS_NORM_WEIGHTS;
    const float *numbers = call->op->inputs > 1 ? call->in[1] : NULL;
    for (int64_t i = 0; i < ls_size(call->op->input[0]); i++) {
        const int64_t class = class_at(call, i, attr->classes);
        if (numbers != NULL)
            call->context->partials[attr->metric_offset] += class != -2 ? (double)numbers[i] : 0;
        else if (weights ? class >= 0 : class != -2)
            call->context->partials[attr->metric_offset] +=
                weights ? ls_loss_weight(attr, class) : 1;
    }
}

const struct ls_compute ls_ref_losses[LS_OP_KINDS] = {
    [LS_OP_SOFTMAX] = {.run = softmax},
    [LS_OP_SOFTMAX_BACKWARD] = {.element = softmax_backward},
    [LS_OP_SOFTMAX_LOSS] = {.run = log_losses},
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = {.add = log_losses_backward},
    [LS_OP_LOG_LOSS] = {.run = log_losses},
    [LS_OP_LOG_LOSS_BACKWARD] = {.add = log_losses_backward},
    [LS_OP_SIGMOID_LOSS] = {.run = element_losses},
    [LS_OP_SIGMOID_LOSS_BACKWARD] = {.element = sigmoid_loss_backward},
    [LS_OP_EUCLIDEAN_LOSS] = {.run = element_losses},
    [LS_OP_EUCLIDEAN_LOSS_BACKWARD] = {.element = euclidean_loss_backward},
    [LS_OP_SUM_LOSS] = {.run = sum_loss},
    [LS_OP_SUM_LOSS_BACKWARD] = {.element = sum_loss_backward},
    [LS_OP_ACCURACY] = {.count = ls_count_hits},
    [LS_OP_MEAN_IOU] = {.count = ls_count_intersections},
    [LS_OP_COUNT_LABELS] = {.run = count_labels},
};
