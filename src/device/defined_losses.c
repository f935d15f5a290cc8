/* Losses of pairs, margins and gains; see device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>
#include <sleef.h>

#include "device/defined.h"
#include "device/label.h"
#include "device/loss.h"

#define CONTRASTIVE_GUARD 1e-4 /* Caffe's, which keeps the gradient finite at distance 0 */

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* Element i of input k. */
static double number(const struct ls_defined_call *call, int k, int64_t i)
{
    return (double)((const float *)call->in[k])[i];
}

static bool is_there(const struct ls_defined_call *call, int k)
{
    return k < call->op->inputs && call->in[k] != NULL;
}

static struct ls_loss_sums count_samples(const struct ls_op *op)
{
    const int64_t samples = ls_value_sample_rows(op->input[0]);
    return (struct ls_loss_sums){.valid = samples, .positions = samples, .samples = samples};
}

/* ---- Hinge ----------------------------------------------------------------------------------- */

static void hinge(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    struct ls_loss_sums sums = count_samples(call->op);
    const int64_t classes = size_of(call->op->input[0]) / sums.samples;
    for (int64_t n = 0; n < sums.samples; n++) {
        const float label = (float)number(call, 1, n);
        const int64_t class = ls_label_class(label, classes);
        if (ls_label_ignored(label, attr->has_ignore, attr->ignore_label))
            continue;
        sums.bad_label = sums.bad_label || class < 0;
        for (int64_t k = 0; k < classes; k++) {
            const double x = number(call, 0, n * classes + k);
            const double part = 1 + (k == class ? -x : x);
            if (!(part <= 0)) /* a NaN stays one */
                sums.sum += attr->squared ? part * part : part;
        }
    }
    ls_loss_add(attr, call->context, &sums);
}

static void hinge_backward(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const int64_t samples = ls_value_sample_rows(call->op->input[0]);
    const int64_t classes = size_of(call->op->input[0]) / samples;
    const double factor = ls_loss_scale(attr, call->context);
    float *dx = call->out[0];
    for (int64_t n = 0; n < samples; n++) {
        const float label = (float)number(call, 1, n);
        const int64_t class = ls_label_class(label, classes);
        const bool ignored = ls_label_ignored(label, attr->has_ignore, attr->ignore_label);
        for (int64_t k = 0; k < classes; k++) {
            const double sign = k == class ? -1 : 1;
            const double part = 1 + sign * number(call, 0, n * classes + k);
            const double slope = ignored || part <= 0 ? 0 : attr->squared ? 2 * part : 1;
            dx[n * classes + k] = (float)(sign * slope * factor);
        }
    }
}

/* ---- Contrastive ----------------------------------------------------------------------------- */

/* The square of the distance of the two numbers of sample n. */
static double distance_of(const struct ls_defined_call *call, int64_t n, int64_t each)
{
    double sum = 0;
    for (int64_t i = n * each; i < (n + 1) * each; i++) {
        const double apart = number(call, 0, i) - number(call, 1, i);
        sum += apart * apart;
    }
    return sum;
}

/* As Caffe cuts it to an integer. */
static bool is_similar(const struct ls_defined_call *call, int64_t n)
{
    return trunc(number(call, 2, n)) != 0;
}

static void contrastive(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    struct ls_loss_sums sums = count_samples(call->op);
    const int64_t each = size_of(call->op->input[0]) / sums.samples;
    for (int64_t n = 0; n < sums.samples; n++) {
        const double square = distance_of(call, n, each), margin = (double)attr->margin;
        const double left = margin - (attr->legacy ? square : sqrt(square));
        if (is_similar(call, n))
            sums.sum += square;
        else if (!(left <= 0))
            sums.sum += attr->legacy ? left : left * left;
    }
    sums.sum /= 2;
    ls_loss_add(attr, call->context, &sums);
}

static void contrastive_backward(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const int64_t samples = ls_value_sample_rows(call->op->input[0]);
    const int64_t each = size_of(call->op->input[0]) / samples;
    const double factor = (double)attr->scale * ls_loss_scale(attr, call->context);
    float *dx = call->out[0];
    for (int64_t n = 0; n < samples; n++) {
        const double square = distance_of(call, n, each), distance = sqrt(square);
        const double left = (double)attr->margin - (attr->legacy ? square : distance);
        double slope = 1;
        if (!is_similar(call, n))
            slope = left <= 0 ? 0 : attr->legacy ? -1 : -left / (distance + CONTRASTIVE_GUARD);
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            dx[i] = (float)(factor * slope * (number(call, 0, i) - number(call, 1, i)));
    }
}

/* ---- Infogain -------------------------------------------------------------------------------- */

/* Positions, and where their classes are. */
struct classes {
    int64_t dim, inner, positions;
};

static struct classes classes_of(const struct ls_op *op)
{
    const struct ls_shape *shape = &op->input[0]->shape;
    const int axis = op->attr.loss.axis;
    return (struct classes){shape->dim[axis], ls_shape_count(shape, axis + 1, shape->rank),
                            ls_shape_size(shape) / shape->dim[axis]};
}

static int64_t place_of(const struct classes *classes, int64_t i, int64_t c)
{
    return (i / classes->inner * classes->dim + c) * classes->inner + i % classes->inner;
}

static const float *gains_of(const struct ls_defined_call *call, const struct classes *classes,
                             int64_t class)
{
    const float *matrix = is_there(call, 2) ? call->in[2] : call->op->attr.loss.matrix;
    return matrix + class * classes->dim;
}

/* The probabilities of position i. */
static void make_probabilities(const struct classes *classes, int64_t i, const float *x, float *p)
{
    double largest = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < classes->dim; c++)
        largest = fmax(largest, (double)x[place_of(classes, i, c)]);
    for (int64_t c = 0; c < classes->dim; c++)
        sum += Sleef_cinz_expd1_u10purec((double)x[place_of(classes, i, c)] - largest);
    for (int64_t c = 0; c < classes->dim; c++) {
        const int64_t at = place_of(classes, i, c);
        p[at] = (float)(Sleef_cinz_expd1_u10purec((double)x[at] - largest) / sum);
    }
}

static void infogain(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct classes classes = classes_of(call->op);
    const float *label = call->in[1];
    float *p = call->out[0];
    struct ls_loss_sums sums = {.positions = classes.positions,
                                .samples = classes.positions / classes.inner};
    for (int64_t i = 0; i < classes.positions; i++) {
        make_probabilities(&classes, i, call->in[0], p);
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            continue;
        const int64_t class = ls_label_class(label[i], classes.dim);
        sums.valid++;
        sums.bad_label = sums.bad_label || class < 0;
        const float *gains = gains_of(call, &classes, class < 0 ? 0 : class);
        for (int64_t c = 0; c < classes.dim; c++) {
            const float mine = p[place_of(&classes, i, c)];
            const double least =
                (double)(mine < LS_LEAST_PROBABILITY ? LS_LEAST_PROBABILITY : mine);
            sums.sum -= (double)gains[c] * Sleef_cinz_logd1_u10purec(least);
        }
    }
    ls_loss_add(attr, call->context, &sums);
}

static void infogain_backward(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct classes classes = classes_of(call->op);
    const float *label = call->in[1];
    const double factor = ls_loss_scale(attr, call->context);
    float *dx = call->out[0];
    for (int64_t i = 0; i < classes.positions; i++) {
        const int64_t class = ls_label_class(label[i], classes.dim);
        const bool counts =
            class >= 0 && !ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label);
        const float *gains = counts ? gains_of(call, &classes, class) : NULL;
        double total = 0;
        for (int64_t c = 0; counts && c < classes.dim; c++)
            total += (double)gains[c];
        for (int64_t c = 0; c < classes.dim; c++) {
            const int64_t at = place_of(&classes, i, c);
            dx[at] =
                counts ? (float)(factor * (total * number(call, 0, at) - (double)gains[c])) : 0;
        }
    }
}

/* ---- Softmax, position by position ------------------------------------------------------------
 */

/* What position i, whose true class is `class`, adds to the loss. */
static double softmax_part(const struct ls_defined_call *call, const struct classes *classes,
                           int64_t i, int64_t class)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const double spread = (double)attr->smoothing / (double)classes->dim;
    double sum = 0;
    for (int64_t c = 0; c < classes->dim; c++) {
        const double share = (c == class ? 1 - (double)attr->smoothing : 0) + spread;
        const double weight = attr->class_weight != NULL ? (double)attr->class_weight[c] : 1;
        if (share * weight == 0)
            continue;
        const double p = number(call, 0, place_of(classes, i, c));
        const double least = p < (double)FLT_MIN ? (double)FLT_MIN : p; /* a NaN stays one */
        sum -= weight * share * Sleef_cinz_logd1_u10purec(least);
    }
    return sum;
}

static void softmax_each(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const struct classes classes = classes_of(call->op);
    const float *label = call->in[1];
    float *y = call->out[0];
    for (int64_t i = 0; i < classes.positions; i++) {
        const int64_t class = ls_label_class(label[i], classes.dim);
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            y[i] = 0;
        else
            y[i] = class < 0 ? NAN : (float)softmax_part(call, &classes, i, class);
    }
}

/* ---- Smooth L1 ------------------------------------------------------------------------------- */

static double inside_of(const struct ls_defined_call *call, int64_t i)
{
    return is_there(call, 2) ? number(call, 2, i) : 1;
}

static double outside_of(const struct ls_defined_call *call, int64_t i)
{
    return is_there(call, 3) ? number(call, 3, i) : 1;
}

/* What element i adds to the loss. */
static double smooth_l1_part(const struct ls_defined_call *call, int64_t i)
{
    const double sigma2 = (double)call->op->attr.loss.sigma2;
    const double apart = inside_of(call, i) * (number(call, 0, i) - number(call, 1, i));
    const double part =
        fabs(apart) < 1 / sigma2 ? sigma2 * apart * apart / 2 : fabs(apart) - 0.5 / sigma2;
    return outside_of(call, i) * part;
}

/* Positions of a row, each with the elements along axis 1. */
static int64_t row_positions(const struct ls_shape *shape)
{
    return shape->rank > 2 ? ls_shape_count(shape, 2, shape->rank) : 1;
}

static void smooth_l1(const struct ls_defined_call *call)
{
    struct ls_loss_sums sums = count_samples(call->op);
    sums.positions *= row_positions(&call->op->input[0]->shape);
    sums.valid = sums.positions;
    for (int64_t i = 0; i < size_of(call->op->input[0]); i++)
        sums.sum += smooth_l1_part(call, i);
    ls_loss_add(&call->op->attr.loss, call->context, &sums);
}

static void smooth_l1_each(const struct ls_defined_call *call)
{
    const struct ls_shape *shape = &call->op->input[0]->shape;
    const int64_t inner = row_positions(shape), rows = shape->dim[0];
    const int64_t each = size_of(call->op->input[0]) / rows / inner;
    float *y = call->out[0];
    for (int64_t i = 0; i < rows * inner; i++) {
        const int64_t first = i / inner * each * inner + i % inner;
        double sum = 0;
        for (int64_t c = 0; c < each; c++)
            sum += smooth_l1_part(call, first + c * inner);
        y[i] = (float)sum;
    }
}

static void smooth_l1_backward(const struct ls_defined_call *call)
{
    const struct ls_loss_attr *attr = &call->op->attr.loss;
    const double sigma2 = (double)attr->sigma2;
    const double factor = (double)attr->scale * ls_loss_scale(attr, call->context);
    float *dx = call->out[0];
    for (int64_t i = 0; i < size_of(call->op->output[0]); i++) {
        const double inside = inside_of(call, i);
        const double apart = inside * (number(call, 0, i) - number(call, 1, i));
        const double slope =
            fabs(apart) < 1 / sigma2 ? sigma2 * apart : (double)((apart > 0) - (apart < 0));
        dx[i] = (float)(factor * outside_of(call, i) * inside * slope);
    }
}

const struct ls_defined ls_defined_losses[LS_OP_KINDS] = {
    [LS_OP_HINGE_LOSS] = {.run = hinge},
    [LS_OP_HINGE_LOSS_BACKWARD] = {.run = hinge_backward},
    [LS_OP_CONTRASTIVE_LOSS] = {.run = contrastive},
    [LS_OP_CONTRASTIVE_LOSS_BACKWARD] = {.run = contrastive_backward},
    [LS_OP_INFOGAIN_LOSS] = {.run = infogain},
    [LS_OP_INFOGAIN_LOSS_BACKWARD] = {.run = infogain_backward},
    [LS_OP_SOFTMAX_EACH] = {.run = softmax_each},
    [LS_OP_SMOOTH_L1_EACH] = {.run = smooth_l1_each},
    [LS_OP_SMOOTH_L1_LOSS] = {.run = smooth_l1},
    [LS_OP_SMOOTH_L1_LOSS_BACKWARD] = {.run = smooth_l1_backward},
};
