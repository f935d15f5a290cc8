/* The regions of each picture that a net finds hardest (layers/box_annotator_ohem.c); see
 * device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/defined.h"
#include "device/hardest.h"

static bool is_harder(const void *first, const void *second, const void *user)
{
    (void)user;
    return ls_region_is_harder(first, second);
}

static int64_t count_positions(const struct ls_op *op)
{
    return ls_shape_size(&op->input[0]->shape) / LS_HARD_REGION;
}

static size_t hardest_scratch(const struct ls_op *op)
{
    return (size_t)count_positions(op) * sizeof(struct ls_hard_region);
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
    struct ls_hard_region *regions = call->scratch;
    for (int64_t i = 0; i < count; i++) {
        regions[i] = ls_hard_region_of(rois, loss, inner, i);
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
