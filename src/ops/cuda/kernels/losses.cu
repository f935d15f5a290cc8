/* Losses. See losses.h. The terms of a sum are computed by all threads, and added one after the
 * other by one: that is their order everywhere.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/kernels/losses.h"

#include <float.h>
#include <math.h>

#include "device/elementary.h"
#include "device/label.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/numbers.h"

#define LEAST_PROBABILITY 1e-20F /* LS_LEAST_PROBABILITY of device/loss.h */

enum { PART = 256 }; /* positions of a class that are added up first, with smoothing */

/* What the positions of a micro-batch leave. */
struct tally {
    unsigned long long valid, bad;
};

struct terms {
    struct tally *tally;
    double *term, *weight, *part; /* by position; by part of a class */
};

static struct terms terms_of(void *scratch, int64_t positions)
{
    struct terms terms;
    terms.tally = (struct tally *)scratch;
    terms.term = (double *)scratch + sizeof(struct tally) / sizeof(double);
    terms.weight = terms.term + positions;
    terms.part = terms.weight + positions;
    return terms;
}

size_t ls_cuda_loss_scratch(int64_t positions, int64_t parts)
{
    return sizeof(struct tally) + (size_t)(2 * positions + parts) * sizeof(double);
}

__device__ static bool is_ignored(const struct ls_cuda_loss *loss, float label)
{
    return ls_label_ignored(label, loss->has_ignore, loss->ignore_label);
}

__device__ static double weight_of(const struct ls_cuda_loss *loss, int64_t c)
{
    return loss->class_weight != NULL ? (double)loss->class_weight[c] : 1.0;
}

/* log max(p, least) */
__device__ static double log_of(float p, float least)
{
    return (double)ls_float_log(p < least ? least : p);
}

/* What the gradient is multiplied by. */
__device__ static double scale_of(const struct ls_cuda_loss *loss,
                                  const struct ls_batch_numbers *numbers)
{
    const double divisor = loss->normalizer < 0 ? 1.0 : numbers->normalizers[loss->normalizer];
    return (double)loss->loss_weight / divisor;
}

/* A negative class: none. */
__device__ static int64_t class_of(const struct ls_cuda_loss *loss, float label, int64_t classes)
{
    return is_ignored(loss, label) ? -1 : ls_label_class(label, classes);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Adds [sum, count]; a label that names no class makes the sum NaN. */
__device__ static void add_to_record(const struct ls_cuda_loss *loss, double sum, double weights,
                                     const struct tally *tally, double *record)
{
    record[0] += tally->bad > 0 ? (double)NAN : sum;
    record[1] += loss->normalization == LS_NORM_FULL         ? (double)loss->positions
                 : loss->normalization == LS_NORM_VALID      ? (double)tally->valid
                 : loss->normalization == LS_NORM_BATCH_SIZE ? (double)loss->samples
                 : loss->normalization == LS_NORM_WEIGHTS    ? weights
                                                             : 0;
}

/* `all` parts of classes are added up in rows of `classes` times `of_class`, each times its class's
 * weight. */
struct smoothed {
    int64_t rows, classes, of_class;
};

__device__ static double add_parts(const struct ls_cuda_loss *loss, const struct smoothed *of,
                                   const double *part)
{
    double all = 0;
    for (int64_t o = 0; o < of->rows; o++) {
        double sum = 0;
        for (int64_t c = 0; c < of->classes; c++)
            for (int64_t p = 0; p < of->of_class; p++)
                sum += weight_of(loss, c) * *part++;
        all += sum;
    }
    return all;
}

__global__ void add_terms(struct ls_cuda_loss loss, struct terms terms, int64_t positions,
                          bool weighted, struct smoothed smoothed, double *record)
{
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < positions; i++) {
        sum += terms.term[i];
        weights += weighted ? terms.weight[i] : 0;
    }
    if (smoothed.rows > 0) {
        const double smoothing = (double)loss.smoothing;
        const double all = add_parts(&loss, &smoothed, terms.part);
        sum = (1 - smoothing) * sum + smoothing / (double)smoothed.classes * all;
    }
    add_to_record(&loss, sum, weights, terms.tally, record);
}

/* ---- Softmax loss ---------------------------------------------------------------------------- */

__device__ static int64_t place_of(const struct ls_cuda_classes *of, int64_t i, int64_t c)
{
    return of->last ? i * of->dim + c : (i / of->inner * of->dim + c) * of->inner + i % of->inner;
}

/* The terms of the labels' own classes. */
__global__ void find_class_terms(struct ls_cuda_loss loss, struct ls_cuda_classes of,
                                 const float *p, const float *label, float least,
                                 struct terms terms)
{
    for (LS_EACH(i, of.outer * of.inner)) {
        terms.term[i] = terms.weight[i] = 0;
        if (is_ignored(&loss, label[i]))
            continue;
        const int64_t named = ls_label_class(label[i], of.dim);
        atomicAdd(&terms.tally->valid, 1ull);
        if (named < 0) {
            atomicAdd(&terms.tally->bad, 1ull);
            continue;
        }
        const double weight = weight_of(&loss, named);
        terms.weight[i] = weight;
        terms.term[i] = -(weight * log_of(p[place_of(&of, (int64_t)i, named)], least));
    }
}

/* Of all classes of the positions behind a place: class by class, in parts. */
__global__ void find_parts(struct ls_cuda_loss loss, struct ls_cuda_classes of, const float *p,
                           const float *label, int64_t of_class, double *part)
{
    for (LS_EACH(i, of.outer * of.dim * of_class)) {
        const int64_t first = (int64_t)i % of_class * PART, row = (int64_t)i / of_class;
        const int64_t o = row / of.dim, c = row % of.dim;
        double sum = 0;
        for (int64_t k = first; k < of.inner && k < first + PART; k++) {
            const int64_t at = o * of.inner + k;
            if (!is_ignored(&loss, label[at]))
                sum -= log_of(p[place_of(&of, at, c)], FLT_MIN);
        }
        part[i] = sum;
    }
}

int ls_cuda_softmax_loss(cudaStream_t stream, const struct ls_cuda_loss *loss,
                         const struct ls_cuda_classes *of, const float *p, const float *label,
                         void *scratch, double *record)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    const int64_t positions = classes.outer * classes.inner;
    const int64_t of_class = (classes.inner + PART - 1) / PART;
    const struct terms terms = terms_of(scratch, positions);
    const bool smooth = by.smoothing > 0;
    const struct smoothed smoothed = {smooth ? classes.outer : 0, classes.dim, of_class};
    int code = ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
    if (code == 0)
        code = LS_LAUNCH(find_class_terms, ls_blocks((uint64_t)positions), LS_THREADS, stream, by,
                         classes, p, label, by.clamped ? LEAST_PROBABILITY : FLT_MIN, terms);
    if (code == 0 && smooth)
        code = LS_LAUNCH(find_parts, ls_blocks((uint64_t)(classes.outer * classes.dim * of_class)),
                         LS_THREADS, stream, by, classes, p, label, of_class, terms.part);
    if (code == 0)
        code = LS_LAUNCH(add_terms, 1u, 1u, stream, by, terms, positions, true, smoothed, record);
    return code;
}

/* What is clamped has the gradient of a constant in the logarithm's derivative. */
__device__ static double shrink(const struct ls_cuda_loss *loss, float p)
{
    return loss->clamped && p < LEAST_PROBABILITY ? (double)p / (double)LEAST_PROBABILITY : 1;
}

/* With weights or smoothing: in double, rounded once. */
template <typename T>
__device__ static void go_back_mixed(const struct ls_cuda_loss *loss,
                                     const struct ls_cuda_classes *of, double scale, const float *p,
                                     int64_t i, int64_t named, T *dx)
{
    const double share = (double)loss->smoothing / (double)of->dim;
    double all = 0, own = (1 - (double)loss->smoothing) * weight_of(loss, named);
    for (int64_t c = 0; c < of->dim; c++)
        all += weight_of(loss, c);
    own *= shrink(loss, p[place_of(of, i, named)]);
    for (int64_t c = 0; c < of->dim; c++) {
        const int64_t at = place_of(of, i, c);
        double part = share * weight_of(loss, c);
        part = c == named ? part + own : part;
        const double slope = (own + share * all) * (double)p[at] - part;
        ls_put(&dx[at], (float)(slope * scale));
    }
}

template <typename T>
__global__ void softmax_loss_backward(struct ls_cuda_loss loss, struct ls_cuda_classes of,
                                      const struct ls_batch_numbers *numbers, const float *p,
                                      const float *label, T *dx)
{
    const double scale = scale_of(&loss, numbers);
    const float factor = (float)scale;
    const bool plain = loss.class_weight == NULL && loss.smoothing == 0;
    for (LS_EACH(i, of.outer * of.inner)) {
        const int64_t named = class_of(&loss, label[i], of.dim);
        if (named >= 0 && !plain) {
            go_back_mixed(&loss, &of, scale, p, (int64_t)i, named, dx);
            continue;
        }
        const float less =
            named < 0 ? 1 : (float)shrink(&loss, p[place_of(&of, (int64_t)i, named)]);
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            const float slope = (c == named ? p[at] - 1.0F : p[at]) * factor;
            ls_put(&dx[at], named < 0 ? 0 : less < 1 ? slope * less : slope);
        }
    }
}

int ls_cuda_softmax_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss,
                                  const struct ls_cuda_classes *of,
                                  const struct ls_batch_numbers *numbers, const float *p,
                                  const float *label, void *dx)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    return ls_by_type(classes.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(softmax_loss_backward<T>,
                         ls_blocks((uint64_t)(classes.outer * classes.inner)), LS_THREADS, stream,
                         by, classes, numbers, p, label, (T *)dx);
    });
}

/* ---- Of probabilities ------------------------------------------------------------------------ */

int ls_cuda_log_loss(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t classes,
                     const float *p, const float *label, void *scratch, double *record)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes of = {by.samples, classes, 1, false, false};
    const struct terms terms = terms_of(scratch, by.samples);
    const struct smoothed none = {0, 0, 0};
    int code = ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
    if (code == 0)
        code = LS_LAUNCH(find_class_terms, ls_blocks((uint64_t)by.samples), LS_THREADS, stream, by,
                         of, p, label, LEAST_PROBABILITY, terms);
    if (code == 0)
        code = LS_LAUNCH(add_terms, 1u, 1u, stream, by, terms, by.samples, true, none, record);
    return code;
}

__global__ void log_loss_backward(struct ls_cuda_loss loss, int64_t classes,
                                  const struct ls_batch_numbers *numbers, const float *p,
                                  const float *label, float *dp)
{
    const double factor = scale_of(&loss, numbers);
    for (LS_EACH(i, loss.samples * classes)) {
        const int64_t c = (int64_t)i % classes;
        const int64_t named = class_of(&loss, label[(int64_t)i / classes], classes);
        const double scale = named == c ? factor * weight_of(&loss, c) : 0;
        const float q = p[i] < LEAST_PROBABILITY ? LEAST_PROBABILITY : p[i];
        dp[i] = named == c ? (float)(-scale / (double)q) : 0;
    }
}

int ls_cuda_log_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t classes,
                              const struct ls_batch_numbers *numbers, const float *p,
                              const float *label, float *dp)
{
    const struct ls_cuda_loss by = *loss;
    return LS_LAUNCH(log_loss_backward, ls_blocks((uint64_t)(by.samples * classes)), LS_THREADS,
                     stream, by, classes, numbers, p, label, dp);
}

/* ---- Of numbers ------------------------------------------------------------------------------ */

__global__ void find_sigmoid_terms(struct ls_cuda_loss loss, int64_t n, const float *x,
                                   const float *target, struct terms terms)
{
    for (LS_EACH(i, n)) {
        const float soft = ls_float_exp(-fabsf(x[i])) + 1.0F;
        terms.term[i] = 0;
        if (is_ignored(&loss, target[i]))
            continue;
        atomicAdd(&terms.tally->valid, 1ull);
        terms.term[i] = (double)ls_float_log(soft) -
                        (double)x[i] * ((double)target[i] - (x[i] >= 0 ? 1.0 : 0.0));
    }
}

int ls_cuda_sigmoid_loss(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                         const float *x, const float *target, void *scratch, double *record)
{
    const struct ls_cuda_loss by = *loss;
    const struct terms terms = terms_of(scratch, n);
    const struct smoothed none = {0, 0, 0};
    int code = ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
    if (code == 0)
        code = LS_LAUNCH(find_sigmoid_terms, ls_blocks((uint64_t)n), LS_THREADS, stream, by, n, x,
                         target, terms);
    if (code == 0)
        code = LS_LAUNCH(add_terms, 1u, 1u, stream, by, terms, n, false, none, record);
    return code;
}

__global__ void sigmoid_loss_backward(struct ls_cuda_loss loss, int64_t n,
                                      const struct ls_batch_numbers *numbers, const float *x,
                                      const float *target, float *dx)
{
    const float factor = (float)scale_of(&loss, numbers);
    for (LS_EACH(i, n)) {
        const float p = 1.0F / (1.0F + ls_float_exp(-x[i]));
        dx[i] = is_ignored(&loss, target[i]) ? 0 : (p - target[i]) * factor;
    }
}

int ls_cuda_sigmoid_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                                  const struct ls_batch_numbers *numbers, const float *x,
                                  const float *target, float *dx)
{
    const struct ls_cuda_loss by = *loss;
    return LS_LAUNCH(sigmoid_loss_backward, ls_blocks((uint64_t)n), LS_THREADS, stream, by, n,
                     numbers, x, target, dx);
}

/* In lanes, which are added one after the other. */
__global__ void add_squares(struct ls_cuda_loss loss, int64_t n, const float *a, const float *b,
                            double *record)
{
    __shared__ double lanes[LS_CUDA_LANES];
    double mine = 0;
    for (int64_t i = threadIdx.x; i < n; i += LS_CUDA_LANES) {
        const double apart = (double)a[i] - (double)b[i];
        mine += apart * apart;
    }
    lanes[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double sum = 0;
    for (int l = 0; l < LS_CUDA_LANES; l++)
        sum += lanes[l];
    const struct tally tally = {(unsigned long long)loss.samples, 0};
    add_to_record(&loss, sum / 2, 0, &tally, record);
}

int ls_cuda_euclidean_loss(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                           const float *a, const float *b, double *record)
{
    const struct ls_cuda_loss by = *loss;
    return LS_LAUNCH(add_squares, 1u, (unsigned)LS_CUDA_LANES, stream, by, n, a, b, record);
}

__global__ void euclidean_loss_backward(struct ls_cuda_loss loss, int64_t n,
                                        const struct ls_batch_numbers *numbers, const float *a,
                                        const float *b, float *da)
{
    const float factor = loss.scale * (float)scale_of(&loss, numbers);
    for (LS_EACH(i, n))
        da[i] = (a[i] - b[i]) * factor;
}

int ls_cuda_euclidean_loss_backward(cudaStream_t stream, const struct ls_cuda_loss *loss, int64_t n,
                                    const struct ls_batch_numbers *numbers, const float *a,
                                    const float *b, float *da)
{
    const struct ls_cuda_loss by = *loss;
    return LS_LAUNCH(euclidean_loss_backward, ls_blocks((uint64_t)n), LS_THREADS, stream, by, n,
                     numbers, a, b, da);
}
