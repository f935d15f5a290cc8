/* See device/counts.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/counts.h"

#include <math.h>

#include "device/label.h"

/* ---- Accuracy -------------------------------------------------------------------------------- */

/* The scores of one position: `classes` of them, `stride` apart. */
static bool is_hit(const float *score, int64_t classes, int64_t stride, int64_t class, int top_k)
{
    float wanted = score[class * stride];
    int64_t better = 0;
    for (int64_t c = 0; c < classes; c++)
        better += !(score[c * stride] < wanted);
    return better <= top_k;
}

/* The first of the largest scores. */
static int64_t predicted_class(const float *score, int64_t classes, int64_t stride)
{
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (score[c * stride] > score[best * stride])
            best = c;
    return best;
}

/* Enters a position of true class `class` into the record of the micro-batch. */
static void record_position(const struct ls_accuracy_attr *attr, double *record, const float *score,
                            int64_t stride, int64_t class)
{
    bool hit = is_hit(score, attr->classes, stride, class, attr->top_k);
    record[attr->metric_offset] += hit;
    if (attr->class_offset >= 0) {
        record[attr->class_offset + class] += hit;
        record[attr->class_offset + attr->classes + class] += 1;
    }
    if (attr->confusion_offset >= 0) {
        int64_t predicted = predicted_class(score, attr->classes, stride);
        record[attr->confusion_offset + class * attr->classes + predicted] += 1;
    }
}

void ls_count_hits(const struct ls_op *op, void *const *in, double *partials)
{
    const struct ls_accuracy_attr *attr = &op->attr.accuracy;
    const struct ls_shape *shape = &op->input[0]->shape;
    const float *x = in[0], *label = in[1];
    int64_t inner = ls_shape_count(shape, attr->axis + 1, shape->rank);
    int64_t positions = ls_shape_count(shape, 0, attr->axis) * inner;
    for (int64_t i = 0; i < positions; i++) {
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            continue;
        int64_t class = ls_label_class(label[i], attr->classes);
        partials[attr->metric_offset + 1] += 1;
        if (class < 0)
            partials[attr->metric_offset] = (double)NAN;
        else
            record_position(attr, partials, x + i / inner * attr->classes * inner + i % inner,
                            inner, class);
    }
}

/* ---- Mean intersection over union ------------------------------------------------------------ */

enum { CHUNK = 256 };

/* The class that each of `positions` is taken for, -1 for none; `inner` lies between its scores. */
static void find_classes(const float *score, int64_t classes, int64_t inner, int64_t positions,
                         int64_t *taken)
{
    float best[CHUNK];
    for (int64_t i = 0; i < positions; i++) {
        best[i] = score[i];
        taken[i] = 0;
    }
    for (int64_t c = 1; c < classes; c++)
        for (int64_t i = 0; i < positions; i++) {
            float value = score[c * inner + i];
            if (value > best[i])
                taken[i] = c;
            if (value > best[i] || isnan(value))
                best[i] = value; /* nothing is greater than a NaN */
        }
    for (int64_t i = 0; i < positions; i++)
        if (isnan(best[i]))
            taken[i] = -1;
}

static void record_positions(const struct ls_mean_iou_attr *attr, double *record,
                             const int64_t *taken, const float *label, int64_t positions)
{
    for (int64_t i = 0; i < positions; i++) {
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            continue;
        int64_t class = ls_label_class(label[i], attr->classes);
        if (class < 0) {
            record[0] = (double)NAN;
            continue;
        }
        record[2 * attr->classes + class] += 1;
        if (taken[i] >= 0)
            record[attr->classes + taken[i]] += 1;
        if (taken[i] == class)
            record[class] += 1;
    }
}

void ls_count_intersections(const struct ls_op *op, void *const *in, double *partials)
{
    const struct ls_mean_iou_attr *attr = &op->attr.mean_iou;
    const struct ls_shape *shape = &op->input[0]->shape;
    const float *x = in[0], *label = in[1];
    double *record = partials + attr->metric_offset;
    int64_t taken[CHUNK], outer = ls_shape_count(shape, 0, attr->axis);
    int64_t inner = ls_shape_count(shape, attr->axis + 1, shape->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i += CHUNK) {
            int64_t positions = inner - i < CHUNK ? inner - i : CHUNK;
            find_classes(x + o * attr->classes * inner + i, attr->classes, inner, positions, taken);
            record_positions(attr, record, taken, label + o * inner + i, positions);
        }
}
