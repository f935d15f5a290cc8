/* YOLOv3's loss: as defined_regions.c, but anchors are those of several bottoms, and each class is
 * a yes or no by itself. See layers/yolov3.c, which has the formulas, and device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/defined.h"
#include "device/label.h"
#include "device/loss.h"
#include "device/yolo_boxes.h"

/* One sample: planes of predictions, what is true of it, and what is learned from that. */
struct yolo_sample {
    const struct ls_yolo_attr *attr;
    struct ls_yolo_planes planes;
    const float *truths;
    float *slope;
};

static float *yolo_slope(const struct yolo_sample *sample, const struct ls_yolo_cell *cell,
                         int64_t k)
{
    return &sample->slope[cell->at + k * cell->plane];
}

static double yolo_logistic(const struct yolo_sample *sample, const struct ls_yolo_cell *cell,
                            int64_t k)
{
    return ls_yolo_sigmoid(ls_yolo_number(&sample->planes, cell, k));
}

/* The size of an anchor of all, in sizes of the image, around the corner of it. */
static struct ls_yolo_box yolo_anchor(const struct yolo_sample *sample, int64_t anchor)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const float *size = attr->biases + 2 * anchor;
    return (struct ls_yolo_box){.w =
                                    (double)size[0] / ((double)sample->planes.columns * attr->step),
                                .h = (double)size[1] / ((double)sample->planes.rows * attr->step)};
}

/* Nothing is anywhere, but where a predicted box covers a true one well, which is not judged. */
static void yolo_learn_nothing(const struct yolo_sample *sample, const struct ls_yolo_cell *cell)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const struct ls_yolo_box anchor = yolo_anchor(sample, attr->mask[cell->anchor]);
    const struct ls_yolo_box box = ls_yolo_box_of(&sample->planes, cell, &anchor);
    double best = 0;
    for (int64_t t = 0; t < attr->objects; t++) {
        struct ls_yolo_box truth;
        if (ls_yolo_truth(sample->truths + t * LS_TRUE_BOX, &truth))
            best = fmax(best, ls_yolo_overlap(&box, &truth));
    }
    if (best <= (double)attr->threshold)
        *yolo_slope(sample, cell, LS_YOLO_OBJECT) =
            (float)yolo_logistic(sample, cell, LS_YOLO_OBJECT);
}

/* Small boxes count more than large ones. */
static void yolo_learn_place(const struct yolo_sample *sample, const struct ls_yolo_cell *cell,
                             const struct ls_yolo_box *truth)
{
    const struct ls_yolo_box anchor = yolo_anchor(sample, sample->attr->mask[cell->anchor]);
    const double weight = (double)sample->attr->place * (2 - truth->w * truth->h);
    const double centre[] = {truth->x * (double)sample->planes.columns - (double)cell->column,
                             truth->y * (double)sample->planes.rows - (double)cell->row};
    const double size[] = {Sleef_cinz_logd1_u10purec(truth->w / anchor.w),
                           Sleef_cinz_logd1_u10purec(truth->h / anchor.h)};
    for (int k = 0; k < 2; k++) {
        *yolo_slope(sample, cell, k) =
            (float)(-weight * (centre[k] - yolo_logistic(sample, cell, k)));
        *yolo_slope(sample, cell, 2 + k) =
            (float)(-weight * (size[k] - ls_yolo_number(&sample->planes, cell, 2 + k)));
    }
}

/* Something of this class is there; where something else is, too, the class joins it. */
static void yolo_learn_class(const struct yolo_sample *sample, const struct ls_yolo_cell *cell,
                             int64_t class)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const double smoothing = (double)attr->smoothing;
    const bool joins = *yolo_slope(sample, cell, LS_YOLO_CLASSES + class) != 0;
    for (int64_t c = 0; c < attr->classes; c++) {
        if (joins && c != class)
            continue;
        const double wanted = (c == class ? 1 : 0) * (1 - smoothing) + smoothing / 2;
        const double score = yolo_logistic(sample, cell, LS_YOLO_CLASSES + c);
        *yolo_slope(sample, cell, LS_YOLO_CLASSES + c) =
            (float)(-(double)attr->kind * (wanted - score));
    }
}

static void yolo_learn_truth(const struct yolo_sample *sample, const struct ls_yolo_box *truth,
                             int anchor, int64_t class)
{
    const struct ls_yolo_planes *planes = &sample->planes;
    const struct ls_yolo_cell cell =
        ls_yolo_cell_at(planes, ls_yolo_position(truth->y, planes->rows),
                        ls_yolo_position(truth->x, planes->columns), anchor);
    yolo_learn_place(sample, &cell, truth);
    *yolo_slope(sample, &cell, LS_YOLO_OBJECT) =
        (float)(-(double)sample->attr->object * (1 - yolo_logistic(sample, &cell, LS_YOLO_OBJECT)));
    if (class >= 0)
        yolo_learn_class(sample, &cell, class);
}

/* How well the size of an anchor of all fits. */
static double yolo_fit(const struct yolo_sample *sample, const struct ls_yolo_box *truth,
                       int64_t anchor)
{
    const struct ls_yolo_box size = {.w = truth->w, .h = truth->h};
    const struct ls_yolo_box like = yolo_anchor(sample, anchor);
    return ls_yolo_overlap(&like, &size);
}

/* The anchor of all that fits best, the first one of equals, learns a true box, if it is one of
 * this bottom; then those others of this bottom that fit well. */
static void yolo_learn_anchors(const struct yolo_sample *sample, const struct ls_yolo_box *truth,
                               int64_t class)
{
    const struct ls_yolo_attr *attr = sample->attr;
    int64_t best = -1;
    double most = 0;
    for (int64_t n = 0; n < attr->all; n++) {
        const double fit = yolo_fit(sample, truth, n);
        if (fit > most) {
            most = fit;
            best = n;
        }
    }
    for (int a = 0; a < attr->anchors; a++)
        if (attr->mask[a] == best)
            yolo_learn_truth(sample, truth, a, class);
    for (int a = 0; a < attr->anchors && attr->also < 1; a++)
        if (attr->mask[a] != best && yolo_fit(sample, truth, attr->mask[a]) > (double)attr->also)
            yolo_learn_truth(sample, truth, a, class);
}

/* What is learned from one sample. Returns whether all of its boxes have classes. */
static bool yolo_learn(const struct yolo_sample *sample)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const struct ls_yolo_planes *planes = &sample->planes;
    bool good = true;
    for (int a = 0; a < attr->anchors; a++)
        for (int64_t i = 0; i < planes->rows * planes->columns; i++) {
            const struct ls_yolo_cell cell =
                ls_yolo_cell_at(planes, i / planes->columns, i % planes->columns, a);
            yolo_learn_nothing(sample, &cell);
        }
    for (int64_t t = 0; t < attr->objects; t++) {
        const float *row = sample->truths + t * LS_TRUE_BOX;
        struct ls_yolo_box truth;
        if (!ls_yolo_truth(row, &truth))
            continue;
        const int64_t class = ls_label_class(row[1] - 1, attr->classes);
        good = good && class >= 0;
        yolo_learn_anchors(sample, &truth, class);
    }
    return good;
}

/* From slopes by what the logistic function gives to slopes by what it takes. */
static void yolo_go_through_logistic(const struct yolo_sample *sample)
{
    const int64_t plane = sample->planes.rows * sample->planes.columns;
    const int64_t each = LS_YOLO_CLASSES + sample->attr->classes;
    for (int64_t k = 0; k < sample->attr->anchors * each; k++) {
        if (k % each == 2 || k % each == 3)
            continue;
        for (int64_t i = k * plane; i < (k + 1) * plane; i++) {
            const double y = ls_yolo_sigmoid((double)sample->planes.x[i]);
            sample->slope[i] = (float)((double)sample->slope[i] * y * (1 - y));
        }
    }
}

static void yolo_loss(const struct ls_defined_call *call)
{
    const struct ls_yolo_attr *attr = &call->op->attr.yolo;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const int64_t size = x->dim[1] * x->dim[2] * x->dim[3];
    struct ls_loss_sums sums = {.valid = x->dim[0], .positions = x->dim[0], .samples = x->dim[0]};
    memset(call->out[0], 0, ls_value_bytes(call->op->output[0]));
    for (int64_t n = 0; n < x->dim[0]; n++) {
        const struct yolo_sample sample = {.attr = attr,
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
        if (attr->logistic)
            yolo_go_through_logistic(&sample);
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
