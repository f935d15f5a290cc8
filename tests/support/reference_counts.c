/* See support/reference_counts.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "support/reference_counts.h"

#include <stddef.h>

static int positions(const struct reference_classes *shape)
{
    return shape->outer * shape->inner;
}

static int place(const struct reference_classes *shape, int i, int c)
{
    return (i / shape->inner * shape->classes + c) * shape->inner + i % shape->inner;
}

static bool ignored(const struct reference_classes *shape, double label)
{
    return shape->has_ignore && (int)label == shape->ignore_label;
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
