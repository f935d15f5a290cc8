/* Accuracy: how often the true class is among the top_k scores, over all and by class, and the
 * confusion matrix.
 *
 * As in Caffe, a position is a hit if at most top_k scores (the true class's own included) are at
 * least the true class's score, so that a tie counts against it. A NaN counts as at least
 * anything: where the scores of a network are lost, it hits nothing (in Caffe, everything).
 * A label that names no class makes the accuracy NaN.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ops/cpu/kernels.h"
#include "device/label.h"

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

static int accuracy_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_accuracy_attr *attr = &op->attr.accuracy;
    const struct ls_shape *shape = &op->input[0]->shape;
    const float *x = in[0], *label = in[1];
    int64_t inner = ls_shape_count(shape, attr->axis + 1, shape->rank);
    int64_t positions = ls_shape_count(shape, 0, attr->axis) * inner;
    for (int64_t i = 0; i < positions; i++) {
        if (ls_label_ignored(label[i], attr->has_ignore, attr->ignore_label))
            continue;
        int64_t class = ls_label_class(label[i], attr->classes);
        context->partials[attr->metric_offset + 1] += 1;
        if (class < 0)
            context->partials[attr->metric_offset] = (double)NAN;
        else
            record_position(attr, context->partials,
                            x + i / inner * attr->classes * inner + i % inner, inner, class);
    }
    return 0;
}

const struct ls_kernel ls_kernel_accuracy = {
    .kind = LS_OP_ACCURACY,
    .bits = LS_BITS_EXACT,
    .name = "accuracy",
    .prepare = ls_own_prepare,
    .run = accuracy_run,
    .in_place = -1,
};
