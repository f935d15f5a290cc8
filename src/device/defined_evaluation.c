/* Which of the boxes that a net has found are right, sample by sample. What follows from it for a
 * whole test engine/rankings.c knows. See layers/detection_evaluate.c and device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/heap.h"
#include "device/boxes.h"
#include "device/defined.h"
#include "device/label.h"
#include "device/yolo_boxes.h"
#include "ir/graph.h"

enum { FOUND_ROW = 7 };

/* What was found of one sample; class -1: nothing, or what does not count. */
struct found {
    struct ls_box box;
    float score;
    int32_t class;
};

/* Scratch memory of one sample. */
struct evaluation {
    const struct ls_evaluate_attr *attr;
    struct found *found;
    int32_t *order; /* of what was found: the highest score first, of equal ones the first */
    const float *truths;
    bool *taken;           /* by row of truths */
    const int32_t *height; /* of the picture, and behind it its width; NULL: not in pixels */
    double *record, *list;
};

static size_t evaluation_scratch(const struct ls_op *op)
{
    const struct ls_evaluate_attr *attr = &op->attr.evaluate;
    return (size_t)attr->finds * (sizeof(struct found) + sizeof(int32_t)) +
           (size_t)attr->objects * sizeof(bool);
}

static struct evaluation evaluation_begin(const struct ls_defined_call *call, int64_t sample)
{
    const struct ls_evaluate_attr *attr = &call->op->attr.evaluate;
    const struct ls_picture_sizes *pictures = &attr->pictures;
    const int64_t ordinal = call->context->first_ordinal + sample;
    struct evaluation it = {.attr = attr, .found = call->scratch};
    it.order = (int32_t *)(void *)(it.found + attr->finds);
    it.taken = (bool *)(it.order + attr->finds);
    it.truths = (const float *)call->in[1] + sample * attr->objects * LS_TRUE_BOX;
    if (pictures->sizes != NULL)
        it.height = pictures->sizes + ordinal % pictures->count * 2;
    it.record = call->context->partials + attr->truths;
    it.list = call->context->lists + attr->list + sample * attr->finds * LS_FIND;
    return it;
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

static double limit(double x, double most)
{
    return fmax(fmin(x, most), 0);
}

/* Where a box of the net's input is in the picture itself, in pixels. */
static struct ls_box in_pixels(const struct evaluation *it, struct ls_box box)
{
    const struct ls_picture_sizes *pictures = &it->attr->pictures;
    if (it->height == NULL)
        return box;
    const double height = it->height[0], width = it->height[1], aspect = width / height;
    double x = 0, y = 0; /* parts of the input's sides that are padding, at either end */
    if (pictures->fit == LS_FIT_CROPPED)
        return (struct ls_box){
            limit(box.xmin * pictures->width, width), limit(box.ymin * pictures->height, height),
            limit(box.xmax * pictures->width, width), limit(box.ymax * pictures->height, height)};
    if (pictures->fit == LS_FIT_PADDED && aspect > pictures->width / pictures->height)
        y = (pictures->height - pictures->width / aspect) / 2 / pictures->height;
    else if (pictures->fit == LS_FIT_PADDED)
        x = (pictures->width - pictures->height * aspect) / 2 / pictures->width;
    return (struct ls_box){limit((box.xmin - x) / (1 - 2 * x), 1) * width,
                           limit((box.ymin - y) / (1 - 2 * y), 1) * height,
                           limit((box.xmax - x) / (1 - 2 * x), 1) * width,
                           limit((box.ymax - y) / (1 - 2 * y), 1) * height};
}

static double overlap_of(const struct evaluation *it, const struct ls_box *a,
                         const struct ls_box *b)
{
    return ls_box_overlap(a, b, it->height != NULL ? 1 : 0);
}

/* ---- The order ------------------------------------------------------------------------------- */

/* What is no number is the lowest score. */
static bool comes_before(const void *first, const void *second, const void *user)
{
    const struct found *found = user;
    const int32_t a = *(const int32_t *)first, b = *(const int32_t *)second;
    const float x = found[a].score, y = found[b].score;
    if (x > y || (isnan(y) && !isnan(x)))
        return true;
    if (y > x || (isnan(x) && !isnan(y)))
        return false;
    return a < b;
}

static void sort_found(const struct evaluation *it)
{
    const struct ls_heap heap = {it->order, sizeof *it->order, comes_before, it->found};
    for (int64_t i = 0; i < it->attr->finds; i++)
        it->order[i] = (int32_t)i;
    ls_heap_sort(&heap, it->attr->finds);
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* The class of a row of truths, or -1. The first class of regions is 1, and they have no
 * background. */
static int64_t class_of(const struct ls_evaluate_attr *attr, const float *row)
{
    const int64_t class = ls_label_class(row[1] - (attr->anchors > 0 ? 1 : 0), attr->classes);
    return class == attr->background ? -1 : class;
}

/* Counts the true boxes, by class. */
static void count_truths(const struct evaluation *it)
{
    const struct ls_evaluate_attr *attr = it->attr;
    for (int64_t g = 0; g < attr->objects; g++) {
        const float *row = it->truths + g * LS_TRUE_BOX;
        const int64_t class = class_of(attr, row);
        it->taken[g] = false;
        if (!ls_is_true_box(row))
            continue;
        if (class < 0)
            it->record[attr->classes] += 1;
        else if (attr->difficult || row[7] == 0)
            it->record[class] += 1;
    }
}

/* What the list says of a find: the true box of its class that it overlaps most, the first of
 * equals, has it, if that is enough and nothing better has had it. One that has a difficult box
 * where these do not count is neither right nor wrong. */
static double judge(const struct evaluation *it, const struct found *found)
{
    const struct ls_evaluate_attr *attr = it->attr;
    const struct ls_box box = in_pixels(it, found->box);
    double best = -1;
    int64_t chosen = -1;
    for (int64_t g = 0; g < attr->objects; g++) {
        const float *row = it->truths + g * LS_TRUE_BOX;
        if (!ls_is_true_box(row) || class_of(attr, row) != found->class)
            continue;
        const struct ls_box truth = in_pixels(it, ls_true_box(row));
        const double overlap = overlap_of(it, &box, &truth);
        if (overlap > best) {
            best = overlap;
            chosen = g;
        }
    }
    if (!(best >= (double)attr->overlap))
        return -(found->class + 1);
    if (!attr->difficult && it->truths[chosen * LS_TRUE_BOX + 7] != 0)
        return 0;
    const bool right = !it->taken[chosen];
    it->taken[chosen] = true;
    return right ? found->class + 1 : -(found->class + 1);
}

static void evaluate(const struct evaluation *it)
{
    count_truths(it);
    for (int64_t i = 0; i < it->attr->finds; i++) {
        const struct found *found = &it->found[it->order[i]];
        double *entry = it->list + (int64_t)it->order[i] * LS_FIND;
        entry[0] = found->class < 0 ? 0 : judge(it, found);
        entry[1] = (double)found->score;
    }
}

static void detection_evaluate(const struct ls_defined_call *call)
{
    const struct ls_evaluate_attr *attr = &call->op->attr.evaluate;
    const struct ls_value *rows = call->op->input[0];
    const int64_t samples = ls_value_sample_rows(rows) / rows->rows;
    for (int64_t n = 0; n < samples; n++) {
        const struct evaluation it = evaluation_begin(call, n);
        const float *row = (const float *)call->in[0] + n * attr->finds * FOUND_ROW;
        for (int64_t i = 0; i < attr->finds; i++, row += FOUND_ROW) {
            const int64_t class = row[0] < 0 ? -1 : ls_label_class(row[1], attr->classes);
            it.found[i] = (struct found){.box = ls_box_read(row + 3),
                                         .score = row[2],
                                         .class = class == attr->background ? -1 : (int32_t) class};
        }
        sort_found(&it);
        evaluate(&it);
    }
}

/* ---- YOLO's regions -------------------------------------------------------------------------- */

/* What a cell predicts. */
static struct found read_region(const struct ls_evaluate_attr *attr,
                                const struct ls_yolo_planes *planes,
                                const struct ls_yolo_cell *cell)
{
    const float *size = attr->anchor_sizes + 2 * (size_t)cell->anchor;
    const struct ls_yolo_box anchor = {.w = (double)size[0] / (double)planes->columns,
                                       .h = (double)size[1] / (double)planes->rows};
    const struct ls_yolo_box box = ls_yolo_box_of(planes, cell, &anchor);
    const float *scores = planes->x + cell->at + LS_YOLO_CLASSES * cell->plane;
    int32_t best = 0;
    double sum = 0;
    for (int32_t c = 1; c < attr->classes; c++)
        best = scores[c * cell->plane] > scores[best * cell->plane] ? c : best;
    for (int32_t c = 0; c < attr->classes; c++)
        sum += Sleef_cinz_expd1_u10purec((double)scores[c * cell->plane] -
                                         (double)scores[best * cell->plane]);
    const double object = ls_yolo_sigmoid(ls_yolo_number(planes, cell, LS_YOLO_OBJECT));
    const double score = attr->score == LS_SCORE_OBJECT  ? object
                         : attr->score == LS_SCORE_CLASS ? 1 / sum
                                                         : object / sum;
    return (struct found){
        .box = {box.x - box.w / 2, box.y - box.h / 2, box.x + box.w / 2, box.y + box.h / 2},
        .score = (float)score,
        .class = best};
}

/* Leaves out what overlaps something better, of any class, and what has hardly any score. */
static void thin_out(const struct evaluation *it)
{
    for (int64_t i = 0; i < it->attr->finds && it->attr->nms >= 0; i++) {
        struct found *found = &it->found[it->order[i]];
        for (int64_t k = 0; k < i && found->class >= 0; k++) {
            const struct found *better = &it->found[it->order[k]];
            if (better->class >= 0 &&
                ls_box_overlap(&found->box, &better->box, 0) >= (double)it->attr->nms)
                found->class = -1;
        }
    }
    for (int64_t i = 0; i < it->attr->finds; i++)
        if (it->found[i].score < 0.005F)
            it->found[i].class = -1;
}

static void region_evaluate(const struct ls_defined_call *call)
{
    const struct ls_evaluate_attr *attr = &call->op->attr.evaluate;
    const struct ls_shape *shape = &call->op->input[0]->shape;
    const int64_t each = ls_shape_size(shape) / shape->dim[0];
    for (int64_t n = 0; n < shape->dim[0]; n++) {
        const struct evaluation it = evaluation_begin(call, n);
        const struct ls_yolo_planes planes = {(const float *)call->in[0] + n * each, shape->dim[2],
                                              shape->dim[3], attr->classes};
        for (int64_t i = 0; i < attr->finds; i++) {
            const int64_t at = i / attr->anchors;
            const struct ls_yolo_cell cell = ls_yolo_cell_at(
                &planes, at / planes.columns, at % planes.columns, (int)(i % attr->anchors));
            it.found[i] = read_region(attr, &planes, &cell);
        }
        sort_found(&it);
        thin_out(&it);
        evaluate(&it);
    }
}

const struct ls_defined ls_defined_evaluation[LS_OP_KINDS] = {
    [LS_OP_DETECTION_EVALUATE] = {.run = detection_evaluate, .scratch = evaluation_scratch},
    [LS_OP_REGION_EVALUATE] = {.run = region_evaluate, .scratch = evaluation_scratch},
};
