/* Regions that a net proposes. See layers/proposal.c, which has the formulas, and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/heap.h"
#include "device/defined.h"
#include "device/proposals.h"

/* Scratch memory of one sample: boxes of all anchors, a heap of those that count, those kept. */
struct proposals {
    struct ls_proposal_box *box;
    struct ls_proposal *heap;
    int32_t *kept;
    int64_t count;
};

/* Lists the boxes of a sample that count. */
static void list_proposals(const struct ls_proposal_sample *sample, struct proposals *proposals)
{
    const struct ls_proposal_attr *attr = sample->attr;
    const int64_t anchors = attr->ratios * attr->scales, plane = sample->rows * sample->columns;
    proposals->count = 0;
    for (int64_t i = 0; i < plane; i++)
        for (int64_t a = 0; a < anchors; a++) {
            const int64_t at = i * anchors + a;
            if (ls_proposal_make(sample, i, a, &proposals->box[at]))
                proposals->heap[proposals->count++] =
                    (struct ls_proposal){sample->score[a * plane + i], (int32_t)at};
        }
}

static bool proposal_is_before(const void *first, const void *second, const void *user)
{
    (void)user;
    return ls_proposal_is_before(first, second);
}

/* Takes `before` of what was listed, the highest score first, and writes what does not overlap what
 * it has written; then empty rows. */
static void write_proposals(const struct ls_proposal_attr *attr, struct proposals *proposals,
                            double picture, float *region, float *score)
{
    const struct ls_heap heap = {proposals->heap, sizeof *proposals->heap, proposal_is_before,
                                 NULL};
    int64_t kept = 0;
    ls_heap_make(&heap, proposals->count);
    for (int64_t taken = 0; proposals->count > 0 && taken < attr->before && kept < attr->regions;
         taken++) {
        const struct ls_proposal best = proposals->heap[0];
        const struct ls_proposal_box *box = &proposals->box[best.box];
        ls_heap_drop(&heap, proposals->count--);
        bool apart = true;
        for (int64_t k = 0; apart && k < kept; k++)
            apart = !(ls_proposal_overlap(&proposals->box[proposals->kept[k]], box) >
                      (double)attr->overlap);
        if (!apart)
            continue;
        float *row = region + kept * LS_PROPOSAL_ROW;
        ls_proposal_write(box, row);
        if (score != NULL)
            score[kept] = best.score;
        proposals->kept[kept++] = best.box;
    }
    for (int64_t k = 0; k < attr->regions; k++) {
        region[k * LS_PROPOSAL_ROW] = (float)picture;
        for (int i = 1; i < LS_PROPOSAL_ROW && k >= kept; i++)
            region[k * LS_PROPOSAL_ROW + i] = 0;
        if (score != NULL && k >= kept)
            score[k] = 0;
    }
}

/* Boxes of a sample. */
static int64_t count_boxes(const struct ls_op *op)
{
    const struct ls_shape *x = &op->input[0]->shape;
    return op->attr.proposal.ratios * op->attr.proposal.scales * x->dim[2] * x->dim[3];
}

static size_t proposal_scratch(const struct ls_op *op)
{
    return (size_t)count_boxes(op) * (sizeof(struct ls_proposal_box) + sizeof(struct ls_proposal)) +
           (size_t)op->attr.proposal.regions * sizeof(int32_t);
}

static void propose(const struct ls_defined_call *call)
{
    const struct ls_proposal_attr *attr = &call->op->attr.proposal;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const int64_t boxes = count_boxes(call->op);
    struct proposals proposals = {.box = call->scratch};
    proposals.heap = (struct ls_proposal *)(void *)(proposals.box + boxes);
    proposals.kept = (int32_t *)(void *)(proposals.heap + boxes);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        const struct ls_proposal_sample sample = ls_proposal_sample_of(
            attr, x->dim[2], x->dim[3], call->in[0], call->in[1], call->in[2], n);
        float *score = call->op->outputs > 1 ? call->out[1] : NULL;
        list_proposals(&sample, &proposals);
        write_proposals(attr, &proposals, (double)n,
                        (float *)call->out[0] + n * attr->regions * LS_PROPOSAL_ROW,
                        score != NULL ? score + n * attr->regions : NULL);
    }
}

const struct ls_defined ls_defined_proposal[LS_OP_KINDS] = {
    [LS_OP_PROPOSAL] = {.run = propose, .scratch = proposal_scratch},
};
