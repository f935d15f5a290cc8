/* Regions that a net proposes, and those of a picture that it finds hardest. See detection.h,
 * device/proposals.h and device/hardest.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/hardest.h"
#include "device/proposals.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/detection.h"
#include "ops/cuda/kernels/kernels.h"

/* ---- Proposals ------------------------------------------------------------------------------- */

/* Scratch memory: of each sample boxes of all anchors, candidates, those that are kept. */
struct proposal_scratch {
    struct ls_proposal_box *box;
    struct ls_proposal *candidate;
    unsigned *counts;
    int32_t *kept;
    int64_t boxes; /* of a sample */
};

size_t ls_cuda_proposal_scratch(const struct ls_proposal_attr *attr, int64_t samples, int64_t plane)
{
    const size_t boxes = (size_t)(attr->ratios * attr->scales * plane);
    return (size_t)samples *
           (boxes * (sizeof(struct ls_proposal_box) + sizeof(struct ls_proposal)) +
            sizeof(unsigned) + (size_t)attr->regions * sizeof(int32_t));
}

static struct proposal_scratch divide_proposals(const struct ls_proposal_attr *attr,
                                                const struct ls_cuda_proposals *of, void *scratch)
{
    struct proposal_scratch to;
    to.boxes = attr->ratios * attr->scales * of->rows * of->columns;
    to.box = (struct ls_proposal_box *)scratch;
    to.candidate = (struct ls_proposal *)(void *)(to.box + of->samples * to.boxes);
    to.counts = (unsigned *)(void *)(to.candidate + of->samples * to.boxes);
    to.kept = (int32_t *)(void *)(to.counts + of->samples);
    return to;
}

/* Sets the boxes, and lists those that count: in any order, they are sorted afterwards. */
__global__ void make_proposals(struct ls_proposal_attr attr, struct ls_cuda_proposals of,
                               struct proposal_scratch to)
{
    const int64_t anchors = attr.ratios * attr.scales, plane = of.rows * of.columns;
    for (LS_EACH(k, of.samples * to.boxes)) {
        /* Threads that follow each other have positions that do. */
        const int64_t n = (int64_t)k / to.boxes, i = (int64_t)k % plane;
        const int64_t a = (int64_t)k / plane % anchors, at = i * anchors + a;
        const struct ls_proposal_sample sample =
            ls_proposal_sample_of(&attr, of.rows, of.columns, of.score, of.difference, of.info, n);
        if (!ls_proposal_make(&sample, i, a, &to.box[n * to.boxes + at]))
            continue;
        struct ls_proposal *candidate = to.candidate + n * to.boxes + atomicAdd(&to.counts[n], 1u);
        candidate->score = sample.score[a * plane + i];
        candidate->box = (int32_t)at;
    }
}

/* Takes `before` of what was listed of a sample, the highest score first, and writes what does not
 * overlap what it has written; then empty rows. */
__global__ void __launch_bounds__(LS_BLOCK)
    keep_proposals(struct ls_proposal_attr attr, struct ls_cuda_proposals of,
                   struct proposal_scratch to)
{
    const int64_t n = blockIdx.x, listed = to.counts[n];
    const struct ls_proposal_box *box = to.box + n * to.boxes;
    struct ls_proposal *candidate = to.candidate + n * to.boxes;
    int32_t *kept = to.kept + n * attr.regions;
    float *region = of.region + n * attr.regions * LS_PROPOSAL_ROW;
    float *score = of.region_score != NULL ? of.region_score + n * attr.regions : NULL;
    ls_block_sort(candidate, listed, [](const struct ls_proposal &a, const struct ls_proposal &b) {
        return ls_proposal_is_before(&a, &b);
    });
    const int64_t all = ls_block_suppress(
        listed < attr.before ? listed : attr.before, attr.regions,
        [&](int64_t k, int64_t i) {
            return ls_proposal_overlap(&box[kept[k]], &box[candidate[i].box]) >
                   (double)attr.overlap;
        },
        [&](int64_t i, int64_t k, bool keep) {
            if (!keep || threadIdx.x != 0)
                return;
            kept[k] = candidate[i].box;
            ls_proposal_write(&box[candidate[i].box], region + k * LS_PROPOSAL_ROW);
            if (score != NULL)
                score[k] = candidate[i].score;
        });
    for (LS_EACH_OF_BLOCK(k, attr.regions)) {
        region[k * LS_PROPOSAL_ROW] = (float)(double)n;
        for (int i = 1; i < LS_PROPOSAL_ROW && k >= all; i++)
            region[k * LS_PROPOSAL_ROW + i] = 0;
        if (score != NULL && k >= all)
            score[k] = 0;
    }
}

int ls_cuda_propose(cudaStream_t stream, const struct ls_proposal_attr *attr,
                    const struct ls_cuda_proposals *of, void *scratch)
{
    const struct ls_proposal_attr by = *attr;
    const struct ls_cuda_proposals values = *of;
    const struct proposal_scratch to = divide_proposals(attr, of, scratch);
    int code = ls_cuda_fill_words(stream, to.counts, 0, (size_t)of->samples);
    if (code == 0)
        code = LS_LAUNCH(make_proposals, ls_blocks((uint64_t)(of->samples * to.boxes)), LS_THREADS,
                         stream, by, values, to);
    if (code == 0)
        code = LS_LAUNCH(keep_proposals, (unsigned)of->samples, LS_BLOCK, stream, by, values, to);
    return code;
}

/* ---- The hardest regions --------------------------------------------------------------------- */

/* Whether fewer than `most` regions of its picture are harder than region i. */
__device__ static bool is_among_hardest(const struct ls_hardest_attr *attr,
                                        const struct ls_cuda_hardest *of, int64_t i)
{
    const struct ls_hard_region mine = ls_hard_region_of(of->rois, of->loss, of->inner, i);
    int64_t harder = 0;
    for (int64_t k = 0; mine.picture >= 0 && harder < attr->most && k < of->count; k++) {
        const struct ls_hard_region other = ls_hard_region_of(of->rois, of->loss, of->inner, k);
        harder += other.picture == mine.picture && ls_region_is_harder(&other, &mine);
    }
    return mine.picture >= 0 && harder < attr->most;
}

__global__ void choose_hardest(struct ls_hardest_attr attr, struct ls_cuda_hardest of)
{
    for (LS_EACH(k, of.count)) {
        const int64_t i = (int64_t)k;
        const bool chosen = is_among_hardest(&attr, &of, i);
        const int64_t first = i / of.inner * of.each * of.inner + i % of.inner;
        of.new_label[i] = chosen ? of.label[i] : attr.ignore_label;
        for (int64_t c = 0; c < of.each; c++) {
            const int64_t at = first + c * of.inner;
            of.new_weight[at] = chosen ? of.weight[at] : 0;
        }
    }
}

int ls_cuda_hardest_regions(cudaStream_t stream, const struct ls_hardest_attr *attr,
                            const struct ls_cuda_hardest *of)
{
    const struct ls_hardest_attr by = *attr;
    const struct ls_cuda_hardest values = *of;
    return LS_LAUNCH(choose_hardest, ls_blocks((uint64_t)of->count), LS_THREADS, stream, by,
                     values);
}
