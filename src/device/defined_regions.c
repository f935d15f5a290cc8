/* YOLO's loss of regions: every position of a plane predicts some boxes, one for each anchor,
 * whether something is in it, and what. See layers/region_loss.c, which has the formulas, and
 * device/defined.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "device/defined.h"
#include "device/label.h"
#include "device/loss.h"
#include "device/region_loss.h"

/* What is learned from one sample. Returns whether all of its boxes have classes. */
static bool learn_sample(const struct ls_region_sample *sample)
{
    const struct ls_region_attr *attr = sample->attr;
    bool good = true;
    for (int a = 0; a < attr->anchors; a++)
        for (int64_t i = 0; i < sample->planes.rows * sample->planes.columns; i++) {
            const struct ls_yolo_cell cell = ls_yolo_cell_at(
                &sample->planes, i / sample->planes.columns, i % sample->planes.columns, a);
            ls_region_learn_nothing(sample, &cell);
        }
    for (int64_t t = 0; t < attr->objects; t++) {
        struct ls_yolo_box truth;
        if (!ls_yolo_truth(sample->truths + t * LS_TRUE_BOX, &truth))
            continue;
        const int64_t class =
            ls_label_class(sample->truths[t * LS_TRUE_BOX + 1] - 1, attr->classes);
        const struct ls_yolo_cell cell = ls_region_find_cell(sample, &truth);
        good = good && class >= 0;
        ls_region_learn_place(sample, &cell, &truth);
        ls_region_learn_object(sample, &cell, &truth, class);
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
        const struct ls_region_sample sample = {
            .attr = attr,
            .planes = {.x = (const float *)call->in[0] + n * size,
                       .rows = x->dim[2],
                       .columns = x->dim[3],
                       .classes = attr->classes},
            .truths = (const float *)call->in[1] + n * attr->objects * LS_TRUE_BOX,
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
