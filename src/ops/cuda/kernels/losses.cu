/* Losses. See losses.h. The terms of a sum are computed by all threads, and added one after the
 * other by one warp: that is their order everywhere.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/kernels/losses.h"

#include <float.h>
#include <math.h>

#include "device/elementary.h"
#include "ops/cuda/kernels/lanes.h"
#include "ops/cuda/kernels/loss_sums.h"
#include "ops/cuda/kernels/numbers.h"

enum { PART = 256 }; /* positions of a class that are added up first, with smoothing */

struct terms {
    struct ls_loss_tally *tally;
    double *term, *weight; /* by position */
    double *row, *part;    /* with smoothing: of all classes at a place; of a part of one there */
};

static struct terms terms_of(void *scratch, int64_t positions, int64_t rows)
{
    struct terms terms;
    terms.tally = (struct ls_loss_tally *)scratch;
    terms.term = (double *)scratch + sizeof(struct ls_loss_tally) / sizeof(double);
    terms.weight = terms.term + positions;
    terms.row = terms.weight + positions;
    terms.part = terms.row + rows;
    return terms;
}

size_t ls_cuda_loss_scratch(int64_t positions, int64_t parts)
{
    return sizeof(struct ls_loss_tally) + (size_t)(2 * positions + parts) * sizeof(double);
}

/* log max(p, least) */
__device__ static double log_of(float p, float least)
{
    return (double)ls_float_log(p < least ? least : p);
}

/* A negative class: none. */
__device__ static int64_t class_of(const struct ls_cuda_loss *loss, float label, int64_t classes)
{
    return ls_is_ignored(loss, label) ? -1 : ls_label_class(label, classes);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Adds `positions` terms up, and their weights; of `rows` sums of places, with smoothing, each is
 * that of all classes. By one warp. */
struct sums {
    int64_t positions, rows, classes;
    bool weighted;
};

__global__ void add_terms(struct ls_cuda_loss loss, struct terms terms, struct sums of,
                          double *record)
{
    const double weights = of.weighted ? ls_add_in_order(0, terms.weight, of.positions) : 0;
    double sum = ls_add_in_order(0, terms.term, of.positions);
    if (of.rows > 0) {
        const double smoothing = (double)loss.smoothing;
        const double all = ls_add_in_order(0, terms.row, of.rows);
        sum = (1 - smoothing) * sum + smoothing / (double)of.classes * all;
    }
    if (threadIdx.x == 0)
        ls_add_loss(&loss, sum, weights, terms.tally, record);
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
        if (ls_is_ignored(&loss, label[i]))
            continue;
        const int64_t named = ls_label_class(label[i], of.dim);
        atomicAdd(&terms.tally->valid, 1ull);
        if (named < 0) {
            atomicAdd(&terms.tally->bad, 1ull);
            continue;
        }
        const double weight = ls_class_weight(&loss, named);
        terms.weight[i] = weight;
        terms.term[i] = -(weight * log_of(p[place_of(&of, (int64_t)i, named)], least));
    }
}

/* Of the positions of a class behind place o: those from `first` on, a part of them. */
__device__ static double find_part(const struct ls_cuda_loss *loss,
                                   const struct ls_cuda_classes *of, const float *p,
                                   const float *label, int64_t o, int64_t c, int64_t first)
{
    double sum = 0;
    for (int64_t k = first; k < of->inner && k < first + PART; k++) {
        const int64_t at = o * of->inner + k;
        if (!ls_is_ignored(loss, label[at]))
            sum -= log_of(p[place_of(of, at, c)], FLT_MIN);
    }
    return sum;
}

__device__ static int64_t parts_of(const struct ls_cuda_classes *of)
{
    return (of->inner + PART - 1) / PART;
}

__global__ void find_parts(struct ls_cuda_loss loss, struct ls_cuda_classes of, const float *p,
                           const float *label, double *part)
{
    const int64_t parts = parts_of(&of);
    for (LS_EACH(i, of.outer * of.dim * parts)) {
        const int64_t row = (int64_t)i / parts, first = (int64_t)i % parts * PART;
        part[i] = find_part(&loss, &of, p, label, row / of.dim, row % of.dim, first);
    }
}

/* The parts of a place class by class, each times its class's weight: a warp a place. Where a
 * place has one position, parts are found here. */
__global__ void add_rows(struct ls_cuda_loss loss, struct ls_cuda_classes of, const float *p,
                         const float *label, struct terms terms)
{
    const int64_t lane = threadIdx.x % 32, step = (int64_t)gridDim.x * blockDim.x / 32;
    const int64_t parts = parts_of(&of), all = of.dim * parts;
    int64_t o = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (; o < of.outer; o += step) {
        double sum = 0;
        for (int64_t first = 0; first < all; first += 32) {
            const int64_t i = first + lane, c = i / parts;
            double mine = 0;
            if (i < all)
                mine = ls_class_weight(&loss, c) * (of.inner == 1
                                                        ? find_part(&loss, &of, p, label, o, c, 0)
                                                        : terms.part[o * all + i]);
            for (int k = 0; k < 32 && first + k < all; k++)
                sum += __shfl_sync(0xffffffffu, mine, k);
        }
        if (lane == 0)
            terms.row[o] = sum;
    }
}

static int give_smoothing(cudaStream_t stream, const struct ls_cuda_loss *loss,
                          const struct ls_cuda_classes *of, const float *p, const float *label,
                          struct terms terms)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    const uint64_t parts = (uint64_t)(of->outer * of->dim * ((of->inner + PART - 1) / PART));
    const int code = of->inner == 1 ? 0
                                    : LS_LAUNCH(find_parts, ls_blocks(parts), LS_THREADS, stream,
                                                by, classes, p, label, terms.part);
    return code != 0 ? code
                     : LS_LAUNCH(add_rows, ls_blocks((uint64_t)of->outer * 32), LS_THREADS, stream,
                                 by, classes, p, label, terms);
}

int ls_cuda_softmax_loss(cudaStream_t stream, const struct ls_cuda_loss *loss,
                         const struct ls_cuda_classes *of, const float *p, const float *label,
                         void *scratch, double *record)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    const int64_t positions = classes.outer * classes.inner;
    const int64_t rows = by.smoothing > 0 ? classes.outer : 0;
    const struct terms terms = terms_of(scratch, positions, rows);
    const struct sums sums = {positions, rows, classes.dim, true};
    int code = ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
    if (code == 0)
        code = LS_LAUNCH(find_class_terms, ls_blocks((uint64_t)positions), LS_THREADS, stream, by,
                         classes, p, label, by.clamped ? LS_LEAST_PROBABILITY : FLT_MIN, terms);
    if (code == 0 && rows > 0)
        code = give_smoothing(stream, loss, of, p, label, terms);
    if (code == 0)
        code = LS_LAUNCH(add_terms, 1u, 32u, stream, by, terms, sums, record);
    return code;
}

/* What is clamped has the gradient of a constant in the logarithm's derivative. */
__device__ static double shrink(const struct ls_cuda_loss *loss, float p)
{
    return loss->clamped && p < LS_LEAST_PROBABILITY ? (double)p / (double)LS_LEAST_PROBABILITY : 1;
}

/* With weights or smoothing: in double, rounded once. */
template <typename T>
__device__ static void go_back_mixed(const struct ls_cuda_loss *loss,
                                     const struct ls_cuda_classes *of, double scale, const float *p,
                                     int64_t i, int64_t named, T *dx)
{
    const double share = (double)loss->smoothing / (double)of->dim;
    double all = 0, own = (1 - (double)loss->smoothing) * ls_class_weight(loss, named);
    for (int64_t c = 0; c < of->dim; c++)
        all += ls_class_weight(loss, c);
    own *= shrink(loss, p[place_of(of, i, named)]);
    for (int64_t c = 0; c < of->dim; c++) {
        const int64_t at = place_of(of, i, c);
        double part = share * ls_class_weight(loss, c);
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
    const double scale = ls_loss_scale(&loss, numbers);
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
    const struct terms terms = terms_of(scratch, by.samples, 0);
    const struct sums sums = {by.samples, 0, 0, true};
    int code = ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
    if (code == 0)
        code = LS_LAUNCH(find_class_terms, ls_blocks((uint64_t)by.samples), LS_THREADS, stream, by,
                         of, p, label, LS_LEAST_PROBABILITY, terms);
    if (code == 0)
        code = LS_LAUNCH(add_terms, 1u, 32u, stream, by, terms, sums, record);
    return code;
}

__global__ void log_loss_backward(struct ls_cuda_loss loss, int64_t classes,
                                  const struct ls_batch_numbers *numbers, const float *p,
                                  const float *label, float *dp)
{
    const double factor = ls_loss_scale(&loss, numbers);
    for (LS_EACH(i, loss.samples * classes)) {
        const int64_t c = (int64_t)i % classes;
        const int64_t named = class_of(&loss, label[(int64_t)i / classes], classes);
        const double scale = named == c ? factor * ls_class_weight(&loss, c) : 0;
        const float q = p[i] < LS_LEAST_PROBABILITY ? LS_LEAST_PROBABILITY : p[i];
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
        if (ls_is_ignored(&loss, target[i]))
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
    const struct terms terms = terms_of(scratch, n, 0);
    const struct sums sums = {n, 0, 0, false};
    int code = ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
    if (code == 0)
        code = LS_LAUNCH(find_sigmoid_terms, ls_blocks((uint64_t)n), LS_THREADS, stream, by, n, x,
                         target, terms);
    if (code == 0)
        code = LS_LAUNCH(add_terms, 1u, 32u, stream, by, terms, sums, record);
    return code;
}

__global__ void sigmoid_loss_backward(struct ls_cuda_loss loss, int64_t n,
                                      const struct ls_batch_numbers *numbers, const float *x,
                                      const float *target, float *dx)
{
    const float factor = (float)ls_loss_scale(&loss, numbers);
    for (LS_EACH(i, n)) {
        const float p = 1.0F / (1.0F + ls_float_exp(-x[i]));
        dx[i] = ls_is_ignored(&loss, target[i]) ? 0 : (p - target[i]) * factor;
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
    const struct ls_loss_tally tally = {(unsigned long long)loss.samples, 0};
    ls_add_loss(&loss, sum / 2, 0, &tally, record);
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
    const float factor = loss.scale * (float)ls_loss_scale(&loss, numbers);
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
