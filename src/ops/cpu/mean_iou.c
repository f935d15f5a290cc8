/* Mean intersection over union: for each class, how many positions are of it and taken for it (the
 * intersection), how many are taken for it, and how many are of it. Whole numbers in doubles, so
 * that they add up exactly over any test set; what is divided is divided at the end.
 *
 * A position is taken for the class with the highest score, the first of several. Where a score is
 * NaN it is taken for none, as the scores of a network that is lost are no hits in
 * ops/cpu/accuracy. A label that names no class makes the figure NaN.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ops/cpu/kernels.h"
#include "device/label.h"

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

static int mean_iou_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_mean_iou_attr *attr = &op->attr.mean_iou;
    const struct ls_shape *shape = &op->input[0]->shape;
    const float *x = in[0], *label = in[1];
    double *record = context->partials + attr->metric_offset;
    int64_t taken[CHUNK], outer = ls_shape_count(shape, 0, attr->axis);
    int64_t inner = ls_shape_count(shape, attr->axis + 1, shape->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i += CHUNK) {
            int64_t positions = inner - i < CHUNK ? inner - i : CHUNK;
            find_classes(x + o * attr->classes * inner + i, attr->classes, inner, positions, taken);
            record_positions(attr, record, taken, label + o * inner + i, positions);
        }
    return 0;
}

const struct ls_kernel ls_kernel_mean_iou = {
    .kind = LS_OP_MEAN_IOU,
    .bits = LS_BITS_EXACT,
    .name = "mean intersection over union",
    .prepare = ls_own_prepare,
    .run = mean_iou_run,
    .in_place = -1,
};
