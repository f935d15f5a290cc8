/* What is counted, by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_COUNTS_H
#define LS_TESTS_REFERENCE_COUNTS_H

#include <stdbool.h>

/* x [outer][classes][inner], label [outer][inner] */
struct reference_classes {
    int outer, classes, inner;
    bool has_ignore;
    int ignore_label;
};

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
