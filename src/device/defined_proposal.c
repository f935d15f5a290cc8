/* Regions that a net proposes. See layers/proposal.c, which has the formulas, and device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sleef.h>

#include "base/heap.h"
#include "device/defined.h"

enum { CORNERS = 4, REGION = 5 };

struct proposal_box {
    double left, top, right, bottom; /* pixels, both edges belong to it */
};

struct proposal {
    float score;
    int32_t box; /* row by row of positions, anchor by anchor */
};

/* Scratch memory of one sample: boxes of all anchors, a heap of those that count, those kept. */
struct proposals {
    struct proposal_box *box;
    struct proposal *heap;
    int32_t *kept;
    int64_t count;
};

/* What one sample has: scores and differences are planes. */
struct proposal_sample {
    const struct ls_proposal_attr *attr;
    int64_t rows, columns;
    const float *score, *difference;
    double height, width;             /* of the picture */
    double least_height, least_width; /* of a box */
};

static double proposal_length(double first, double last)
{
    return last - first + 1;
}

static double proposal_area(const struct proposal_box *box)
{
    return proposal_length(box->left, box->right) * proposal_length(box->top, box->bottom);
}

/* Intersection over union. */
static double proposal_overlap(const struct proposal_box *a, const struct proposal_box *b)
{
    const double width = proposal_length(fmax(a->left, b->left), fmin(a->right, b->right));
    const double height = proposal_length(fmax(a->top, b->top), fmin(a->bottom, b->bottom));
    if (!(width > 0 && height > 0))
        return 0;
    return width * height / (proposal_area(a) + proposal_area(b) - width * height);
}

/* The anchor at the first position: ratio by ratio, scale by scale. */
static struct proposal_box proposal_anchor(const struct ls_proposal_attr *attr, int64_t anchor)
{
    const double ratio = (double)attr->ratio[anchor / attr->scales];
    const double scale = (double)attr->scale[anchor % attr->scales];
    const double base = attr->base, centre = (base - 1) / 2;
    const double width = round(sqrt(base * base / ratio)), height = round(width * ratio);
    const double half_width = (width * scale - 1) / 2, half_height = (height * scale - 1) / 2;
    return (struct proposal_box){centre - half_width, centre - half_height, centre + half_width,
                                 centre + half_height};
}

static double limit_to(double number, double extent)
{
    return fmax(fmin(number, extent - 1), 0);
}

/* Moves an anchor by four predicted numbers, `plane` apart, and cuts it to the picture. Returns
 * whether it is large enough. */
static bool move_anchor(const struct proposal_sample *sample, const float *numbers, int64_t plane,
                        struct proposal_box *box)
{
    const double width = proposal_length(box->left, box->right);
    const double height = proposal_length(box->top, box->bottom);
    const double x = (double)numbers[0] * width + (box->left + width / 2);
    const double y = (double)numbers[plane] * height + (box->top + height / 2);
    const double half_width = Sleef_cinz_expd1_u10purec((double)numbers[2 * plane]) * width / 2;
    const double half_height = Sleef_cinz_expd1_u10purec((double)numbers[3 * plane]) * height / 2;
    box->left = limit_to(x - half_width, sample->width);
    box->top = limit_to(y - half_height, sample->height);
    box->right = limit_to(x + half_width, sample->width);
    box->bottom = limit_to(y + half_height, sample->height);
    return proposal_length(box->left, box->right) >= sample->least_width &&
           proposal_length(box->top, box->bottom) >= sample->least_height;
}

/* Lists the boxes of a sample that count. */
static void list_proposals(const struct proposal_sample *sample, struct proposals *proposals)
{
    const struct ls_proposal_attr *attr = sample->attr;
    const int64_t anchors = attr->ratios * attr->scales, plane = sample->rows * sample->columns;
    proposals->count = 0;
    for (int64_t i = 0; i < plane; i++)
        for (int64_t a = 0; a < anchors; a++) {
            struct proposal_box box = proposal_anchor(attr, a);
            const double x = (double)(i % sample->columns) * attr->stride;
            const double y = (double)(i / sample->columns) * attr->stride;
            const float score = sample->score[a * plane + i];
            const int64_t at = i * anchors + a;
            box = (struct proposal_box){box.left + x, box.top + y, box.right + x, box.bottom + y};
            const bool large =
                move_anchor(sample, sample->difference + a * CORNERS * plane + i, plane, &box);
            proposals->box[at] = box;
            if (large && score == score)
                proposals->heap[proposals->count++] = (struct proposal){score, (int32_t)at};
        }
}

/* The higher score first; of equal ones that of the first position, then of the first anchor. */
static bool proposal_is_before(const void *first, const void *second, const void *user)
{
    const struct proposal *a = first, *b = second;
    (void)user;
    return a->score != b->score ? a->score > b->score : a->box < b->box;
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
        const struct proposal best = proposals->heap[0];
        const struct proposal_box *box = &proposals->box[best.box];
        ls_heap_drop(&heap, proposals->count--);
        bool apart = true;
        for (int64_t k = 0; apart && k < kept; k++)
            apart = !(proposal_overlap(&proposals->box[proposals->kept[k]], box) >
                      (double)attr->overlap);
        if (!apart)
            continue;
        float *row = region + kept * REGION;
        row[1] = (float)box->left;
        row[2] = (float)box->top;
        row[3] = (float)box->right;
        row[4] = (float)box->bottom;
        if (score != NULL)
            score[kept] = best.score;
        proposals->kept[kept++] = best.box;
    }
    for (int64_t k = 0; k < attr->regions; k++) {
        region[k * REGION] = (float)picture;
        for (int i = 1; i < REGION && k >= kept; i++)
            region[k * REGION + i] = 0;
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
    return (size_t)count_boxes(op) * (sizeof(struct proposal_box) + sizeof(struct proposal)) +
           (size_t)op->attr.proposal.regions * sizeof(int32_t);
}

static void propose(const struct ls_defined_call *call)
{
    const struct ls_proposal_attr *attr = &call->op->attr.proposal;
    const struct ls_shape *x = &call->op->input[0]->shape;
    const int64_t boxes = count_boxes(call->op);
    struct proposals proposals = {.box = call->scratch};
    proposals.heap = (struct proposal *)(void *)(proposals.box + boxes);
    proposals.kept = (int32_t *)(void *)(proposals.heap + boxes);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        const float *info = (const float *)call->in[2] + n * attr->info;
        const double down = (double)info[2], across = (double)info[attr->info > 3 ? 3 : 2];
        const struct proposal_sample sample = {
            .attr = attr,
            .rows = x->dim[2],
            .columns = x->dim[3],
            .score = (const float *)call->in[0] + (2 * n + 1) * boxes,
            .difference = (const float *)call->in[1] + n * CORNERS * boxes,
            .height = (double)info[0],
            .width = (double)info[1],
            .least_height = (double)attr->least * down,
            .least_width = (double)attr->least * across};
        float *score = call->op->outputs > 1 ? call->out[1] : NULL;
        list_proposals(&sample, &proposals);
        write_proposals(attr, &proposals, (double)n,
                        (float *)call->out[0] + n * attr->regions * REGION,
                        score != NULL ? score + n * attr->regions : NULL);
    }
}

const struct ls_defined ls_defined_proposal[LS_OP_KINDS] = {
    [LS_OP_PROPOSAL] = {.run = propose, .scratch = proposal_scratch},
};
