/* YOLO's loss of regions: every position of a plane predicts some boxes, one for each anchor,
 * whether something is in it, and what. See layers/region_loss.c, which has the formulas, and
 * device/defined.h.
 *
 * True boxes are rows [item, label, instance, xmin, ymin, xmax, ymax, difficult], a fixed number of
 * rows a sample; a row whose item or label is below 0 is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>
#include <string.h>

#include "device/defined.h"
#include "device/label.h"
#include "device/loss.h"

enum { TRUE_BOX = 8, PLACE = 4 }; /* numbers of a row; of a place, behind which is the object */

struct region_box {
    double x, y, w, h; /* the centre, and the size */
};

/* One sample: planes of predictions, what is true of it, and what is learned from that. */
struct region_sample {
    const struct ls_region_attr *attr;
    int64_t rows, columns;
    const float *x, *truths;
    float *slope;
};

/* Of one anchor at one position: where the numbers of its planes are, `plane` apart. */
struct region_cell {
    int64_t at, plane, row, column;
    int anchor;
};

static struct region_cell cell_of(const struct region_sample *sample, int64_t row, int64_t column,
                                  int anchor)
{
    const int64_t plane = sample->rows * sample->columns;
    const int64_t planes = PLACE + 1 + sample->attr->classes;
    return (struct region_cell){.at = anchor * planes * plane + row * sample->columns + column,
                                .plane = plane,
                                .row = row,
                                .column = column,
                                .anchor = anchor};
}

/* Number k of a cell: x, y, width, height, object, classes. */
static double predicted(const struct region_sample *sample, const struct region_cell *cell,
                        int64_t k)
{
    return (double)sample->x[cell->at + k * cell->plane];
}

static float *slope_of(const struct region_sample *sample, const struct region_cell *cell,
                       int64_t k)
{
    return &sample->slope[cell->at + k * cell->plane];
}

static double sigmoid(double x)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

/* The size of an anchor, in sizes of the image. */
static struct region_box anchor_of(const struct region_sample *sample, int anchor)
{
    const float *size = sample->attr->anchor_sizes + 2 * (size_t)anchor;
    return (struct region_box){.w = (double)size[0] / (double)sample->columns,
                               .h = (double)size[1] / (double)sample->rows};
}

static struct region_box box_of(const struct region_sample *sample, const struct region_cell *cell)
{
    const struct region_box anchor = anchor_of(sample, cell->anchor);
    return (struct region_box){
        ((double)cell->column + sigmoid(predicted(sample, cell, 0))) / (double)sample->columns,
        ((double)cell->row + sigmoid(predicted(sample, cell, 1))) / (double)sample->rows,
        Sleef_cinz_expd1_u10purec(predicted(sample, cell, 2)) * anchor.w,
        Sleef_cinz_expd1_u10purec(predicted(sample, cell, 3)) * anchor.h};
}

/* Along one axis, how far two intervals around their centres are in both. */
static double shared_length(double a, double a_size, double b, double b_size)
{
    const double begin = fmax(a - a_size / 2, b - b_size / 2);
    return fmin(a + a_size / 2, b + b_size / 2) - begin;
}

/* Intersection over union. */
static double overlap_of(const struct region_box *a, const struct region_box *b)
{
    const double width = shared_length(a->x, a->w, b->x, b->w);
    const double height = shared_length(a->y, a->h, b->y, b->h);
    if (!(width > 0 && height > 0))
        return 0;
    return width * height / (a->w * a->h + b->w * b->h - width * height);
}

/* Box `index` of the sample; false: the row is empty, or the box is. */
static bool read_truth(const struct region_sample *sample, int64_t index, struct region_box *box)
{
    const float *row = sample->truths + index * TRUE_BOX;
    const double xmin = (double)row[3], ymin = (double)row[4];
    const double xmax = (double)row[5], ymax = (double)row[6];
    *box = (struct region_box){(xmin + xmax) / 2, (ymin + ymax) / 2, xmax - xmin, ymax - ymin};
    return row[0] >= 0 && row[1] >= 0 && box->w > 0 && box->h > 0;
}

/* Nothing is anywhere, but where a predicted box covers a true one well, which is not judged. */
static void learn_nothing(const struct region_sample *sample, const struct region_cell *cell)
{
    const struct ls_region_attr *attr = sample->attr;
    const struct region_box box = box_of(sample, cell);
    const double object = sigmoid(predicted(sample, cell, PLACE));
    double best = 0;
    for (int64_t t = 0; t < attr->objects; t++) {
        struct region_box truth;
        if (read_truth(sample, t, &truth))
            best = fmax(best, overlap_of(&box, &truth));
    }
    if (best <= (double)attr->threshold)
        *slope_of(sample, cell, PLACE) =
            (float)((double)attr->no_object * object * object * (1 - object));
}

/* The cell that a true box belongs to: the position of its centre, and the anchor that is most like
 * it, the first one of equals. */
static struct region_cell find_cell(const struct region_sample *sample,
                                    const struct region_box *truth)
{
    const double column =
        fmin(fmax(floor(truth->x * (double)sample->columns), 0), (double)(sample->columns - 1));
    const double row =
        fmin(fmax(floor(truth->y * (double)sample->rows), 0), (double)(sample->rows - 1));
    const struct region_box size = {.w = truth->w, .h = truth->h};
    struct region_cell best = cell_of(sample, (int64_t)row, (int64_t)column, 0);
    double most = 0;
    for (int a = 0; a < sample->attr->anchors; a++) {
        const struct region_cell cell = cell_of(sample, (int64_t)row, (int64_t)column, a);
        struct region_box like = box_of(sample, &cell);
        if (sample->attr->by_anchor)
            like = anchor_of(sample, a);
        like.x = like.y = 0;
        const double overlap = overlap_of(&like, &size);
        if (overlap > most) {
            most = overlap;
            best = cell;
        }
    }
    return best;
}

static double limit(double difference)
{
    return fmin(fmax(difference, -1), 1);
}

static void learn_place(const struct region_sample *sample, const struct region_cell *cell,
                        const struct region_box *truth)
{
    const struct region_box anchor = anchor_of(sample, cell->anchor);
    const double weight = (double)sample->attr->place;
    const double centre[] = {truth->x * (double)sample->columns - (double)cell->column,
                             truth->y * (double)sample->rows - (double)cell->row};
    const double size[] = {Sleef_cinz_logd1_u10purec(truth->w / anchor.w),
                           Sleef_cinz_logd1_u10purec(truth->h / anchor.h)};
    for (int k = 0; k < 2; k++) {
        const double at = sigmoid(predicted(sample, cell, k));
        *slope_of(sample, cell, k) = (float)(-weight * limit(centre[k] - at) * at * (1 - at));
        *slope_of(sample, cell, 2 + k) =
            (float)(-weight * limit(size[k] - predicted(sample, cell, 2 + k)));
    }
}

/* Something of this class is there. */
static void learn_object(const struct region_sample *sample, const struct region_cell *cell,
                         int64_t class)
{
    const struct ls_region_attr *attr = sample->attr;
    const double object = sigmoid(predicted(sample, cell, PLACE)), miss = 1 - object;
    double largest = predicted(sample, cell, PLACE + 1), sum = 0;
    for (int64_t c = 1; c < attr->classes; c++)
        largest = fmax(largest, predicted(sample, cell, PLACE + 1 + c));
    for (int64_t c = 0; c < attr->classes; c++)
        sum += Sleef_cinz_expd1_u10purec(predicted(sample, cell, PLACE + 1 + c) - largest);
    *slope_of(sample, cell, PLACE) =
        (float)(-2 * (double)attr->object * miss * miss * miss * object * miss);
    for (int64_t c = 0; c < attr->classes; c++) {
        const double score = predicted(sample, cell, PLACE + 1 + c) - largest;
        const double wanted = c == class ? 1 : 0;
        *slope_of(sample, cell, PLACE + 1 + c) =
            (float)((double)attr->kind * (Sleef_cinz_expd1_u10purec(score) / sum - wanted));
    }
}

/* What is learned from one sample. Returns whether all of its boxes have classes. */
static bool learn_sample(const struct region_sample *sample)
{
    const struct ls_region_attr *attr = sample->attr;
    bool good = true;
    for (int a = 0; a < attr->anchors; a++)
        for (int64_t i = 0; i < sample->rows * sample->columns; i++) {
            const struct region_cell cell =
                cell_of(sample, i / sample->columns, i % sample->columns, a);
            learn_nothing(sample, &cell);
        }
    for (int64_t t = 0; t < attr->objects; t++) {
        struct region_box truth;
        if (!read_truth(sample, t, &truth))
            continue;
        const int64_t class = ls_label_class(sample->truths[t * TRUE_BOX + 1] - 1, attr->classes);
        const struct region_cell cell = find_cell(sample, &truth);
        good = good && class >= 0;
        learn_place(sample, &cell, &truth);
        learn_object(sample, &cell, class);
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
                                             .rows = x->dim[2],
                                             .columns = x->dim[3],
                                             .x = (const float *)call->in[0] + n * size,
                                             .truths = (const float *)call->in[1] +
                                                       n * attr->objects * TRUE_BOX,
                                             .slope = (float *)call->out[0] + n * size};
        sums.bad_label = !learn_sample(&sample) || sums.bad_label;
        for (int64_t i = 0; i < size; i++)
            sums.sum += (double)sample.slope[i] * (double)sample.slope[i];
    }
    ls_loss_add(&attr->loss, call->context, &sums);
}

static void region_backward(const struct ls_defined_call *call)
{
    const double factor = ls_loss_scale(&call->op->attr.region.loss, call->context);
    const float *slope = call->in[0];
    float *dx = call->out[0];
    for (int64_t i = 0; i < ls_shape_size(&call->op->output[0]->shape); i++)
        dx[i] = (float)(factor * (double)slope[i]);
}

const struct ls_defined ls_defined_regions[LS_OP_KINDS] = {
    [LS_OP_REGION_LOSS] = {.run = region},
    [LS_OP_REGION_LOSS_BACKWARD] = {.run = region_backward},
};
