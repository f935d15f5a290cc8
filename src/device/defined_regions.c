/* YOLO's loss of regions: every position of a plane predicts some boxes, one for each anchor,
 * whether something is in it, and what. See layers/region_loss.c, which has the formulas, and
 * device/defined.h.
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
struct region_sample {
    const struct ls_region_attr *attr;
    struct ls_yolo_planes planes;
    const float *truths;
    float *slope;
};

static float *slope_of(const struct region_sample *sample, const struct ls_yolo_cell *cell,
                       int64_t k)
{
    return &sample->slope[cell->at + k * cell->plane];
}

/* The size of an anchor, in sizes of the image. */
static struct ls_yolo_box anchor_of(const struct region_sample *sample, int anchor)
{
    const float *size = sample->attr->anchor_sizes + 2 * (size_t)anchor;
    return (struct ls_yolo_box){.w = (double)size[0] / (double)sample->planes.columns,
                                .h = (double)size[1] / (double)sample->planes.rows};
}

static struct ls_yolo_box box_of(const struct region_sample *sample,
                                 const struct ls_yolo_cell *cell)
{
    const struct ls_yolo_box anchor = anchor_of(sample, cell->anchor);
    return ls_yolo_box_of(&sample->planes, cell, &anchor);
}

static double predicted(const struct region_sample *sample, const struct ls_yolo_cell *cell,
                        int64_t k)
{
    return ls_yolo_number(&sample->planes, cell, k);
}

/* Nothing is anywhere, but where a predicted box covers a true one well, which is not judged. */
static void learn_nothing(const struct region_sample *sample, const struct ls_yolo_cell *cell)
{
    const struct ls_region_attr *attr = sample->attr;
    const struct ls_yolo_box box = box_of(sample, cell);
    const double object = ls_yolo_sigmoid(predicted(sample, cell, LS_YOLO_OBJECT));
    double best = 0;
    for (int64_t t = 0; t < attr->objects; t++) {
        struct ls_yolo_box truth;
        if (ls_yolo_truth(sample->truths + t * LS_TRUE_BOX, &truth))
            best = fmax(best, ls_yolo_overlap(&box, &truth));
    }
    if (best <= (double)attr->threshold)
        *slope_of(sample, cell, LS_YOLO_OBJECT) =
            (float)((double)attr->no_object * object * object * (1 - object));
}

/* The cell that a true box belongs to: the position of its centre, and the anchor that is most like
 * it, the first one of equals. */
static struct ls_yolo_cell find_cell(const struct region_sample *sample,
                                     const struct ls_yolo_box *truth)
{
    const int64_t column = ls_yolo_position(truth->x, sample->planes.columns);
    const int64_t row = ls_yolo_position(truth->y, sample->planes.rows);
    const struct ls_yolo_box size = {.w = truth->w, .h = truth->h};
    struct ls_yolo_cell best = ls_yolo_cell_at(&sample->planes, row, column, 0);
    double most = 0;
    for (int a = 0; a < sample->attr->anchors; a++) {
        const struct ls_yolo_cell cell = ls_yolo_cell_at(&sample->planes, row, column, a);
        struct ls_yolo_box like = box_of(sample, &cell);
        if (sample->attr->by_anchor)
            like = anchor_of(sample, a);
        like.x = like.y = 0;
        const double overlap = ls_yolo_overlap(&like, &size);
        if (overlap > most) {
            most = overlap;
            best = cell;
        }
    }
    return best;
}

/* By Intel's rule no difference counts more than 1; by Darknet's every one as it is, and small
 * boxes more than large ones where scores learn to be 1. */
static double place_slope(const struct region_sample *sample, const struct ls_yolo_box *truth,
                          double difference)
{
    const struct ls_region_attr *attr = sample->attr;
    const double weight = (double)attr->place;
    if (attr->score == LS_REGION_SCORE_FOCUSED)
        return -weight * fmin(fmax(difference, -1), 1);
    const double size = attr->score == LS_REGION_SCORE_ONE ? 2 - truth->w * truth->h : 1;
    return -weight * size * difference;
}

static void learn_place(const struct region_sample *sample, const struct ls_yolo_cell *cell,
                        const struct ls_yolo_box *truth)
{
    const struct ls_yolo_box anchor = anchor_of(sample, cell->anchor);
    const double centre[] = {truth->x * (double)sample->planes.columns - (double)cell->column,
                             truth->y * (double)sample->planes.rows - (double)cell->row};
    const double size[] = {Sleef_cinz_logd1_u10purec(truth->w / anchor.w),
                           Sleef_cinz_logd1_u10purec(truth->h / anchor.h)};
    for (int k = 0; k < 2; k++) {
        const double at = ls_yolo_sigmoid(predicted(sample, cell, k));
        *slope_of(sample, cell, k) =
            (float)(place_slope(sample, truth, centre[k] - at) * at * (1 - at));
        *slope_of(sample, cell, 2 + k) =
            (float)place_slope(sample, truth, size[k] - predicted(sample, cell, 2 + k));
    }
}

/* What the score of an object learns. */
static double object_slope(const struct region_sample *sample, const struct ls_yolo_cell *cell,
                           const struct ls_yolo_box *truth)
{
    const struct ls_region_attr *attr = sample->attr;
    const double object = ls_yolo_sigmoid(predicted(sample, cell, LS_YOLO_OBJECT));
    const double miss = 1 - object;
    if (attr->score == LS_REGION_SCORE_FOCUSED)
        return -2 * (double)attr->object * miss * miss * miss * object * miss;
    const struct ls_yolo_box box = box_of(sample, cell);
    const double wanted = attr->score == LS_REGION_SCORE_ONE ? 1 : ls_yolo_overlap(&box, truth);
    return -(double)attr->object * (wanted - object) * object * miss;
}

/* Something of this class is there. */
static void learn_object(const struct region_sample *sample, const struct ls_yolo_cell *cell,
                         const struct ls_yolo_box *truth, int64_t class)
{
    const struct ls_region_attr *attr = sample->attr;
    double largest = predicted(sample, cell, LS_YOLO_CLASSES), sum = 0;
    for (int64_t c = 1; c < attr->classes; c++)
        largest = fmax(largest, predicted(sample, cell, LS_YOLO_CLASSES + c));
    for (int64_t c = 0; c < attr->classes; c++)
        sum += Sleef_cinz_expd1_u10purec(predicted(sample, cell, LS_YOLO_CLASSES + c) - largest);
    *slope_of(sample, cell, LS_YOLO_OBJECT) = (float)object_slope(sample, cell, truth);
    for (int64_t c = 0; c < attr->classes; c++) {
        const double score = predicted(sample, cell, LS_YOLO_CLASSES + c) - largest;
        const double wanted = c == class ? 1 : 0;
        *slope_of(sample, cell, LS_YOLO_CLASSES + c) =
            (float)((double)attr->kind * (Sleef_cinz_expd1_u10purec(score) / sum - wanted));
    }
}

/* What is learned from one sample. Returns whether all of its boxes have classes. */
static bool learn_sample(const struct region_sample *sample)
{
    const struct ls_region_attr *attr = sample->attr;
    bool good = true;
    for (int a = 0; a < attr->anchors; a++)
        for (int64_t i = 0; i < sample->planes.rows * sample->planes.columns; i++) {
            const struct ls_yolo_cell cell = ls_yolo_cell_at(
                &sample->planes, i / sample->planes.columns, i % sample->planes.columns, a);
            learn_nothing(sample, &cell);
        }
    for (int64_t t = 0; t < attr->objects; t++) {
        struct ls_yolo_box truth;
        if (!ls_yolo_truth(sample->truths + t * LS_TRUE_BOX, &truth))
            continue;
        const int64_t class =
            ls_label_class(sample->truths[t * LS_TRUE_BOX + 1] - 1, attr->classes);
        const struct ls_yolo_cell cell = find_cell(sample, &truth);
        good = good && class >= 0;
        learn_place(sample, &cell, &truth);
        learn_object(sample, &cell, &truth, class);
    }
    return good;
}

static void region(const struct ls_defined_call *call)
{
    const struct ls_region_attr *attr = &call->op->attr.region;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const int64_t size = x->dim[1] * x->dim[2] * x->dim[3];
    struct ls_loss_sums sums = {.valid = x->dim[0], .positions = x->dim[0], .samples = x->dim[0]};
    memset(call->out[0], 0, ls_value_bytes(call->op->output[0]));
    for (int64_t n = 0; n < x->dim[0]; n++) {
        const struct region_sample sample = {.attr = attr,
                                             .planes = {.x = (const float *)call->in[0] + n * size,
                                                        .rows = x->dim[2],
                                                        .columns = x->dim[3],
                                                        .classes = attr->classes},
                                             .truths = (const float *)call->in[1] +
                                                       n * attr->objects * LS_TRUE_BOX,
                                             .slope = (float *)call->out[0] + n * size};
        sums.bad_label = !learn_sample(&sample) || sums.bad_label;
        for (int64_t i = 0; i < size; i++)
            sums.sum += (double)sample.slope[i] * (double)sample.slope[i];
    }
    ls_loss_add(&attr->loss, call->context, &sums);
}

static void region_backward(const struct ls_defined_call *call)
{
    const double factor = ls_loss_scale(&call->op->attr.loss, call->context);
    const float *slope = call->in[0];
    float *dx = call->out[0];
    for (int64_t i = 0; i < ls_shape_size(&call->op->output[0]->shape); i++)
        dx[i] = (float)(factor * (double)slope[i]);
}

const struct ls_defined ls_defined_regions[LS_OP_KINDS] = {
    [LS_OP_REGION_LOSS] = {.run = region},
    [LS_OP_REGION_LOSS_BACKWARD] = {.run = region_backward},
};
