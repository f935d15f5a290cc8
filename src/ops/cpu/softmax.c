/* Softmax along an axis, and softmax with the logarithmic loss on top.
 *
 *   p = softmax(x);  loss = sum of -log max(p[label], FLT_MIN);  dx = (p - onehot(label)) * factor
 *
 * With class weights w and smoothing s, a[k] = w[k] ((1 - s) [k = label] + s / C) in each position:
 *
 *   loss = sum of -sum_k a[k] log max(p[k], FLT_MIN);  dx[k] = (p[k] sum_j a[j] - a[k]) * factor
 *
 * Clamped (Softmax and MultinomialLogisticLoss, which the graph puts together): 1e-20 in place of
 * FLT_MIN, and where p[label] is less the gradient is that of the constant 1e-20 in the logarithm's
 * derivative,
 *
 *   dx = (p - onehot(label)) * factor * p[label] / 1e-20
 *
 * Where it is not less, no quotient 1 / p is formed and multiplied by p again.
 *
 * A position whose label is ignored, or names no class, gets the gradient 0; the latter also makes
 * the loss NaN (see ops/cpu/loss.h).
 *
 * With a mask numbers are -infinity where it is 0, and their probabilities are set to 0 in the end,
 * so that all of a row may be masked.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>

#include "ops/cpu/kernels.h"
#include "device/label.h"
#include "ops/cpu/loss.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/softmax.h"

static struct ls_softmax_shape shape_of(const struct ls_value *x, int axis)
{
    return (struct ls_softmax_shape){.outer = ls_shape_count(&x->shape, 0, axis),
                                     .classes = x->shape.dim[axis],
                                     .inner = ls_shape_count(&x->shape, axis + 1, x->shape.rank)};
}

/* y = mask != 0 ? x : masked, where the mask is repeated along axes of which it has one place. y
 * may be x. */
static void apply_mask(const struct ls_shape *shape, const struct ls_shape *of_mask, const float *x,
                       const float *mask, float masked, float *y)
{
    const int last = shape->rank - 1;
    const int64_t row = shape->dim[last], step = of_mask->dim[last] > 1;
    for (int64_t r = 0; r < ls_shape_count(shape, 0, last); r++) {
        int64_t at = 0, size = of_mask->dim[last], place = r;
        for (int axis = last - 1; axis >= 0; place /= shape->dim[axis--]) {
            if (of_mask->dim[axis] > 1)
                at += place % shape->dim[axis] * size;
            size *= of_mask->dim[axis];
        }
        for (int64_t i = 0; i < row; i++)
            y[r * row + i] = mask[at + i * step] != 0 ? x[r * row + i] : masked;
    }
}

static int softmax_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_softmax_shape shape = shape_of(op->input[0], op->attr.axis);
    if (op->inputs == 1) {
        ls_vector_softmax()->forward(&shape, in[0], out[0]);
        return 0;
    }
    const struct ls_shape *x = &op->input[0]->shape, *mask = &op->input[1]->shape;
    apply_mask(x, mask, in[0], in[1], -INFINITY, out[0]);
    ls_vector_softmax()->forward(&shape, out[0], out[0]);
    apply_mask(x, mask, out[0], in[1], 0, out[0]);
    return 0;
}

static int softmax_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_softmax_shape shape = shape_of(op->input[0], op->attr.axis);
    ls_vector_softmax()->backward(&shape, in[0], in[1], out[0]);
    return 0;
}

/* ---- Loss ------------------------------------------------------------------------------------ */

enum { CHUNK = 256 };

static float least_of(const struct ls_loss_attr *attr)
{
    return attr->clamped ? LS_LEAST_PROBABILITY : FLT_MIN;
}

/* What the gradient of a position is multiplied by; a NaN is left to the gradient itself. */
static double shrink(const struct ls_loss_attr *attr, float p)
{
    return attr->clamped && p < LS_LEAST_PROBABILITY ? (double)p / (double)LS_LEAST_PROBABILITY : 1;
}

static bool is_ignored(const struct ls_loss_attr *attr, float label)
{
    return ls_label_ignored(label, attr->has_ignore, attr->ignore_label);
}

/* Collects the probabilities of the true classes of a few positions, then takes the logarithms of
 * all of them. */
static double sum_true(const struct ls_softmax_shape *shape, const struct ls_loss_attr *attr,
                       const float *p, const float *label, struct ls_loss_sums *sums)
{
    float wanted[CHUNK];
    double weight[CHUNK], sum = 0;
    int64_t count = 0, inner = shape->inner;
    for (int64_t i = 0; i < sums->positions; i++) {
        if (is_ignored(attr, label[i]))
            continue;
        sums->valid++;
        int64_t class = ls_label_class(label[i], shape->classes);
        if (class < 0) {
            sums->bad_label = true;
            continue;
        }
        weight[count] = ls_loss_weight(attr, class);
        sums->weights += weight[count];
        wanted[count++] = p[(i / inner * shape->classes + class) * inner + i % inner];
        if (count == CHUNK) {
            ls_loss_add_logs(wanted, weight, least_of(attr), count, &sum);
            count = 0;
        }
    }
    ls_loss_add_logs(wanted, weight, least_of(attr), count, &sum);
    return sum;
}

/* The sum over all classes of -weight log max(p, FLT_MIN), in one position. */
static double sum_row(const struct ls_softmax_shape *shape, const struct ls_loss_attr *attr,
                      const float *p)
{
    float logs[CHUNK];
    double sum = 0;
    for (int64_t first = 0; first < shape->classes; first += CHUNK) {
        int64_t count = shape->classes - first < CHUNK ? shape->classes - first : CHUNK;
        ls_loss_logs(p + first, FLT_MIN, count, logs);
        for (int64_t c = 0; c < count; c++)
            sum -= ls_loss_weight(attr, first + c) * (double)logs[c];
    }
    return sum;
}

/* The same in the inner positions behind one place in front of the classes. */
static double sum_columns(const struct ls_softmax_shape *shape, const struct ls_loss_attr *attr,
                          const float *p, const float *label)
{
    float logs[CHUNK];
    double sum = 0;
    for (int64_t c = 0; c < shape->classes; c++)
        for (int64_t first = 0; first < shape->inner; first += CHUNK) {
            int64_t count = shape->inner - first < CHUNK ? shape->inner - first : CHUNK;
            double part = 0;
            ls_loss_logs(p + c * shape->inner + first, FLT_MIN, count, logs);
            for (int64_t i = 0; i < count; i++)
                if (!is_ignored(attr, label[first + i]))
                    part -= (double)logs[i];
            sum += ls_loss_weight(attr, c) * part;
        }
    return sum;
}

/* Over all positions that are not ignored. */
static double sum_all(const struct ls_softmax_shape *shape, const struct ls_loss_attr *attr,
                      const float *p, const float *label)
{
    double sum = 0;
    for (int64_t o = 0; o < shape->outer; o++) {
        const float *from = p + o * shape->classes * shape->inner;
        if (shape->inner > 1)
            sum += sum_columns(shape, attr, from, label + o * shape->inner);
        else if (!is_ignored(attr, label[o]))
            sum += sum_row(shape, attr, from);
    }
    return sum;
}

static int softmax_loss_run(const struct ls_prepared *prepared, void *local, void *const *in,
                            void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const struct ls_softmax_shape shape = shape_of(op->input[0], attr->axis);
    const double smoothing = (double)attr->smoothing;
    struct ls_loss_sums sums = {.positions = shape.outer * shape.inner, .samples = shape.outer};
    ls_vector_softmax()->forward(&shape, in[0], out[0]);
    sums.sum = sum_true(&shape, attr, out[0], in[1], &sums);
    if (smoothing > 0)
        sums.sum = (1 - smoothing) * sums.sum +
                   smoothing / (double)shape.classes * sum_all(&shape, attr, out[0], in[1]);
    ls_loss_add(attr, context, &sums);
    return 0;
}

/* ---- Gradient of the loss -------------------------------------------------------------------- */

/* Without weights and smoothing. */
static void backward_plain(const struct ls_softmax_shape *shape, const struct ls_loss_attr *attr,
                           float factor, const float *p, const float *label, float *dx)
{
    int64_t positions = shape->outer * shape->inner, inner = shape->inner;
    ls_vector_elementwise()->multiply_by(p, factor, dx, (size_t)(positions * shape->classes));
    for (int64_t i = 0; i < positions; i++) {
        int64_t first = i / inner * shape->classes * inner + i % inner;
        int64_t class = ls_label_class(label[i], shape->classes);
        if (is_ignored(attr, label[i]) || class < 0) {
            for (int64_t c = 0; c < shape->classes; c++)
                dx[first + c * inner] = 0;
        } else {
            int64_t at = first + class * inner;
            dx[at] = (p[at] - 1.0F) * factor;
            float less = (float)shrink(attr, p[at]);
            for (int64_t c = 0; less < 1 && c < shape->classes; c++)
                dx[first + c * inner] *= less;
        }
    }
}

/* What the gradient is made of, with weights or smoothing. */
struct mixture {
    const struct ls_softmax_shape *shape;
    const struct ls_loss_attr *attr;
    double scale;
    double share; /* smoothing / C */
    double all;   /* the sum of the weights of all classes */
};

/* `positions` of the inner ones, at most CHUNK, from the first of which p, label and dx point. */
static void backward_columns(const struct mixture *mixture, int64_t positions,
                             const float *restrict p, const float *restrict label,
                             float *restrict dx)
{
    const struct ls_softmax_shape *shape = mixture->shape;
    int64_t class[CHUNK], inner = shape->inner;
    double total[CHUNK], own[CHUNK];
    for (int64_t i = 0; i < positions; i++) {
        bool ignored = is_ignored(mixture->attr, label[i]);
        class[i] = ignored ? -1 : ls_label_class(label[i], shape->classes);
        double weight = class[i] < 0 ? 0 : ls_loss_weight(mixture->attr, class[i]);
        own[i] = (1 - (double)mixture->attr->smoothing) * weight;
        if (class[i] >= 0)
            own[i] *= shrink(mixture->attr, p[class[i] * inner + i]);
        total[i] = own[i] + mixture->share * mixture->all;
    }
    for (int64_t c = 0; c < shape->classes; c++) {
        double part = mixture->share * ls_loss_weight(mixture->attr, c);
        for (int64_t i = 0; i < positions; i++) {
            double slope = total[i] * (double)p[c * inner + i] - part;
            dx[c * inner + i] = (float)(slope * mixture->scale);
        }
    }
    for (int64_t i = 0; i < positions; i++) {
        int64_t at = class[i] * inner + i;
        for (int64_t c = 0; class[i] < 0 && c < shape->classes; c++)
            dx[c * inner + i] = 0;
        if (class[i] < 0)
            continue;
        double part = mixture->share * ls_loss_weight(mixture->attr, class[i]) + own[i];
        dx[at] = (float)((total[i] * (double)p[at] - part) * mixture->scale);
    }
}

static void backward_mixed(const struct mixture *mixture, const float *p, const float *label,
                           float *dx)
{
    const struct ls_softmax_shape *shape = mixture->shape;
    for (int64_t o = 0; o < shape->outer; o++)
        for (int64_t i = 0; i < shape->inner; i += CHUNK) {
            int64_t first = o * shape->classes * shape->inner + i;
            int64_t positions = CHUNK < shape->inner - i ? CHUNK : shape->inner - i;
            backward_columns(mixture, positions, p + first, label + o * shape->inner + i,
                             dx + first);
        }
}

static int softmax_loss_backward_run(const struct ls_prepared *prepared, void *local,
                                     void *const *in, void *const *out, void *scratch,
                                     const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_loss_attr *attr = &op->attr.loss;
    const struct ls_softmax_shape shape = shape_of(op->input[0], attr->axis);
    if (attr->class_weight == NULL && attr->smoothing == 0) {
        backward_plain(&shape, attr, ls_loss_factor(attr, context), in[0], in[1], out[0]);
        return 0;
    }
    struct mixture mixture = {.shape = &shape,
                              .attr = attr,
                              .scale = ls_loss_scale(attr, context),
                              .share = (double)attr->smoothing / (double)shape.classes};
    for (int64_t c = 0; c < shape.classes; c++)
        mixture.all += ls_loss_weight(attr, c);
    backward_mixed(&mixture, in[0], in[1], out[0]);
    return 0;
}

const struct ls_kernel ls_kernel_softmax = {
    .kind = LS_OP_SOFTMAX,
    .bits = LS_BITS_OWN,
    .name = "softmax",
    .prepare = ls_own_prepare,
    .run = softmax_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_softmax_backward = {
    .kind = LS_OP_SOFTMAX_BACKWARD,
    .bits = LS_BITS_OWN,
    .name = "softmax backward",
    .prepare = ls_own_prepare,
    .run = softmax_backward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_softmax_loss = {
    .kind = LS_OP_SOFTMAX_LOSS,
    .bits = LS_BITS_OWN,
    .name = "softmax loss",
    .prepare = ls_own_prepare,
    .run = softmax_loss_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_softmax_loss_backward = {
    .kind = LS_OP_SOFTMAX_LOSS_BACKWARD,
    .bits = LS_BITS_OWN,
    .name = "softmax loss backward",
    .prepare = ls_own_prepare,
    .run = softmax_loss_backward_run,
    .in_place = -1,
};
