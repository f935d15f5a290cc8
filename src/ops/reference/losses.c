/* Softmax, losses, and other figures of the micro-batch.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>
#include <sleef.h>

#include "device/label.h"
#include "ops/reference/reference.h"

#define LEAST 1e-20F /* of a probability in LOG_LOSS: Caffe's kLOG_THRESHOLD */

/* What the gradient of a loss is multiplied by. */
static double factor_of(const struct ls_ref_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    double divisor = attr->normalizer < 0 ? 1 : call->context->normalizers[attr->normalizer];
    return (double)attr->loss_weight / divisor;
}

static double weight_of(const struct ls_loss_attr *attr, int64_t class)
{
    return attr->class_weight != NULL ? (double)attr->class_weight[class] : 1;
}

/* Whether label i, of input 1, counts nowhere. */
static bool ignored(const struct ls_ref_call *call, int64_t i)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    return ls_label_ignored(((const float *)call->in[1])[i], attr->has_ignore, attr->ignore_label);
}

/* Adds [sum, count] to the record of the micro-batch. */
static void add_loss(const struct ls_ref_call *call, double sum, int64_t positions, int64_t valid,
                     int64_t samples, double weights)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const double count[] = {[LS_NORM_FULL] = (double)positions,
                            [LS_NORM_VALID] = (double)valid,
                            [LS_NORM_BATCH_SIZE] = (double)samples,
                            [LS_NORM_NONE] = 0,
                            [LS_NORM_WEIGHTS] = weights};
    call->context->partials[attr->metric_offset] += sum;
    call->context->partials[attr->metric_offset + 1] += count[attr->normalization];
}

/* ---- Softmax and its losses ------------------------------------------------------------------ */

/* The classes: an axis, or all that lies behind the samples. */
static struct ls_ref_split classes_of(const struct ls_ref_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_value *x = op->input[0];
    switch (op->kind) {
    case LS_OP_LOG_LOSS:
    case LS_OP_LOG_LOSS_BACKWARD:
        return ls_ref_split(x, 1, x->shape.rank - 1);
    case LS_OP_SOFTMAX:
    case LS_OP_SOFTMAX_BACKWARD:
        return ls_ref_split(x, op->attr.axis, 1);
    case LS_OP_ACCURACY:
        return ls_ref_split(x, op->attr.accuracy.axis, 1);
    case LS_OP_MEAN_IOU:
        return ls_ref_split(x, op->attr.mean_iou.axis, 1);
    default:
        return ls_ref_split(x, op->attr.loss.axis, 1);
    }
}

/* Where class c of position i is. */
static int64_t place_of(const struct ls_ref_split *split, int64_t i, int64_t c)
{
    return (i / split->inner * split->dim + c) * split->inner + i % split->inner;
}

static void softmax(const struct ls_ref_call *call)
{
    const struct ls_ref_split split = classes_of(call);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        double largest = -(double)INFINITY, sum = 0;
        for (int64_t c = 0; c < split.dim; c++) {
            double x = ls_ref_at(call, 0, place_of(&split, i, c));
            largest = x > largest ? x : largest;
        }
        for (int64_t c = 0; c < 2 * split.dim; c++) { /* the sum first, then the quotients */
            int64_t at = place_of(&split, i, c % split.dim);
            double part = Sleef_cinz_expd1_u10purec(ls_ref_at(call, 0, at) - largest);
            if (c < split.dim)
                sum += part;
            else
                ((float *)call->out[0])[at] = (float)(part / sum);
        }
    }
}

static void softmax_backward(const struct ls_ref_call *call)
{
    const struct ls_ref_split split = classes_of(call);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        double dot = 0;
        for (int64_t c = 0; c < 2 * split.dim; c++) {
            int64_t at = place_of(&split, i, c % split.dim);
            double y = ls_ref_at(call, 0, at), dy = ls_ref_at(call, 1, at);
            if (c < split.dim)
                dot += y * dy;
            else
                ((float *)call->out[0])[at] = (float)((dy - dot) * y);
        }
    }
}

/* a[c] = w[c] ((1 - smoothing) [c = class] + smoothing / C); no smoothing in a log loss. */
static double wanted(const struct ls_ref_call *call, int64_t classes, int64_t class, int64_t c)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const double s = (double)attr->smoothing;
    return weight_of(attr, c) * ((c == class ? 1 - s : 0) + s / (double)classes);
}

/* Of the probabilities that input 0 is, or that output 0 has become: the sum of -a log p. */
static void log_losses(const struct ls_ref_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_ref_split split = classes_of(call);
    const bool softmax_loss = call->op->kind == LS_OP_SOFTMAX_LOSS;
    const float least = softmax_loss && !attr->clamped ? FLT_MIN : LEAST;
    double sum = 0, weights = 0;
    int64_t valid = 0;
    if (softmax_loss)
        softmax(call);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t class = ls_label_class(((const float *)call->in[1])[i], split.dim);
        if (ignored(call, i))
            continue;
        valid++;
        weights += class >= 0 ? weight_of(attr, class) : 0;
        sum += class >= 0 ? 0 : (double)NAN;
        for (int64_t c = 0; class >= 0 && c < split.dim; c++) {
            const float *from = softmax_loss ? call->out[0] : call->in[0];
            const float p = from[place_of(&split, i, c)];
            const double a = wanted(call, split.dim, class, c);
            if (a != 0) /* a NaN stays one */
                sum -= a * Sleef_cinz_logd1_u10purec((double)(p < least ? least : p));
        }
    }
    add_loss(call, sum, split.outer * split.inner, valid, split.outer, weights);
}

/* dx = p sum(a) - a; clamped, where p[label] is less, that of the constant LEAST. The gradient of a
 * log loss is -a / p. */
static void log_losses_backward(const struct ls_ref_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct ls_ref_split split = classes_of(call);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t class = ls_label_class(((const float *)call->in[1])[i], split.dim);
        const bool counts = class >= 0 && !ignored(call, i);
        double total = 0, factor = factor_of(call);
        for (int64_t c = 0; counts && c < split.dim; c++)
            total += wanted(call, split.dim, class, c);
        if (counts && attr->clamped) {
            const double p = ls_ref_at(call, 0, place_of(&split, i, class));
            factor *= p < (double)LEAST ? p / (double)LEAST : 1;
        }
        for (int64_t c = 0; c < split.dim; c++) {
            const int64_t at = place_of(&split, i, c);
            const double p = ls_ref_at(call, 0, at), a = wanted(call, split.dim, class, c);
            double gradient = total * p - a;
            if (call->op->kind == LS_OP_LOG_LOSS_BACKWARD)
                gradient = a == 0 ? 0 : -a / (p < (double)LEAST ? (double)LEAST : p);
            ((float *)call->out[0])[at] = counts ? (float)(factor * gradient) : 0;
        }
    }
}

/* ---- Losses by element ----------------------------------------------------------------------- */

static void sigmoid_loss(const struct ls_ref_call *call)
{
    const int64_t n = ls_ref_size(call->op->input[0]);
    int64_t valid = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = ls_ref_at(call, 0, i), target = ls_ref_at(call, 1, i);
        if (ignored(call, i))
            continue;
        sum += Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x)));
        sum -= x * (target - (x >= 0 ? 1 : 0));
        valid++;
    }
    add_loss(call, sum, n, valid, call->op->input[0]->shape.dim[0], 0);
}

static double sigmoid_loss_backward(const struct ls_ref_call *call, int64_t i)
{
    const double p = 1 / (1 + Sleef_cinz_expd1_u10purec(-ls_ref_at(call, 0, i)));
    return ignored(call, i) ? 0 : (p - ls_ref_at(call, 1, i)) * factor_of(call);
}

static void euclidean_loss(const struct ls_ref_call *call)
{
    const int64_t samples = call->op->input[0]->shape.dim[0];
    double sum = 0;
    for (int64_t i = 0; i < ls_ref_size(call->op->input[0]); i++) {
        const double apart = ls_ref_at(call, 0, i) - ls_ref_at(call, 1, i);
        sum += apart * apart / 2;
    }
    add_loss(call, sum, samples, samples, samples, 0);
}

static double euclidean_loss_backward(const struct ls_ref_call *call, int64_t i)
{
    const double apart = ls_ref_at(call, 0, i) - ls_ref_at(call, 1, i);
    return apart * (double)call->op->attr.loss.scale * factor_of(call);
}

static void sum_loss(const struct ls_ref_call *call)
{
    double sum = 0;
    for (int64_t i = 0; i < ls_ref_size(call->op->input[0]); i++)
        sum += ls_ref_at(call, 0, i);
    call->context->partials[call->op->attr.loss.metric_offset] += sum;
}

static double sum_loss_backward(const struct ls_ref_call *call, int64_t i)
{
    (void)i;
    return (double)call->op->attr.loss.loss_weight;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

/* The first of the largest scores of position i; -1 where `numbers` only count and one is none. */
static int64_t best_of(const struct ls_ref_call *call, int64_t i, bool numbers)
{
    const struct ls_ref_split split = classes_of(call);
    int64_t best = 0;
    for (int64_t c = 0; c < split.dim; c++) {
        const double score = ls_ref_at(call, 0, place_of(&split, i, c));
        if (numbers && isnan(score))
            return -1;
        best = score > ls_ref_at(call, 0, place_of(&split, i, best)) ? c : best;
    }
    return best;
}

/* A hit: at most top_k scores, its own included, are not less than that of the class. */
static void accuracy(const struct ls_ref_call *call)
{
    const struct ls_accuracy_attr *attr = &call->op->attr.accuracy;
    const struct ls_ref_split split = classes_of(call);
    double *record = call->context->partials;
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const float label = ((const float *)call->in[1])[i];
        const int64_t class = ls_label_class(label, split.dim);
        int64_t better = 0;
        if (ls_label_ignored(label, attr->has_ignore, attr->ignore_label))
            continue;
        for (int64_t c = 0; class >= 0 && c < split.dim; c++)
            better += !(ls_ref_at(call, 0, place_of(&split, i, c)) <
                        ls_ref_at(call, 0, place_of(&split, i, class)));
        const bool hit = better <= attr->top_k;
        record[attr->metric_offset + 1] += 1;
        record[attr->metric_offset] += class < 0 ? (double)NAN : hit;
        if (class >= 0 && attr->class_offset >= 0) {
            record[attr->class_offset + class] += hit;
            record[attr->class_offset + split.dim + class] += 1;
        }
        if (class >= 0 && attr->confusion_offset >= 0)
            record[attr->confusion_offset + class * split.dim + best_of(call, i, false)] += 1;
    }
}

static void mean_iou(const struct ls_ref_call *call)
{
    const struct ls_mean_iou_attr *attr = &call->op->attr.mean_iou;
    const struct ls_ref_split split = classes_of(call);
    double *record = call->context->partials + attr->metric_offset;
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const float label = ((const float *)call->in[1])[i];
        const int64_t class = ls_label_class(label, split.dim), taken = best_of(call, i, true);
        if (ls_label_ignored(label, attr->has_ignore, attr->ignore_label))
            continue;
        if (class < 0) {
            record[0] = (double)NAN;
            continue;
        }
        record[class] += taken == class;
        record[2 * split.dim + class] += 1;
        if (taken >= 0)
            record[split.dim + taken] += 1;
    }
}

static void count_labels(const struct ls_ref_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const float *label = call->in[0];
    for (int64_t i = 0; i < ls_ref_size(call->op->input[0]); i++) {
        const bool weighted = attr->normalization == LS_NORM_WEIGHTS;
        const int64_t class = weighted ? ls_label_class(label[i], attr->classes) : 0;
        if (class >= 0 && !ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            call->context->partials[attr->metric_offset] += weighted ? weight_of(attr, class) : 1;
    }
}

const struct ls_ref_compute ls_ref_losses[LS_OP_KINDS] = {
    [LS_OP_SOFTMAX] = {.run = softmax},
    [LS_OP_SOFTMAX_BACKWARD] = {.run = softmax_backward},
    [LS_OP_SOFTMAX_LOSS] = {.run = log_losses},
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = {.run = log_losses_backward},
    [LS_OP_LOG_LOSS] = {.run = log_losses},
    [LS_OP_LOG_LOSS_BACKWARD] = {.run = log_losses_backward},
    [LS_OP_SIGMOID_LOSS] = {.run = sigmoid_loss},
    [LS_OP_SIGMOID_LOSS_BACKWARD] = {.element = sigmoid_loss_backward},
    [LS_OP_EUCLIDEAN_LOSS] = {.run = euclidean_loss},
    [LS_OP_EUCLIDEAN_LOSS_BACKWARD] = {.element = euclidean_loss_backward},
    [LS_OP_SUM_LOSS] = {.run = sum_loss},
    [LS_OP_SUM_LOSS_BACKWARD] = {.element = sum_loss_backward},
    [LS_OP_ACCURACY] = {.run = accuracy},
    [LS_OP_MEAN_IOU] = {.run = mean_iou},
    [LS_OP_COUNT_LABELS] = {.run = count_labels},
};
