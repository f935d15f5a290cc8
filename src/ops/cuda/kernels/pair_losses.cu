/* Losses of pairs, margins and gains. See pair_losses.h. Terms are computed by all threads, and
 * added one after the other by a warp.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/pair_losses.h"

#include <float.h>
#include <math.h>

#include "device/elementary_double.h"
#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/kernels/loss_sums.h"

struct terms {
    struct ls_loss_tally *tally;
    double *term;
};

static struct terms terms_of(void *scratch)
{
    struct terms terms;
    terms.tally = (struct ls_loss_tally *)scratch;
    terms.term = (double *)(terms.tally + 1);
    return terms;
}

size_t ls_cuda_pair_scratch(int64_t terms)
{
    return sizeof(struct ls_loss_tally) + (size_t)terms * sizeof(double);
}

static int clear_tally(cudaStream_t stream, struct terms terms)
{
    return ls_cuda_fill_words(stream, (uint32_t *)terms.tally, 0, sizeof *terms.tally / 4);
}

/* The sum of n terms, over 2 where they are twice as large; `counted`: all positions count, without
 * a look at the tally. By one warp. */
struct sums {
    int64_t n;
    bool counted, halved;
};

__global__ void add_pair_terms(struct ls_cuda_loss loss, struct terms terms, struct sums of,
                               double *record)
{
    const double sum = ls_add_in_order(0, terms.term, of.n);
    struct ls_loss_tally tally = *terms.tally;
    if (of.counted)
        tally.valid = (unsigned long long)loss.positions;
    if (threadIdx.x == 0)
        ls_add_loss(&loss, of.halved ? sum / 2 : sum, 0, &tally, record);
}

static int give_sum(cudaStream_t stream, const struct ls_cuda_loss *loss, struct terms terms,
                    struct sums of, double *record)
{
    const struct ls_cuda_loss by = *loss;
    return LS_LAUNCH(add_pair_terms, 1u, 32u, stream, by, terms, of, record);
}

/* ---- Hinge ----------------------------------------------------------------------------------- */

__global__ void find_margins(struct ls_cuda_margins of, const float *x, const float *label,
                             struct terms terms)
{
    for (LS_EACH(i, of.loss.samples * of.classes)) {
        const int64_t n = (int64_t)i / of.classes, k = (int64_t)i % of.classes;
        const int64_t named = ls_label_class(label[n], of.classes);
        const bool ignored = ls_is_ignored(&of.loss, label[n]);
        const double part = 1 + (k == named ? -(double)x[i] : (double)x[i]);
        const bool counts = !ignored && !(part <= 0); /* a NaN stays one */
        terms.term[i] = !counts ? 0 : of.squared ? part * part : part;
        if (k == 0 && !ignored && named < 0)
            atomicAdd(&terms.tally->bad, 1ull);
    }
}

int ls_cuda_hinge(cudaStream_t stream, const struct ls_cuda_margins *of, const float *x,
                  const float *label, void *scratch, double *record)
{
    const struct ls_cuda_margins by = *of;
    const struct terms terms = terms_of(scratch);
    const struct sums sums = {by.loss.samples * by.classes, true, false};
    int code = clear_tally(stream, terms);
    if (code == 0)
        code = LS_LAUNCH(find_margins, ls_blocks((uint64_t)sums.n), LS_THREADS, stream, by, x,
                         label, terms);
    return code == 0 ? give_sum(stream, &by.loss, terms, sums, record) : code;
}

__global__ void hinge_backward(struct ls_cuda_margins of, const struct ls_batch_numbers *numbers,
                               const float *x, const float *label, float *dx)
{
    const double factor = ls_loss_scale(&of.loss, numbers);
    for (LS_EACH(i, of.loss.samples * of.classes)) {
        const int64_t n = (int64_t)i / of.classes, k = (int64_t)i % of.classes;
        const bool ignored = ls_is_ignored(&of.loss, label[n]);
        const double sign = k == ls_label_class(label[n], of.classes) ? -1 : 1;
        const double part = 1 + sign * (double)x[i];
        const double slope = ignored || part <= 0 ? 0 : of.squared ? 2 * part : 1;
        dx[i] = (float)(sign * slope * factor);
    }
}

int ls_cuda_hinge_backward(cudaStream_t stream, const struct ls_cuda_margins *of,
                           const struct ls_batch_numbers *numbers, const float *x,
                           const float *label, float *dx)
{
    const struct ls_cuda_margins by = *of;
    return LS_LAUNCH(hinge_backward, ls_blocks((uint64_t)(by.loss.samples * by.classes)),
                     LS_THREADS, stream, by, numbers, x, label, dx);
}

/* ---- Contrastive ----------------------------------------------------------------------------- */

/* The square of the distance of two rows, in the order of their numbers, by a warp. */
__device__ static double find_distance(const float *a, const float *b, int64_t n)
{
    const int64_t lane = threadIdx.x % 32;
    double sum = 0;
    for (int64_t first = 0; first < n; first += 32) {
        const int64_t i = first + lane;
        const double apart = i < n ? (double)a[i] - (double)b[i] : 0;
        const double mine = apart * apart;
        for (int k = 0; k < 32 && first + k < n; k++)
            sum += __shfl_sync(0xffffffffu, mine, k);
    }
    return sum;
}

/* The term of each sample, or what its gradient is in proportion to: a warp a sample. */
__global__ void find_pairs(struct ls_cuda_pairs of, bool backward, const float *a, const float *b,
                           const float *similar, struct terms terms)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x / 32;
    int64_t n = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (; n < of.loss.samples; n += step) {
        const double square = find_distance(a + n * of.each, b + n * of.each, of.each);
        const double distance = sqrt(square);
        const double left = (double)of.margin - (of.legacy ? square : distance);
        const bool alike = trunc((double)similar[n]) != 0; /* as Caffe cuts it to an integer */
        double term = alike ? square : left <= 0 ? 0 : of.legacy ? left : left * left;
        if (backward) /* 1e-4 keeps the gradient finite at distance 0, as in Caffe */
            term = alike ? 1 : left <= 0 ? 0 : of.legacy ? -1 : -left / (distance + 1e-4);
        if (threadIdx.x % 32 == 0)
            terms.term[n] = term;
    }
}

static int give_pairs(cudaStream_t stream, const struct ls_cuda_pairs *of, bool backward,
                      const float *a, const float *b, const float *similar, struct terms terms)
{
    const struct ls_cuda_pairs by = *of;
    return LS_LAUNCH(find_pairs, ls_blocks((uint64_t)by.loss.samples * 32), LS_THREADS, stream, by,
                     backward, a, b, similar, terms);
}

int ls_cuda_contrastive(cudaStream_t stream, const struct ls_cuda_pairs *of, const float *a,
                        const float *b, const float *similar, void *scratch, double *record)
{
    const struct terms terms = terms_of(scratch);
    const struct sums sums = {of->loss.samples, true, true};
    int code = clear_tally(stream, terms);
    if (code == 0)
        code = give_pairs(stream, of, false, a, b, similar, terms);
    return code == 0 ? give_sum(stream, &of->loss, terms, sums, record) : code;
}

__global__ void contrastive_backward(struct ls_cuda_pairs of,
                                     const struct ls_batch_numbers *numbers, const float *a,
                                     const float *b, const double *slope, float *da)
{
    const double factor = (double)of.loss.scale * ls_loss_scale(&of.loss, numbers);
    for (LS_EACH(i, of.loss.samples * of.each))
        da[i] = (float)(factor * slope[(int64_t)i / of.each] * ((double)a[i] - (double)b[i]));
}

int ls_cuda_contrastive_backward(cudaStream_t stream, const struct ls_cuda_pairs *of,
                                 const struct ls_batch_numbers *numbers, const float *a,
                                 const float *b, const float *similar, void *scratch, float *da)
{
    const struct ls_cuda_pairs by = *of;
    const struct terms terms = terms_of(scratch);
    const int code = give_pairs(stream, of, true, a, b, similar, terms);
    return code != 0
               ? code
               : LS_LAUNCH(contrastive_backward, ls_blocks((uint64_t)(by.loss.samples * by.each)),
                           LS_THREADS, stream, by, numbers, a, b, terms.term, da);
}

/* ---- Infogain -------------------------------------------------------------------------------- */

__device__ static int64_t place_of(const struct ls_cuda_classes *of, int64_t i, int64_t c)
{
    return (i / of->inner * of->dim + c) * of->inner + i % of->inner;
}

/* Softmax in double, rounded once. */
__global__ void make_probabilities(struct ls_cuda_classes of, const float *x, float *p)
{
    for (LS_EACH(i, of.outer * of.inner)) {
        double largest = -(double)INFINITY, sum = 0;
        for (int64_t c = 0; c < of.dim; c++)
            largest = fmax(largest, (double)x[place_of(&of, (int64_t)i, c)]);
        for (int64_t c = 0; c < of.dim; c++)
            sum += ls_double_exp((double)x[place_of(&of, (int64_t)i, c)] - largest);
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            p[at] = (float)(ls_double_exp((double)x[at] - largest) / sum);
        }
    }
}

/* Terms position by position, class by class. */
__global__ void find_gains(struct ls_cuda_loss loss, struct ls_cuda_classes of, const float *p,
                           const float *label, const float *gains, struct terms terms)
{
    for (LS_EACH(i, of.outer * of.inner * of.dim)) {
        const int64_t at = (int64_t)i / of.dim, c = (int64_t)i % of.dim;
        const int64_t named = ls_label_class(label[at], of.dim);
        terms.term[i] = 0;
        if (ls_is_ignored(&loss, label[at]))
            continue;
        const float mine = p[place_of(&of, at, c)];
        const float least = mine < LS_LEAST_PROBABILITY ? LS_LEAST_PROBABILITY : mine;
        const float gain = gains[(named < 0 ? 0 : named) * of.dim + c];
        terms.term[i] = -((double)gain * ls_double_log((double)least));
        if (c == 0)
            atomicAdd(&terms.tally->valid, 1ull);
        if (c == 0 && named < 0)
            atomicAdd(&terms.tally->bad, 1ull);
    }
}

int ls_cuda_infogain(cudaStream_t stream, const struct ls_cuda_loss *loss,
                     const struct ls_cuda_classes *of, const float *x, const float *label,
                     const float *gains, void *scratch, float *p, double *record)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    const struct terms terms = terms_of(scratch);
    const int64_t positions = classes.outer * classes.inner;
    const struct sums sums = {positions * classes.dim, false, false};
    int code = clear_tally(stream, terms);
    if (code == 0)
        code = LS_LAUNCH(make_probabilities, ls_blocks((uint64_t)positions), LS_THREADS, stream,
                         classes, x, p);
    if (code == 0)
        code = LS_LAUNCH(find_gains, ls_blocks((uint64_t)sums.n), LS_THREADS, stream, by, classes,
                         p, label, gains, terms);
    return code == 0 ? give_sum(stream, loss, terms, sums, record) : code;
}

__global__ void infogain_backward(struct ls_cuda_loss loss, struct ls_cuda_classes of,
                                  const struct ls_batch_numbers *numbers, const float *p,
                                  const float *label, const float *gains, float *dx)
{
    const double factor = ls_loss_scale(&loss, numbers);
    for (LS_EACH(i, of.outer * of.inner)) {
        const int64_t named = ls_label_class(label[i], of.dim);
        const bool counts = named >= 0 && !ls_is_ignored(&loss, label[i]);
        const float *mine = gains + (counts ? named : 0) * of.dim;
        double total = 0;
        for (int64_t c = 0; counts && c < of.dim; c++)
            total += (double)mine[c];
        for (int64_t c = 0; c < of.dim; c++) {
            const int64_t at = place_of(&of, (int64_t)i, c);
            dx[at] = counts ? (float)(factor * (total * (double)p[at] - (double)mine[c])) : 0;
        }
    }
}

int ls_cuda_infogain_backward(cudaStream_t stream, const struct ls_cuda_loss *loss,
                              const struct ls_cuda_classes *of,
                              const struct ls_batch_numbers *numbers, const float *p,
                              const float *label, const float *gains, float *dx)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    return LS_LAUNCH(infogain_backward, ls_blocks((uint64_t)(classes.outer * classes.inner)),
                     LS_THREADS, stream, by, classes, numbers, p, label, gains, dx);
}

/* ---- Softmax, position by position ----------------------------------------------------------- */

__device__ static double softmax_part(const struct ls_cuda_loss *loss,
                                      const struct ls_cuda_classes *of, const float *p, int64_t i,
                                      int64_t named)
{
    const double spread = (double)loss->smoothing / (double)of->dim;
    double sum = 0;
    for (int64_t c = 0; c < of->dim; c++) {
        const double share = (c == named ? 1 - (double)loss->smoothing : 0) + spread;
        const double weight = ls_class_weight(loss, c);
        if (share * weight == 0)
            continue;
        const float mine = p[place_of(of, i, c)];
        const float least = mine < FLT_MIN ? FLT_MIN : mine; /* a NaN stays one */
        sum -= weight * share * ls_double_log((double)least);
    }
    return sum;
}

__global__ void softmax_each(struct ls_cuda_loss loss, struct ls_cuda_classes of, const float *p,
                             const float *label, float *y)
{
    for (LS_EACH(i, of.outer * of.inner)) {
        const int64_t named = ls_label_class(label[i], of.dim);
        y[i] = ls_is_ignored(&loss, label[i]) ? 0
               : named < 0                    ? NAN
                           : (float)softmax_part(&loss, &of, p, (int64_t)i, named);
    }
}

int ls_cuda_softmax_each(cudaStream_t stream, const struct ls_cuda_loss *loss,
                         const struct ls_cuda_classes *of, const float *p, const float *label,
                         float *y)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_classes classes = *of;
    return LS_LAUNCH(softmax_each, ls_blocks((uint64_t)(classes.outer * classes.inner)), LS_THREADS,
                     stream, by, classes, p, label, y);
}

/* ---- Smooth L1 ------------------------------------------------------------------------------- */

__device__ static double inside_of(const struct ls_cuda_distances *of, int64_t i)
{
    return of->inside != NULL ? (double)of->inside[i] : 1;
}

__device__ static double outside_of(const struct ls_cuda_distances *of, int64_t i)
{
    return of->outside != NULL ? (double)of->outside[i] : 1;
}

/* What number i adds to the loss. */
__device__ static double smooth_l1_part(const struct ls_cuda_distances *of, int64_t i)
{
    const double sigma2 = (double)of->sigma2;
    const double apart = inside_of(of, i) * ((double)of->x[i] - (double)of->target[i]);
    const double part =
        fabs(apart) < 1 / sigma2 ? sigma2 * apart * apart / 2 : fabs(apart) - 0.5 / sigma2;
    return outside_of(of, i) * part;
}

__global__ void find_distances(struct ls_cuda_distances of, struct terms terms)
{
    for (LS_EACH(i, of.n))
        terms.term[i] = smooth_l1_part(&of, (int64_t)i);
}

int ls_cuda_smooth_l1(cudaStream_t stream, const struct ls_cuda_loss *loss,
                      const struct ls_cuda_distances *of, void *scratch, double *record)
{
    const struct ls_cuda_distances by = *of;
    const struct terms terms = terms_of(scratch);
    const struct sums sums = {by.n, true, false};
    int code = clear_tally(stream, terms);
    if (code == 0)
        code = LS_LAUNCH(find_distances, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by, terms);
    return code == 0 ? give_sum(stream, loss, terms, sums, record) : code;
}

__global__ void smooth_l1_backward(struct ls_cuda_loss loss, struct ls_cuda_distances of,
                                   const struct ls_batch_numbers *numbers, float *dx)
{
    const double sigma2 = (double)of.sigma2;
    const double factor = (double)loss.scale * ls_loss_scale(&loss, numbers);
    for (LS_EACH(i, of.n)) {
        const double inside = inside_of(&of, (int64_t)i);
        const double apart = inside * ((double)of.x[i] - (double)of.target[i]);
        const double sign = (double)((apart > 0 ? 1 : 0) - (apart < 0 ? 1 : 0));
        const double slope = fabs(apart) < 1 / sigma2 ? sigma2 * apart : sign;
        dx[i] = (float)(factor * outside_of(&of, (int64_t)i) * inside * slope);
    }
}

int ls_cuda_smooth_l1_backward(cudaStream_t stream, const struct ls_cuda_loss *loss,
                               const struct ls_cuda_distances *of,
                               const struct ls_batch_numbers *numbers, float *dx)
{
    const struct ls_cuda_loss by = *loss;
    const struct ls_cuda_distances numbers_of = *of;
    return LS_LAUNCH(smooth_l1_backward, ls_blocks((uint64_t)of->n), LS_THREADS, stream, by,
                     numbers_of, numbers, dx);
}

__global__ void smooth_l1_each(struct ls_cuda_distances of, struct ls_cuda_classes axes, float *y)
{
    for (LS_EACH(i, axes.outer * axes.inner)) {
        double sum = 0;
        for (int64_t c = 0; c < axes.dim; c++)
            sum += smooth_l1_part(&of, place_of(&axes, (int64_t)i, c));
        y[i] = (float)sum;
    }
}

int ls_cuda_smooth_l1_each(cudaStream_t stream, const struct ls_cuda_distances *of,
                           const struct ls_cuda_classes *axes, float *y)
{
    const struct ls_cuda_distances by = *of;
    const struct ls_cuda_classes along = *axes;
    return LS_LAUNCH(smooth_l1_each, ls_blocks((uint64_t)(along.outer * along.inner)), LS_THREADS,
                     stream, by, along, y);
}
