/* YOLOv3's loss: as defined_regions.c, but anchors are those of several bottoms, and each class is
 * a yes or no by itself. See layers/yolov3.c, which has the formulas, and device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "device/defined.h"
#include "device/label.h"
#include "device/loss.h"
#include "device/yolo_loss.h"

/* What is learned from one sample. Returns whether all of its boxes have classes. */
static bool yolo_learn(const struct ls_yolo_sample *sample)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const struct ls_yolo_planes *planes = &sample->planes;
    bool good = true;
    for (int a = 0; a < attr->anchors; a++)
        for (int64_t i = 0; i < planes->rows * planes->columns; i++) {
            const struct ls_yolo_cell cell =
                ls_yolo_cell_at(planes, i / planes->columns, i % planes->columns, a);
            ls_yolo_learn_nothing(sample, &cell);
        }
    for (int64_t t = 0; t < attr->objects; t++) {
        const float *row = sample->truths + t * LS_TRUE_BOX;
        struct ls_yolo_box truth;
        if (!ls_yolo_truth(row, &truth))
            continue;
        const int64_t class = ls_label_class(row[1] - 1, attr->classes);
        good = good && class >= 0;
        const int64_t best = ls_yolo_best_anchor(sample, &truth);
        for (int a = 0; a < attr->anchors; a++)
            if (ls_yolo_anchor_learns(sample, &truth, best, a))
                ls_yolo_learn_truth(sample, &truth, a, class);
    }
    return good;
}

static void yolo_loss(const struct ls_defined_call *call)
{
    const struct ls_yolo_attr *attr = &call->op->attr.yolo;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const int64_t size = x->dim[1] * x->dim[2] * x->dim[3];
    struct ls_loss_sums sums = {.valid = x->dim[0], .positions = x->dim[0], .samples = x->dim[0]};
    memset(call->out[0], 0, ls_value_bytes(call->op->output[0]));
    for (int64_t n = 0; n < x->dim[0]; n++) {
        const struct ls_yolo_sample sample = {.attr = attr,
                                              .planes = {.x = (const float *)call->in[0] + n * size,
                                                         .rows = x->dim[2],
                                                         .columns = x->dim[3],
                                                         .classes = attr->classes},
                                              .truths = (const float *)call->in[1] +
                                                        n * attr->objects * LS_TRUE_BOX,
                                              .slope = (float *)call->out[0] + n * size};
        sums.bad_label = !yolo_learn(&sample) || sums.bad_label;
        for (int64_t i = 0; i < size; i++)
            sums.sum += (double)sample.slope[i] * (double)sample.slope[i];
        for (int64_t i = 0; attr->logistic && i < size; i++)
            ls_yolo_go_through_logistic(&sample, i);
    }
    ls_loss_add(&attr->loss, call->context, &sums);
}

static void yolo_loss_backward(const struct ls_defined_call *call)
{
    const double factor = ls_loss_scale(&call->op->attr.loss, call->context);
    const float *slope = call->in[0];
    float *dx = call->out[0];
    for (int64_t i = 0; i < ls_shape_size(&call->op->output[0]->shape); i++)
        dx[i] = (float)(factor * (double)slope[i]);
}

const struct ls_defined ls_defined_yolo[LS_OP_KINDS] = {
    [LS_OP_YOLO_LOSS] = {.run = yolo_loss},
    [LS_OP_YOLO_LOSS_BACKWARD] = {.run = yolo_loss_backward},
};
