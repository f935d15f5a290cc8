/* Which of the boxes that a net has found are right: a block has a sample. See detection.h, and
 * device/evaluation.h for what is right.
 *
 * Which true box a find would have does not depend on other finds; the first of those that would
 * have it, in their order, has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/evaluation.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/detection.h"
#include "ops/cuda/kernels/kernels.h"

typedef unsigned long long counter;

/* Scratch memory: numbers of true boxes by class, then that of each sample. */
struct evaluation_scratch {
    counter *truths;
    struct ls_found_box *found;
    int32_t *order;  /* of what was found: the highest score first, of equal ones the first */
    int32_t *chosen; /* the row of the true box of a find; -1: none; first: finds that are kept */
    int32_t *first;  /* by row of truths: the place in the order of the first find that has it */
};

size_t ls_cuda_evaluation_scratch(const struct ls_evaluate_attr *attr, int64_t samples)
{
    return ((size_t)attr->classes + 1) * sizeof(counter) +
           (size_t)samples *
               ((size_t)attr->finds * (sizeof(struct ls_found_box) + 2 * sizeof(int32_t)) +
                (size_t)attr->objects * sizeof(int32_t));
}

static struct evaluation_scratch divide_evaluation(const struct ls_evaluate_attr *attr,
                                                   int64_t samples, void *scratch)
{
    struct evaluation_scratch to;
    to.truths = (counter *)scratch;
    to.found = (struct ls_found_box *)(void *)(to.truths + attr->classes + 1);
    to.order = (int32_t *)(void *)(to.found + samples * attr->finds);
    to.chosen = to.order + samples * attr->finds;
    to.first = to.chosen + samples * attr->finds;
    return to;
}

/* What a block has of them. */
__device__ static struct evaluation_scratch part_of(const struct evaluation_scratch *all,
                                                    const struct ls_evaluate_attr *attr, int64_t n)
{
    struct evaluation_scratch mine = *all;
    mine.found += n * attr->finds;
    mine.order += n * attr->finds;
    mine.chosen += n * attr->finds;
    mine.first += n * attr->objects;
    return mine;
}

/* Sets what was found of a sample, and its order. */
__device__ static void read_found(const struct ls_evaluate_attr *attr,
                                  const struct ls_cuda_planes *of, int64_t n,
                                  const struct evaluation_scratch *it)
{
    struct ls_yolo_planes planes;
    planes.x =
        of->x + n * of->rows * of->columns * attr->anchors * (LS_YOLO_CLASSES + attr->classes);
    planes.rows = of->rows;
    planes.columns = of->columns;
    planes.classes = attr->classes;
    for (LS_EACH_OF_BLOCK(i, attr->finds)) {
        it->order[i] = (int32_t)i;
        if (attr->anchors == 0) {
            it->found[i] = ls_found_read(attr, of->x + (n * attr->finds + i) * LS_FOUND_ROW);
            continue;
        }
        const int64_t at = i / attr->anchors;
        const struct ls_yolo_cell cell = ls_yolo_cell_at(
            &planes, at / planes.columns, at % planes.columns, (int)(i % attr->anchors));
        it->found[i] = ls_found_region(attr, &planes, &cell);
    }
    const struct ls_found_box *found = it->found;
    __syncthreads();
    ls_block_sort(it->order, attr->finds,
                  [=](int32_t a, int32_t b) { return ls_found_is_before(found, a, b); });
}

/* Leaves out what overlaps something better, of any class, and what has hardly any score. */
__device__ static void thin_out(const struct ls_evaluate_attr *attr,
                                const struct evaluation_scratch *it)
{
    struct ls_found_box *found = it->found;
    const int32_t *order = it->order;
    int32_t *kept = it->chosen;
    if (attr->nms >= 0)
        ls_block_suppress(
            attr->finds, attr->finds,
            [=](int64_t k, int64_t i) {
                return ls_box_overlap(&found[order[i]].box, &found[kept[k]].box, 0) >=
                       (double)attr->nms;
            },
            [=](int64_t i, int64_t k, bool keep) {
                if (threadIdx.x != 0)
                    return;
                if (keep)
                    kept[k] = order[i];
                else
                    found[order[i]].kind = -1;
            });
    for (LS_EACH_OF_BLOCK(i, attr->finds))
        if (ls_found_is_faint(&found[i]))
            found[i].kind = -1;
    __syncthreads();
}

/* Counts the true boxes of a sample, by class; none of them has been found yet. */
__device__ static void count_truths(const struct ls_judge *judge,
                                    const struct evaluation_scratch *it)
{
    for (LS_EACH_OF_BLOCK(g, judge->attr->objects)) {
        const int64_t place = ls_truth_place(judge->attr, judge->truths + g * LS_TRUE_BOX);
        it->first[g] = INT32_MAX;
        if (place >= 0)
            atomicAdd(&it->truths[place], (counter)1);
    }
    __syncthreads();
}

/* What the list says of the find in place r of the order. */
__device__ static double judge_find(const struct ls_judge *judge,
                                    const struct evaluation_scratch *it, int64_t r)
{
    const int32_t kind = it->found[it->order[r]].kind, chosen = it->chosen[r];
    if (kind < 0)
        return 0;
    if (chosen < 0)
        return -(kind + 1);
    if (ls_judge_skips(judge, chosen))
        return 0;
    return it->first[chosen] == r ? kind + 1 : -(kind + 1);
}

__global__ void __launch_bounds__(LS_BLOCK)
    evaluate_samples(struct ls_evaluate_attr attr, struct ls_cuda_planes of,
                     const struct ls_batch_numbers *numbers, struct evaluation_scratch all,
                     double *list)
{
    const int64_t n = blockIdx.x, ordinal = numbers->first_ordinal + n;
    const struct evaluation_scratch it = part_of(&all, &attr, n);
    struct ls_judge judge;
    judge.attr = &attr;
    judge.truths = of.truths + n * attr.objects * LS_TRUE_BOX;
    judge.height = attr.pictures.sizes != NULL
                       ? attr.pictures.sizes + ordinal % attr.pictures.count * 2
                       : NULL;
    read_found(&attr, &of, n, &it);
    if (attr.anchors > 0)
        thin_out(&attr, &it);
    count_truths(&judge, &it);
    for (LS_EACH_OF_BLOCK(r, attr.finds)) {
        const struct ls_found_box *found = &it.found[it.order[r]];
        const int64_t chosen = found->kind >= 0 ? ls_judge_truth(&judge, found) : -1;
        it.chosen[r] = (int32_t)chosen;
        if (chosen >= 0 && !ls_judge_skips(&judge, chosen))
            atomicMin(&it.first[chosen], (int32_t)r);
    }
    __syncthreads();
    for (LS_EACH_OF_BLOCK(r, attr.finds)) {
        double *entry = list + (n * attr.finds + it.order[r]) * 2; /* LS_FIND of ir/graph.h */
        entry[0] = judge_find(&judge, &it, r);
        entry[1] = (double)it.found[it.order[r]].score;
    }
}

__global__ void add_truths(int64_t counters, const counter *truths, double *record)
{
    for (LS_EACH(k, counters))
        record[k] += (double)truths[k];
}

int ls_cuda_evaluate(cudaStream_t stream, const struct ls_evaluate_attr *attr,
                     const struct ls_cuda_planes *of, const struct ls_batch_numbers *numbers,
                     void *scratch, double *record, double *list)
{
    const struct ls_evaluate_attr by = *attr;
    const struct ls_cuda_planes planes = *of;
    const struct evaluation_scratch to = divide_evaluation(attr, of->samples, scratch);
    const int64_t counters = by.classes + 1;
    int code = ls_cuda_fill_words(stream, (uint32_t *)(void *)to.truths, 0,
                                  (size_t)counters * sizeof(counter) / 4);
    if (code == 0)
        code = LS_LAUNCH(evaluate_samples, (unsigned)of->samples, LS_BLOCK, stream, by, planes,
                         numbers, to, list);
    if (code == 0)
        code = LS_LAUNCH(add_truths, ls_blocks((uint64_t)counters), LS_THREADS, stream, counters,
                         (const counter *)to.truths, record);
    return code;
}
