/* Which of the boxes that a net has found are right, sample by sample. What follows from it for a
 * whole test engine/rankings.c knows. See layers/detection_evaluate.c and device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/defined.h"
#include "device/evaluation.h"
#include "ir/graph.h"

/* Scratch memory of one sample. */
struct evaluation {
    const struct ls_evaluate_attr *attr;
    struct ls_found_box *found;
    int32_t *order; /* of what was found: the highest score first, of equal ones the first */
    struct ls_judge judge;
    bool *taken; /* by row of truths */
    double *record, *list;
};

static size_t evaluation_scratch(const struct ls_op *op)
{
    const struct ls_evaluate_attr *attr = &op->attr.evaluate;
    return (size_t)attr->finds * (sizeof(struct ls_found_box) + sizeof(int32_t)) +
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
    it.judge.attr = attr;
    it.judge.truths = (const float *)call->in[1] + sample * attr->objects * LS_TRUE_BOX;
    if (pictures->sizes != NULL)
        it.judge.height = pictures->sizes + ordinal % pictures->count * 2;
    it.record = call->context->partials + attr->truths;
    it.list = call->context->lists + attr->list + sample * attr->finds * LS_FIND;
    return it;
}

/* ---- The order ------------------------------------------------------------------------------- */

static bool comes_before(const void *first, const void *second, const void *user)
{
    return ls_found_is_before(user, *(const int32_t *)first, *(const int32_t *)second);
}

static void sort_found(const struct evaluation *it)
{
    const struct ls_heap heap = {it->order, sizeof *it->order, comes_before, it->found};
    for (int64_t i = 0; i < it->attr->finds; i++)
        it->order[i] = (int32_t)i;
    ls_heap_sort(&heap, it->attr->finds);
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* Counts the true boxes, by class. */
static void count_truths(const struct evaluation *it)
{
    const struct ls_evaluate_attr *attr = it->attr;
    for (int64_t g = 0; g < attr->objects; g++) {
        const int64_t place = ls_truth_place(attr, it->judge.truths + g * LS_TRUE_BOX);
        it->taken[g] = false;
        if (place >= 0)
            it->record[place] += 1;
    }
}

/* What the list says of a find: a true box is found by the first one that has it. */
static double judge(const struct evaluation *it, const struct ls_found_box *found)
{
    const int64_t chosen = ls_judge_truth(&it->judge, found);
    if (chosen < 0)
        return -(found->kind + 1);
    if (ls_judge_skips(&it->judge, chosen))
        return 0;
    const bool right = !it->taken[chosen];
    it->taken[chosen] = true;
    return right ? found->kind + 1 : -(found->kind + 1);
}

static void evaluate(const struct evaluation *it)
{
    count_truths(it);
    for (int64_t i = 0; i < it->attr->finds; i++) {
        const struct ls_found_box *found = &it->found[it->order[i]];
        double *entry = it->list + (int64_t)it->order[i] * LS_FIND;
        entry[0] = found->kind < 0 ? 0 : judge(it, found);
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
        const float *row = (const float *)call->in[0] + n * attr->finds * LS_FOUND_ROW;
        for (int64_t i = 0; i < attr->finds; i++, row += LS_FOUND_ROW)
            it.found[i] = ls_found_read(attr, row);
        sort_found(&it);
        evaluate(&it);
    }
}

/* ---- YOLO's regions -------------------------------------------------------------------------- */

/* Leaves out what overlaps something better, of any class, and what has hardly any score. */
static void thin_out(const struct evaluation *it)
{
    for (int64_t i = 0; i < it->attr->finds && it->attr->nms >= 0; i++) {
        struct ls_found_box *found = &it->found[it->order[i]];
        for (int64_t k = 0; k < i && found->kind >= 0; k++) {
            const struct ls_found_box *better = &it->found[it->order[k]];
            if (better->kind >= 0 &&
                ls_box_overlap(&found->box, &better->box, 0) >= (double)it->attr->nms)
                found->kind = -1;
        }
    }
    for (int64_t i = 0; i < it->attr->finds; i++)
        if (ls_found_is_faint(&it->found[i]))
            it->found[i].kind = -1;
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
            it.found[i] = ls_found_region(attr, &planes, &cell);
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
