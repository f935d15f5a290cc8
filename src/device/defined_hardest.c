/* The regions of each picture that a net finds hardest (layers/box_annotator_ohem.c); see
 * device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/heap.h"
#include "device/defined.h"

enum { REGION = 5 };

struct hard_region {
    int32_t picture; /* -1: no picture has such a number */
    int32_t at;      /* among the positions of all rows */
    float loss;
};

/* Whether `a` comes before `b`: picture by picture, the largest loss first, a NaN before all
 * numbers, and of equal losses the first position. A total order, so that one result is right. */
static bool is_harder(const void *first, const void *second, const void *user)
{
    const struct hard_region *a = first, *b = second;
    (void)user;
    if (a->picture != b->picture)
        return a->picture < b->picture;
    if (isnan(a->loss) != isnan(b->loss))
        return isnan(a->loss);
    if (a->loss > b->loss || a->loss < b->loss)
        return a->loss > b->loss;
    return a->at < b->at;
}

/* The number of a picture, with what is behind the point cut off. */
static int32_t picture_of(float number)
{
    return number > -1 && number < 2147483648.0F ? (int32_t)number : -1;
}

static int64_t count_positions(const struct ls_op *op)
{
    return ls_shape_size(&op->input[0]->shape) / REGION;
}

static size_t hardest_scratch(const struct ls_op *op)
{
    return (size_t)count_positions(op) * sizeof(struct hard_region);
}

static void choose_hardest(const struct ls_defined_call *call)
{
    const struct ls_hardest_attr *attr = &call->op->attr.hardest;
    const int64_t count = count_positions(call->op), rows = call->op->input[0]->shape.dim[0];
    const int64_t inner = count / rows;
    const int64_t weights = ls_shape_size(&call->op->input[3]->shape), each = weights / count;
    const float *rois = call->in[0], *loss = call->in[1], *label = call->in[2];
    const float *weight = call->in[3];
    float *new_label = call->out[0], *new_weight = call->out[1];
    struct hard_region *regions = call->scratch;
    for (int64_t i = 0; i < count; i++) {
        const float picture = rois[i / inner * REGION * inner + i % inner];
        regions[i] = (struct hard_region){picture_of(picture), (int32_t)i, loss[i]};
        new_label[i] = attr->ignore_label;
    }
    for (int64_t i = 0; i < weights; i++)
        new_weight[i] = 0;
    ls_heap_sort(&(struct ls_heap){regions, sizeof *regions, is_harder, NULL}, count);
    int64_t chosen = 0; /* of the picture */
    for (int64_t k = 0; k < count; k++) {
        chosen = k > 0 && regions[k].picture == regions[k - 1].picture ? chosen : 0;
        if (regions[k].picture < 0 || chosen++ >= attr->most)
            continue;
        const int64_t at = regions[k].at, first = at / inner * each * inner + at % inner;
        new_label[at] = label[at];
        for (int64_t c = 0; c < each; c++)
            new_weight[first + c * inner] = weight[first + c * inner];
    }
}

const struct ls_defined ls_defined_hardest[LS_OP_KINDS] = {
    [LS_OP_HARDEST_REGIONS] = {.run = choose_hardest, .scratch = hardest_scratch, .moves = true},
};
