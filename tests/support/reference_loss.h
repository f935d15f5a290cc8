/* Softmax, losses and accuracy in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_LOSS_H
#define LS_TESTS_REFERENCE_LOSS_H

#include <stdbool.h>

/* x [outer][classes][inner], label [outer][inner] */
struct reference_classes {
    int outer, classes, inner;
    bool has_ignore;
    int ignore_label;
    const double *class_weight; /* NULL: 1 each */
    double smoothing;
};

void reference_softmax(const struct reference_classes *shape, const double *x, double *p);
/* The gradient of sum(p * dp) by x, where p = softmax(x). */
void reference_softmax_backward(const struct reference_classes *shape, const double *p,
                                const double *dp, double *dx);
/* The sum of -log max(softmax(x)[label], FLT_MIN) over labels that are not ignored, or with weights
 * and smoothing, of the cross-entropy with their mixture; *valid counts them (may be NULL). */
double reference_softmax_loss(const struct reference_classes *shape, const double *x,
                              const double *label, int *valid);
void reference_softmax_loss_backward(const struct reference_classes *shape, const double *x,
                                     const double *label, double *dx);
/* The sum of the weights of the classes of labels that are not ignored. */
double reference_label_weights(const struct reference_classes *shape, const double *label);
/* The sum of -weight log max(p[label], 1e-20) over labels that are not ignored, and its gradient;
 * inner is 1. */
double reference_log_loss(const struct reference_classes *shape, const double *p,
                          const double *label);
void reference_log_loss_backward(const struct reference_classes *shape, const double *p,
                                 const double *label, double *dp);

/* The cross-entropy of sigmoid(x) and the targets, without the elements whose target, cut to an
 * integer, is `ignore_label`. */
double reference_sigmoid_loss(int n, const double *x, const double *target, bool has_ignore,
                              int ignore_label, int *valid);
void reference_sigmoid_loss_backward(int n, const double *x, const double *target, bool has_ignore,
                                     int ignore_label, double *dx);

/* How many of the labels are among the top_k of x. By class: class_hits and class_count
 * [classes]; confusion [label][first of the largest]. NULL where it is not wanted. */
int reference_accuracy(const struct reference_classes *shape, int top_k, const double *x,
                       const double *label, int *valid, int *class_hits, int *class_count,
                       int *confusion);

/* By class: positions of it that are taken for it, all that are taken for it, all that are of it;
 * a position is taken for the first of the largest scores. */
void reference_overlaps(const struct reference_classes *shape, const double *x, const double *label,
                        int *hits, int *taken, int *true_positions);

#endif
