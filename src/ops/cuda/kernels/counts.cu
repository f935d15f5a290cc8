/* Figures that are counts. See losses.h, and device/counts.h for what they are. Threads count in
 * integers; what they found is added to the record at the end.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "device/label.h"
#include "ops/cuda/kernels/blocks.h"
#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/kernels/losses.h"
#include "ops/cuda/kernels/numbers.h"

typedef unsigned long long counter;

/* Counters: bad labels, then those of the record in its order. */
static uint64_t accuracy_counters(const struct ls_cuda_accuracy *of)
{
    const uint64_t classes = (uint64_t)of->of.dim;
    return 2 + (of->has_class ? 2 * classes : 0) + (of->has_confusion ? classes * classes : 0);
}

size_t ls_cuda_accuracy_scratch(const struct ls_cuda_accuracy *of)
{
    const uint64_t accuracy = accuracy_counters(of), iou = 3 * (uint64_t)of->of.dim;
    return (size_t)(1 + (accuracy > iou ? accuracy : iou)) * sizeof(counter);
}

/* The scores of a position: the first class's, and how far classes are apart. */
template <typename T> struct score_row {
    const T *first;
    int64_t step;
};

template <typename T>
__device__ static struct score_row<T> scores_of(const struct ls_cuda_accuracy *of, const T *scores,
                                                uint64_t i) {
    const uint64_t inner = (uint64_t)of->of.inner, classes = (uint64_t)of->of.dim;
    struct score_row<T> at = {
        scores + i *classes, 1
    };
    if (!of->of.last) {
        at.first = scores + i / inner * classes * inner + i % inner;
        at.step = of->of.inner;
    }
    return at;
}

template <typename T>
__device__ static float score_of(const struct score_row<T> *scores, int64_t c)
{
    return ls_number(scores->first[c * scores->step]);
}

template <typename T>
__device__ static bool is_hit(const struct ls_cuda_accuracy *of, const struct score_row<T> *scores,
                              int64_t named)
{
    const float wanted = score_of(scores, named);
    int64_t better = 0;
    for (int64_t c = 0; c < of->of.dim; c++)
        better += !(score_of(scores, c) < wanted);
    return better <= of->top_k;
}

/* The first of the largest scores. */
template <typename T>
__device__ static int64_t predicted_class(const struct ls_cuda_accuracy *of,
                                          const struct score_row<T> *scores)
{
    int64_t best = 0;
    for (int64_t c = 1; c < of->of.dim; c++)
        if (score_of(scores, c) > score_of(scores, best))
            best = c;
    return best;
}

template <typename T>
__global__ void count_hits(struct ls_cuda_accuracy of, const T *scores, const float *label,
                           counter *bad, counter *count)
{
    const int64_t classes = of.of.dim;
    counter *by_class = count + 2, *confusion = by_class + (of.has_class ? 2 * classes : 0);
    for (LS_EACH(i, of.of.outer * of.of.inner)) {
        if (ls_label_ignored(label[i], of.has_ignore, of.ignore_label))
            continue;
        const int64_t named = ls_label_class(label[i], classes);
        const struct score_row<T> at = scores_of(&of, scores, i);
        atomicAdd(&count[1], (counter)1);
        if (named < 0) {
            atomicAdd(bad, (counter)1);
            continue;
        }
        const bool hit = is_hit(&of, &at, named);
        if (hit)
            atomicAdd(&count[0], (counter)1);
        if (of.has_class && hit)
            atomicAdd(&by_class[named], (counter)1);
        if (of.has_class)
            atomicAdd(&by_class[classes + named], (counter)1);
        if (of.has_confusion)
            atomicAdd(&confusion[named * classes + predicted_class(&of, &at)], (counter)1);
    }
}

/* record[place of k] += count[k]; a bad label makes the first NaN. */
__global__ void add_hits(struct ls_cuda_accuracy of, const counter *bad, const counter *count,
                         uint64_t counters, double *record)
{
    const uint64_t by_class = of.has_class ? 2 * (uint64_t)of.of.dim : 0;
    for (LS_EACH(k, counters)) {
        int64_t at = (int64_t)k;
        if (k >= 2 && k < 2 + by_class)
            at = of.class_offset + (int64_t)k - 2;
        else if (k >= 2)
            at = of.confusion_offset + (int64_t)(k - 2 - by_class);
        record[at] = k == 0 && *bad > 0 ? (double)NAN : record[at] + (double)count[k];
    }
}

int ls_cuda_count_hits(cudaStream_t stream, const struct ls_cuda_accuracy *of, const void *scores,
                       const float *label, void *scratch, double *record)
{
    const struct ls_cuda_accuracy by = *of;
    const uint64_t counters = accuracy_counters(&by);
    counter *bad = (counter *)scratch, *count = bad + 1;
    int code = ls_cuda_fill_words(stream, (uint32_t *)scratch, 0,
                                  (size_t)(1 + counters) * sizeof *count / 4);
    if (code == 0)
        code = ls_by_type(by.of.bf16, [=](auto number) {
            using T = decltype(number);
            return LS_LAUNCH(count_hits<T>, ls_blocks((uint64_t)(by.of.outer * by.of.inner)),
                             LS_THREADS, stream, by, (const T *)scores, label, bad, count);
        });
    if (code == 0)
        code = LS_LAUNCH(add_hits, ls_blocks(counters), LS_THREADS, stream, by, bad, count,
                         counters, record);
    return code;
}

/* ---- Mean intersection over union ------------------------------------------------------------ */

/* The class that a position is taken for; -1: a score is NaN. */
template <typename T>
__device__ static int64_t taken_class(const struct ls_cuda_accuracy *of,
                                      const struct score_row<T> *scores)
{
    int64_t taken = 0;
    float best = score_of(scores, 0);
    for (int64_t c = 1; c < of->of.dim; c++) {
        const float value = score_of(scores, c);
        if (value > best)
            taken = c;
        if (value > best || value != value)
            best = value; /* nothing is greater than a NaN */
    }
    return best != best ? -1 : taken;
}

template <typename T>
__global__ void count_intersections(struct ls_cuda_accuracy of, const T *scores, const float *label,
                                    counter *bad, counter *count)
{
    const int64_t classes = of.of.dim;
    for (LS_EACH(i, of.of.outer * of.of.inner)) {
        if (ls_label_ignored(label[i], of.has_ignore, of.ignore_label))
            continue;
        const int64_t named = ls_label_class(label[i], classes);
        if (named < 0) {
            atomicAdd(bad, (counter)1);
            continue;
        }
        const struct score_row<T> at = scores_of(&of, scores, i);
        const int64_t taken = taken_class(&of, &at);
        atomicAdd(&count[2 * classes + named], (counter)1);
        if (taken >= 0)
            atomicAdd(&count[classes + taken], (counter)1);
        if (taken == named)
            atomicAdd(&count[named], (counter)1);
    }
}

__global__ void add_intersections(int64_t counters, const counter *bad, const counter *count,
                                  double *record)
{
    for (LS_EACH(k, counters))
        record[k] = k == 0 && *bad > 0 ? (double)NAN : record[k] + (double)count[k];
}

int ls_cuda_mean_iou(cudaStream_t stream, const struct ls_cuda_accuracy *of, const void *scores,
                     const float *label, void *scratch, double *record)
{
    const struct ls_cuda_accuracy by = *of;
    const int64_t counters = 3 * by.of.dim;
    counter *bad = (counter *)scratch, *count = bad + 1;
    int code = ls_cuda_fill_words(stream, (uint32_t *)scratch, 0,
                                  (size_t)(1 + counters) * sizeof *count / 4);
    if (code == 0)
        code = ls_by_type(by.of.bf16, [=](auto number) {
            using T = decltype(number);
            return LS_LAUNCH(count_intersections<T>,
                             ls_blocks((uint64_t)(by.of.outer * by.of.inner)), LS_THREADS, stream,
                             by, (const T *)scores, label, bad, count);
        });
    if (code == 0)
        code = LS_LAUNCH(add_intersections, ls_blocks((uint64_t)counters), LS_THREADS, stream,
                         counters, bad, count, record);
    return code;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* What a position adds. */
__device__ static double label_part(const struct ls_cuda_loss *loss, int64_t classes, float label,
                                    const float *number)
{
    if (ls_label_ignored(label, loss->has_ignore, loss->ignore_label))
        return 0;
    if (number != NULL)
        return (double)*number;
    if (loss->normalization != LS_NORM_WEIGHTS)
        return 1;
    const int64_t named = ls_label_class(label, classes);
    return named < 0 ? 0 : loss->class_weight != NULL ? (double)loss->class_weight[named] : 1.0;
}

/* One block. Weights and numbers, which are no integers, are added one after the other. */
__global__ void __launch_bounds__(LS_BLOCK)
    count_labels(struct ls_cuda_loss loss, int64_t classes, int64_t n, const float *label,
                 const float *numbers, double *record)
{
    if (numbers == NULL && loss.normalization != LS_NORM_WEIGHTS) {
        int64_t mine = 0;
        for (LS_EACH_OF_BLOCK(i, n))
            mine += label_part(&loss, classes, label[i], NULL) != 0;
        const int64_t all = ls_block_sum(mine);
        if (threadIdx.x == 0)
            *record += (double)all;
        return;
    }
    const double sum = ls_block_add(n, *record, [&](int64_t i) {
        return label_part(&loss, classes, label[i], numbers != NULL ? &numbers[i] : NULL);
    });
    if (threadIdx.x == 0)
        *record = sum;
}

int ls_cuda_count_labels(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t classes,
                         int64_t n, const float *label, const float *numbers, double *record)
{
    const struct ls_cuda_loss by = *loss;
    return LS_LAUNCH(count_labels, 1u, LS_BLOCK, stream, by, classes, n, label, numbers, record);
}
