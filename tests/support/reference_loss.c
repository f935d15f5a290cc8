/* Softmax, losses and accuracy in double precision by plain loops.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_loss.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Where class c of position i (counted over outer and inner) is. */
static int place(const struct reference_classes *shape, int i, int c)
{
    return (i / shape->inner * shape->classes + c) * shape->inner + i % shape->inner;
}

static int positions(const struct reference_classes *shape)
{
    return shape->outer * shape->inner;
}

static bool ignored(const struct reference_classes *shape, double label)
{
    return shape->has_ignore && (int)label == shape->ignore_label;
}

void reference_softmax(const struct reference_classes *shape, const double *x, double *p)
{
    for (int i = 0; i < positions(shape); i++) {
        double largest = -HUGE_VAL, sum = 0;
        for (int c = 0; c < shape->classes; c++)
            largest = fmax(largest, x[place(shape, i, c)]);
        for (int c = 0; c < shape->classes; c++)
            sum += exp(x[place(shape, i, c)] - largest);
        for (int c = 0; c < shape->classes; c++)
            p[place(shape, i, c)] = exp(x[place(shape, i, c)] - largest) / sum;
    }
}

void reference_softmax_backward(const struct reference_classes *shape, const double *p,
                                const double *dp, double *dx)
{
    for (int i = 0; i < positions(shape); i++)
        for (int c = 0; c < shape->classes; c++) {
            double sum = 0;
            for (int d = 0; d < shape->classes; d++)
                sum += dp[place(shape, i, d)] * p[place(shape, i, d)] *
                       ((c == d) - p[place(shape, i, c)]);
            dx[place(shape, i, c)] = sum;
        }
}

static double *softmax_of(const struct reference_classes *shape, const double *x)
{
    double *p = malloc((size_t)(positions(shape) * shape->classes + 1) * sizeof *p);
    if (p == NULL)
        abort();
    reference_softmax(shape, x, p);
    return p;
}

static double weight_of(const struct reference_classes *shape, int class)
{
    return shape->class_weight != NULL ? shape->class_weight[class] : 1;
}

/* What -log p of class c counts in a position of class `label`. */
static double share_of(const struct reference_classes *shape, int c, int label)
{
    double share = (c == label) * (1 - shape->smoothing) + shape->smoothing / shape->classes;
    return weight_of(shape, c) * share;
}

double reference_label_weights(const struct reference_classes *shape, const double *label)
{
    double sum = 0;
    for (int i = 0; i < positions(shape); i++)
        sum += ignored(shape, label[i]) ? 0 : weight_of(shape, (int)label[i]);
    return sum;
}

double reference_softmax_loss(const struct reference_classes *shape, const double *x,
                              const double *label, int *valid)
{
    double *p = softmax_of(shape, x), sum = 0;
    int counted = 0;
    for (int i = 0; i < positions(shape); i++) {
        if (ignored(shape, label[i]))
            continue;
        for (int c = 0; c < shape->classes; c++) {
            double share = share_of(shape, c, (int)label[i]);
            if (share != 0)
                sum -= share * log(fmax(p[place(shape, i, c)], (double)FLT_MIN));
        }
        counted++;
    }
    if (valid != NULL)
        *valid = counted;
    free(p);
    return sum;
}

void reference_softmax_loss_backward(const struct reference_classes *shape, const double *x,
                                     const double *label, double *dx)
{
    double *p = softmax_of(shape, x);
    for (int i = 0; i < positions(shape); i++)
        for (int c = 0; c < shape->classes; c++) {
            int at = place(shape, i, c);
            double all = 0;
            for (int d = 0; d < shape->classes; d++)
                all += share_of(shape, d, (int)label[i]);
            dx[at] = ignored(shape, label[i]) ? 0 : all * p[at] - share_of(shape, c, (int)label[i]);
        }
    free(p);
}

double reference_log_loss(const struct reference_classes *shape, const double *p,
                          const double *label)
{
    double sum = 0;
    for (int i = 0; i < positions(shape); i++)
        if (!ignored(shape, label[i]))
            sum -= weight_of(shape, (int)label[i]) *
                   log(fmax(p[place(shape, i, (int)label[i])], 1e-20));
    return sum;
}

void reference_log_loss_backward(const struct reference_classes *shape, const double *p,
                                 const double *label, double *dp)
{
    for (int i = 0; i < positions(shape); i++)
        for (int c = 0; c < shape->classes; c++) {
            int at = place(shape, i, c);
            bool counts = c == (int)label[i] && !ignored(shape, label[i]);
            dp[at] = counts ? -weight_of(shape, c) / fmax(p[at], 1e-20) : 0;
        }
}

double reference_sigmoid_loss(int n, const double *x, const double *target, bool has_ignore,
                              int ignore_label, int *valid)
{
    double sum = 0;
    int counted = 0;
    for (int i = 0; i < n; i++) {
        if (has_ignore && (int)target[i] == ignore_label)
            continue;
        /* -t log s - (1 - t) log(1 - s) with log s = -log(1 + exp(-x)) */
        sum += target[i] * log1p(exp(-x[i])) + (1 - target[i]) * log1p(exp(x[i]));
        counted++;
    }
    if (valid != NULL)
        *valid = counted;
    return sum;
}

void reference_sigmoid_loss_backward(int n, const double *x, const double *target, bool has_ignore,
                                     int ignore_label, double *dx)
{
    for (int i = 0; i < n; i++) {
        bool counts = !has_ignore || (int)target[i] != ignore_label;
        dx[i] = counts ? 1 / (1 + exp(-x[i])) - target[i] : 0;
    }
}

int reference_accuracy(const struct reference_classes *shape, int top_k, const double *x,
                       const double *label, int *valid, int *class_hits, int *class_count,
                       int *confusion)
{
    int hits = 0;
    *valid = 0;
    for (int i = 0; i < positions(shape); i++) {
        int wanted = (int)label[i], better = 0, first = 0;
        if (ignored(shape, label[i]))
            continue;
        for (int c = 0; c < shape->classes; c++)
            better += x[place(shape, i, c)] >= x[place(shape, i, wanted)];
        for (int c = 1; c < shape->classes; c++)
            first = x[place(shape, i, c)] > x[place(shape, i, first)] ? c : first;
        hits += better <= top_k;
        (*valid)++;
        if (class_hits != NULL) {
            class_hits[wanted] += better <= top_k;
            class_count[wanted]++;
        }
        if (confusion != NULL)
            confusion[wanted * shape->classes + first]++;
    }
    return hits;
}

void reference_overlaps(const struct reference_classes *shape, const double *x, const double *label,
                        int *hits, int *taken, int *true_positions)
{
    for (int c = 0; c < shape->classes; c++)
        hits[c] = taken[c] = true_positions[c] = 0;
    for (int i = 0; i < positions(shape); i++) {
        int first = 0;
        if (ignored(shape, label[i]))
            continue;
        for (int c = 1; c < shape->classes; c++)
            first = x[place(shape, i, c)] > x[place(shape, i, first)] ? c : first;
        taken[first]++;
        true_positions[(int)label[i]]++;
        hits[first] += first == (int)label[i];
    }
}
