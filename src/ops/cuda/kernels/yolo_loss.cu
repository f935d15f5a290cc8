/* YOLO's losses: threads have the cells, then true boxes, a block a sample. See detection.h, and
 * device/region_loss.h and device/yolo_loss.h for what they are.
 *
 * True boxes are learned one after the other where they belong to the same cell; different cells
 * have nothing to do with each other. The slopes that are not 0 are listed in their order, and
 * their squares added one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "device/label.h"
#include "device/region_loss.h"
#include "device/yolo_loss.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/detection.h"
#include "ops/cuda/kernels/kernels.h"

/* What a sample leaves for the record. */
struct planes_tally {
    int64_t slopes, bad; /* those that are not 0; whether a true box has no class */
};

/* Scratch memory of all samples. */
struct planes_scratch {
    struct planes_tally *tally;
    int64_t *cell;  /* by true box, or by it and anchor: which it belongs to; -1: none */
    float *listed;  /* slopes that are not 0 */
    int64_t most;   /* of a sample */
    int64_t truths; /* cells of a sample */
};

/* All slopes of objects, and what true boxes learn; no more than there are. */
static int64_t most_slopes(int64_t plane, int anchors, int64_t classes, int64_t truths)
{
    const int64_t all = plane * anchors * (LS_YOLO_CLASSES + classes);
    const int64_t some = plane * anchors + truths * (LS_YOLO_CLASSES + classes);
    return some < all ? some : all;
}

size_t ls_cuda_planes_scratch(int64_t samples, int64_t plane, int anchors, int64_t classes,
                              int64_t truths)
{
    return (size_t)samples * (sizeof(struct planes_tally) + (size_t)truths * sizeof(int64_t) +
                              (size_t)most_slopes(plane, anchors, classes, truths) * sizeof(float));
}

static struct planes_scratch divide_planes(const struct ls_cuda_planes *of, int anchors,
                                           int64_t classes, int64_t truths, void *scratch)
{
    struct planes_scratch to;
    to.truths = truths;
    to.most = most_slopes(of->rows * of->columns, anchors, classes, truths);
    to.tally = (struct planes_tally *)scratch;
    to.cell = (int64_t *)(void *)(to.tally + of->samples);
    to.listed = (float *)(void *)(to.cell + of->samples * truths);
    return to;
}

/* ---- What both have -------------------------------------------------------------------------- */

/* Elements of a sample. */
LS_HOST_DEVICE int64_t planes_size(const struct ls_cuda_planes *of, int anchors, int64_t classes)
{
    return of->rows * of->columns * anchors * (LS_YOLO_CLASSES + classes);
}

__device__ static struct ls_yolo_planes planes_of(const struct ls_cuda_planes *of, int anchors,
                                                  int64_t classes, int64_t n)
{
    struct ls_yolo_planes planes;
    planes.x = of->x + n * planes_size(of, anchors, classes);
    planes.rows = of->rows;
    planes.columns = of->columns;
    planes.classes = classes;
    return planes;
}

/* Cell i of a sample, anchor by anchor. */
__device__ static struct ls_yolo_cell numbered_cell(const struct ls_yolo_planes *planes, int64_t i)
{
    const int64_t plane = planes->rows * planes->columns, at = i % plane;
    return ls_yolo_cell_at(planes, at / planes->columns, at % planes->columns, (int)(i / plane));
}

/* Ends the block of a sample: lists its slopes that are not 0. `bad`: of this thread's true boxes
 * one has no class. */
__device__ static void list_slopes(const struct planes_scratch *to, int64_t n, const float *slope,
                                   int64_t size, bool bad)
{
    float *listed = to->listed + n * to->most;
    const int64_t bads = ls_block_sum(bad);
    const int64_t slopes = ls_block_list(
        size, [=](int64_t i) { return slope[i] != 0; },
        [=](int64_t i, int64_t at) { listed[at] = slope[i]; });
    if (threadIdx.x == 0) {
        to->tally[n].slopes = slopes;
        to->tally[n].bad = bads;
    }
}

__global__ void __launch_bounds__(LS_BLOCK)
    add_squares(struct planes_scratch to, int64_t samples, double count, double *record)
{
    double sum = 0;
    bool bad = false;
    for (int64_t n = 0; n < samples; n++) {
        const float *listed = to.listed + n * to.most;
        sum = ls_block_add(to.tally[n].slopes, sum,
                           [=](int64_t i) { return (double)listed[i] * (double)listed[i]; });
        bad = bad || to.tally[n].bad > 0;
    }
    if (threadIdx.x == 0) {
        record[0] += bad ? (double)NAN : sum;
        record[1] += count;
    }
}

/* ---- YOLOv2 ---------------------------------------------------------------------------------- */

__device__ static struct ls_region_sample region_sample(const struct ls_region_attr *attr,
                                                        const struct ls_cuda_planes *of, int64_t n,
                                                        float *slope)
{
    struct ls_region_sample sample;
    sample.attr = attr;
    sample.planes = planes_of(of, attr->anchors, attr->classes, n);
    sample.truths = of->truths + n * attr->objects * LS_TRUE_BOX;
    sample.slope = slope + n * planes_size(of, attr->anchors, attr->classes);
    return sample;
}

__global__ void region_nothing(struct ls_region_attr attr, struct ls_cuda_planes of, float *slope)
{
    const int64_t cells = of.rows * of.columns * attr.anchors;
    for (LS_EACH(i, of.samples * cells)) {
        const struct ls_region_sample sample = region_sample(&attr, &of, (int64_t)i / cells, slope);
        const struct ls_yolo_cell cell = numbered_cell(&sample.planes, (int64_t)i % cells);
        ls_region_learn_nothing(&sample, &cell);
    }
}

/* The last true box of a cell has it: all that is learned there is written anew. */
__global__ void __launch_bounds__(LS_BLOCK)
    region_truths(struct ls_region_attr attr, struct ls_cuda_planes of, struct planes_scratch to,
                  float *slope)
{
    const int64_t n = blockIdx.x;
    const struct ls_region_sample sample = region_sample(&attr, &of, n, slope);
    int64_t *at = to.cell + n * to.truths;
    struct ls_yolo_box truth;
    bool bad = false;
    for (LS_EACH_OF_BLOCK(t, attr.objects))
        at[t] = ls_yolo_truth(sample.truths + t * LS_TRUE_BOX, &truth)
                    ? ls_region_find_cell(&sample, &truth).at
                    : -1;
    __syncthreads();
    for (LS_EACH_OF_BLOCK(t, attr.objects)) {
        const float *row = sample.truths + t * LS_TRUE_BOX;
        bool last = ls_yolo_truth(row, &truth);
        const int64_t kind = ls_label_class(row[1] - 1, attr.classes);
        bad = bad || (last && kind < 0);
        for (int64_t k = t + 1; last && k < attr.objects; k++)
            last = at[k] != at[t];
        if (!last)
            continue;
        const struct ls_yolo_cell cell = ls_region_find_cell(&sample, &truth);
        ls_region_learn_place(&sample, &cell, &truth);
        ls_region_learn_object(&sample, &cell, &truth, kind);
    }
    __syncthreads();
    list_slopes(&to, n, sample.slope, planes_size(&of, attr.anchors, attr.classes), bad);
}

int ls_cuda_region_loss(cudaStream_t stream, const struct ls_region_attr *attr,
                        const struct ls_cuda_planes *of, void *scratch, double count, float *slope,
                        double *record)
{
    const struct ls_region_attr by = *attr;
    const struct ls_cuda_planes planes = *of;
    const struct planes_scratch to = divide_planes(of, by.anchors, by.classes, by.objects, scratch);
    const int64_t size = of->samples * planes_size(of, by.anchors, by.classes);
    const int64_t cells = of->samples * of->rows * of->columns * by.anchors;
    int code = ls_cuda_fill_words(stream, (uint32_t *)(void *)slope, 0, (size_t)size);
    if (code == 0)
        code = LS_LAUNCH(region_nothing, ls_blocks((uint64_t)cells), LS_THREADS, stream, by, planes,
                         slope);
    if (code == 0)
        code = LS_LAUNCH(region_truths, (unsigned)of->samples, LS_BLOCK, stream, by, planes, to,
                         slope);
    if (code == 0)
        code = LS_LAUNCH(add_squares, 1u, LS_BLOCK, stream, to, planes.samples, count, record);
    return code;
}

/* ---- YOLOv3 ---------------------------------------------------------------------------------- */

__device__ static struct ls_yolo_sample yolo_sample(const struct ls_yolo_attr *attr,
                                                    const struct ls_cuda_planes *of, int64_t n,
                                                    float *slope)
{
    struct ls_yolo_sample sample;
    sample.attr = attr;
    sample.planes = planes_of(of, attr->anchors, attr->classes, n);
    sample.truths = of->truths + n * attr->objects * LS_TRUE_BOX;
    sample.slope = slope + n * planes_size(of, attr->anchors, attr->classes);
    return sample;
}

__global__ void yolo_nothing(struct ls_yolo_attr attr, struct ls_cuda_planes of, float *slope)
{
    const int64_t cells = of.rows * of.columns * attr.anchors;
    for (LS_EACH(i, of.samples * cells)) {
        const struct ls_yolo_sample sample = yolo_sample(&attr, &of, (int64_t)i / cells, slope);
        const struct ls_yolo_cell cell = numbered_cell(&sample.planes, (int64_t)i % cells);
        ls_yolo_learn_nothing(&sample, &cell);
    }
}

/* Sets the position of each true box by anchor, -1 where the anchor does not learn it. Returns
 * whether one of this thread has no class. */
__device__ static bool place_truths(const struct ls_yolo_sample *sample, int64_t *at)
{
    const struct ls_yolo_attr *attr = sample->attr;
    const struct ls_yolo_planes *planes = &sample->planes;
    bool bad = false;
    for (LS_EACH_OF_BLOCK(t, attr->objects)) {
        const float *row = sample->truths + t * LS_TRUE_BOX;
        struct ls_yolo_box truth;
        const bool there = ls_yolo_truth(row, &truth);
        const int64_t best = there ? ls_yolo_best_anchor(sample, &truth) : -1;
        bad = bad || (there && ls_label_class(row[1] - 1, attr->classes) < 0);
        for (int a = 0; a < attr->anchors; a++)
            at[t * attr->anchors + a] =
                there && ls_yolo_anchor_learns(sample, &truth, best, a)
                    ? ls_yolo_position(truth.y, planes->rows) * planes->columns +
                          ls_yolo_position(truth.x, planes->columns)
                    : -1;
    }
    return bad;
}

/* The thread of the first true box of a cell learns all that the cell has, in their order. */
__device__ static void learn_truths(const struct ls_yolo_sample *sample, const int64_t *at)
{
    const int64_t anchors = sample->attr->anchors, objects = sample->attr->objects;
    for (LS_EACH_OF_BLOCK(i, objects * anchors)) {
        const int64_t a = i % anchors;
        bool first = at[i] >= 0;
        for (int64_t k = a; first && k < i; k += anchors)
            first = at[k] != at[i];
        for (int64_t k = i; first && k < objects * anchors; k += anchors) {
            const float *row = sample->truths + k / anchors * LS_TRUE_BOX;
            struct ls_yolo_box truth;
            if (at[k] == at[i] && ls_yolo_truth(row, &truth))
                ls_yolo_learn_truth(sample, &truth, (int)a,
                                    ls_label_class(row[1] - 1, sample->attr->classes));
        }
    }
}

__global__ void __launch_bounds__(LS_BLOCK)
    yolo_truths(struct ls_yolo_attr attr, struct ls_cuda_planes of, struct planes_scratch to,
                float *slope)
{
    const int64_t n = blockIdx.x;
    const struct ls_yolo_sample sample = yolo_sample(&attr, &of, n, slope);
    int64_t *at = to.cell + n * to.truths;
    const bool bad = place_truths(&sample, at);
    __syncthreads();
    learn_truths(&sample, at);
    __syncthreads();
    list_slopes(&to, n, sample.slope, planes_size(&of, attr.anchors, attr.classes), bad);
}

__global__ void yolo_through_logistic(struct ls_yolo_attr attr, struct ls_cuda_planes of,
                                      float *slope)
{
    const int64_t size = planes_size(&of, attr.anchors, attr.classes);
    for (LS_EACH(i, of.samples * size)) {
        const struct ls_yolo_sample sample = yolo_sample(&attr, &of, (int64_t)i / size, slope);
        ls_yolo_go_through_logistic(&sample, (int64_t)i % size);
    }
}

int ls_cuda_yolo_loss(cudaStream_t stream, const struct ls_yolo_attr *attr,
                      const struct ls_cuda_planes *of, void *scratch, double count, float *slope,
                      double *record)
{
    const struct ls_yolo_attr by = *attr;
    const struct ls_cuda_planes planes = *of;
    const struct planes_scratch to =
        divide_planes(of, by.anchors, by.classes, by.objects * by.anchors, scratch);
    const int64_t size = of->samples * planes_size(of, by.anchors, by.classes);
    const int64_t cells = of->samples * of->rows * of->columns * by.anchors;
    int code = ls_cuda_fill_words(stream, (uint32_t *)(void *)slope, 0, (size_t)size);
    if (code == 0)
        code = LS_LAUNCH(yolo_nothing, ls_blocks((uint64_t)cells), LS_THREADS, stream, by, planes,
                         slope);
    if (code == 0)
        code =
            LS_LAUNCH(yolo_truths, (unsigned)of->samples, LS_BLOCK, stream, by, planes, to, slope);
    if (code == 0)
        code = LS_LAUNCH(add_squares, 1u, LS_BLOCK, stream, to, planes.samples, count, record);
    if (code == 0 && by.logistic)
        code = LS_LAUNCH(yolo_through_logistic, ls_blocks((uint64_t)size), LS_THREADS, stream, by,
                         planes, slope);
    return code;
}
