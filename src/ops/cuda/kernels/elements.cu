/* See elements.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/elements.h"

#include "base/philox.h"
#include "device/activation.h"
#include "device/exact.h"
#include "ops/cuda/kernels/lanes.h"

/* ---- Functions of one number ----------------------------------------------------------------- */

__global__ void activate(struct ls_activation_attr attr, const float *x, float *y, int64_t n)
{
    for (LS_EACH(i, n))
        y[i] = ls_activation_number(&attr, x[i]);
}

int ls_cuda_activation(cudaStream_t stream, const struct ls_activation_attr *attr, const float *x,
                       float *y, int64_t n)
{
    const struct ls_activation_attr by = *attr;
    return LS_LAUNCH(activate, ls_blocks((uint64_t)n), LS_THREADS, stream, by, x, y, n);
}

__global__ void activate_backward(struct ls_activation_attr attr, const float *dy,
                                  const float *given, float *dx, int64_t n)
{
    for (LS_EACH(i, n))
        dx[i] = ls_activation_slope(&attr, dy[i], given[i]);
}

int ls_cuda_activation_backward(cudaStream_t stream, const struct ls_activation_attr *attr,
                                const float *dy, const float *given, float *dx, int64_t n)
{
    const struct ls_activation_attr by = *attr;
    return LS_LAUNCH(activate_backward, ls_blocks((uint64_t)n), LS_THREADS, stream, by, dy, given,
                     dx, n);
}

__global__ void prelu(struct ls_cuda_axes of, const float *from, const float *sign,
                      const float *slope, float *y)
{
    for (LS_EACH(i, of.outer * of.dim * of.inner)) {
        const float by = slope[i / (uint64_t)of.inner % (uint64_t)of.dim];
        y[i] = sign[i] > 0 ? from[i] : (float)((double)from[i] * (double)by);
    }
}

int ls_cuda_prelu(cudaStream_t stream, const struct ls_cuda_axes *of, const float *from,
                  const float *sign, const float *slope, float *y)
{
    const struct ls_cuda_axes by = *of;
    const uint64_t n = (uint64_t)(by.outer * by.dim * by.inner);
    return LS_LAUNCH(prelu, ls_blocks(n), LS_THREADS, stream, by, from, sign, slope, y);
}

/* The sum of a channel: its points in lanes, then over the samples. All threads of a warp call it.
 */
__device__ static double sum_prelu(const struct ls_cuda_axes *of, const float *dy, const float *x,
                                   int64_t channel, uint64_t lane, bool there)
{
    double sum = 0;
    for (int64_t n = 0; n < of->outer; n++) {
        double mine = 0;
        for (int64_t p = (int64_t)lane; there && p < of->inner; p += LS_CUDA_LANES) {
            const int64_t at = (n * of->dim + channel) * of->inner + p;
            mine += x[at] > 0 ? 0.0 : (double)dy[at] * (double)x[at];
        }
        sum += ls_fold_lanes(mine);
    }
    return sum;
}

__global__ void sum_prelus(struct ls_cuda_axes of, const float *dy, const float *x, float *slope)
{
    const struct ls_lane_group at = ls_find_lane_group();
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.dim, at.groups); r++) {
        const uint64_t channel = r * at.groups + at.group;
        const bool there = channel < (uint64_t)of.dim;
        const double sum = sum_prelu(&of, dy, x, (int64_t)channel, at.lane, there);
        if (there && at.lane == 0)
            slope[channel] = (float)sum;
    }
}

/* One slope for all channels: one group of lanes goes through them. */
__global__ void sum_shared_prelu(struct ls_cuda_axes of, const float *dy, const float *x,
                                 float *slope)
{
    double total = 0;
    for (int64_t c = 0; c < of.dim; c++)
        total += sum_prelu(&of, dy, x, c, threadIdx.x % LS_CUDA_LANES, true);
    if (threadIdx.x == 0)
        *slope = (float)total;
}

int ls_cuda_prelu_slope(cudaStream_t stream, const struct ls_cuda_axes *of, bool shared,
                        const float *dy, const float *x, float *slope)
{
    const struct ls_cuda_axes by = *of;
    if (shared)
        return LS_LAUNCH(sum_shared_prelu, 1u, 32u, stream, by, dy, x, slope);
    return LS_LAUNCH(sum_prelus, ls_lane_blocks((uint64_t)by.dim), LS_THREADS, stream, by, dy, x,
                     slope);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

__global__ void drop(struct ls_cuda_dropout of, const struct ls_batch_numbers *numbers,
                     const float *x, const float *gate, float *y)
{
    const float factor = (float)(1 / (1 - (double)of.ratio));
    const uint32_t least = (uint32_t)ceil((double)of.ratio * 0x1p32);
    const uint64_t first = (uint64_t)numbers->first_ordinal;
    for (LS_EACH(i, of.n)) {
        const float scaled = (float)((double)x[i] * (double)factor);
        if (gate != NULL) {
            y[i] = gate[i] > 0 ? scaled : 0.0F;
            continue;
        }
        const uint64_t run = (uint64_t)of.run, samples = (uint64_t)of.samples;
        const uint64_t element = i / run / samples * run + i % run;
        const uint32_t number = ls_philox_number(of.key, first + i / run % samples, element);
        y[i] = number >= least ? scaled : 0.0F;
    }
}

int ls_cuda_drop(cudaStream_t stream, const struct ls_cuda_dropout *of,
                 const struct ls_batch_numbers *numbers, const float *x, const float *gate,
                 float *y)
{
    const struct ls_cuda_dropout by = *of;
    return LS_LAUNCH(drop, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by, numbers, x, gate, y);
}

/* ---- Of several values ----------------------------------------------------------------------- */

__global__ void combine(struct ls_cuda_eltwise of, float *y, int64_t n)
{
    for (LS_EACH(i, n)) {
        float s = of.x[0][i] * (of.weighted ? of.coefficient[0] : 1);
        for (int k = 1; k < of.inputs; k++) {
            const float x = of.x[k][i];
            if (of.method == LS_ELTWISE_SUM)
                s = s + (of.weighted ? of.coefficient[k] * x : x);
            else
                s = of.method == LS_ELTWISE_PROD ? s * x : s > x ? s : x;
        }
        if (of.gate != NULL)
            s = ls_through_relu(s, of.gate[i], of.slope);
        else if (of.relu)
            s = ls_relu_of(s, of.slope);
        y[i] = s;
    }
}

int ls_cuda_combine(cudaStream_t stream, const struct ls_cuda_eltwise *of, float *y, int64_t n)
{
    const struct ls_cuda_eltwise by = *of;
    return LS_LAUNCH(combine, ls_blocks((uint64_t)n), LS_THREADS, stream, by, y, n);
}

/* Of equal inputs the second is the maximum rather than the first, and any of these two rather than
 * a later one. */
__device__ static int largest_of(const struct ls_cuda_eltwise *of, uint64_t i)
{
    int winner = of->inputs > 1 ? 1 : 0;
    for (int k = 0; k < of->inputs; k++)
        winner = k != 1 && of->x[k][i] > of->x[winner][i] ? k : winner;
    return winner;
}

__global__ void combine_backward(struct ls_cuda_eltwise of, const float *dy, float *dx, int64_t n)
{
    for (LS_EACH(i, n)) {
        float others = 1;
        if (of.method == LS_ELTWISE_PROD) {
            for (int k = 0; k < of.inputs; k++)
                others = k != of.which ? others * of.x[k][i] : others;
            dx[i] = others * dy[i];
        } else if (of.method == LS_ELTWISE_MAX && largest_of(&of, i) != of.which) {
            dx[i] = 0;
        } else {
            const double factor = of.weighted ? (double)of.coefficient[of.which] : 1;
            dx[i] = (float)(factor * (double)dy[i]);
        }
    }
}

int ls_cuda_combine_backward(cudaStream_t stream, const struct ls_cuda_eltwise *of, const float *dy,
                             float *dx, int64_t n)
{
    const struct ls_cuda_eltwise by = *of;
    return LS_LAUNCH(combine_backward, ls_blocks((uint64_t)n), LS_THREADS, stream, by, dy, dx, n);
}

__global__ void scale(struct ls_cuda_axes of, const float *x, const float *factor,
                      const float *bias, float *y)
{
    for (LS_EACH(i, of.outer * of.dim * of.inner)) {
        const uint64_t d = i / (uint64_t)of.inner % (uint64_t)of.dim;
        const float product = x[i] * (factor != NULL ? factor[d] : 1);
        y[i] = bias != NULL ? product + bias[d] : product;
    }
}

int ls_cuda_scale(cudaStream_t stream, const struct ls_cuda_axes *of, const float *x,
                  const float *factor, const float *bias, float *y)
{
    const struct ls_cuda_axes by = *of;
    const uint64_t n = (uint64_t)(by.outer * by.dim * by.inner);
    return LS_LAUNCH(scale, ls_blocks(n), LS_THREADS, stream, by, x, factor, bias, y);
}

/* What lies behind a number of the factor is in lanes, which go on from one place in front of it to
 * the next. */
__global__ void sum_scales(struct ls_cuda_axes of, const float *dy, const float *x, float *dfactor,
                           float *dbias)
{
    const struct ls_lane_group at = ls_find_lane_group();
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.dim, at.groups); r++) {
        const uint64_t d = r * at.groups + at.group;
        const bool there = d < (uint64_t)of.dim;
        double factor = 0, bias = 0;
        for (int64_t o = 0; there && o < of.outer; o++)
            for (int64_t i = (int64_t)at.lane; i < of.inner; i += LS_CUDA_LANES) {
                const int64_t place = (o * of.dim + (int64_t)d) * of.inner + i;
                factor += x != NULL ? (double)dy[place] * (double)x[place] : 0;
                bias += (double)dy[place];
            }
        factor = ls_fold_lanes(factor);
        bias = ls_fold_lanes(bias);
        if (there && at.lane == 0 && dfactor != NULL)
            dfactor[d] = (float)factor;
        if (there && at.lane == 0 && dbias != NULL)
            dbias[d] = (float)bias;
    }
}

int ls_cuda_scale_sums(cudaStream_t stream, const struct ls_cuda_axes *of, const float *dy,
                       const float *x, float *dfactor, float *dbias)
{
    const struct ls_cuda_axes by = *of;
    return LS_LAUNCH(sum_scales, ls_lane_blocks((uint64_t)by.dim), LS_THREADS, stream, by, dy, x,
                     dfactor, dbias);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

__device__ static uint64_t place_in_whole(const struct ls_cuda_part *of, uint64_t i)
{
    uint64_t place = 0, step = 1;
    for (int a = of->rank - 1; a >= 0; step *= (uint64_t)of->whole[a--]) {
        place += (i % (uint64_t)of->part[a] + (uint64_t)of->offset[a]) * step;
        i /= (uint64_t)of->part[a];
    }
    return place;
}

__device__ static uint64_t part_size(const struct ls_cuda_part *of)
{
    uint64_t n = 1;
    for (int a = 0; a < of->rank; a++)
        n *= (uint64_t)of->part[a];
    return n;
}

template <typename T>
__global__ void move_part(struct ls_cuda_part of, bool take, T *whole, T *part)
{
    for (LS_EACH(i, part_size(&of))) {
        T *there = &whole[place_in_whole(&of, i)];
        *(take ? &part[i] : there) = *(take ? there : &part[i]);
    }
}

static int give_part(cudaStream_t stream, const struct ls_cuda_part *of, bool take, void *whole,
                     void *part)
{
    const struct ls_cuda_part by = *of;
    uint64_t n = 1;
    for (int a = 0; a < by.rank; a++)
        n *= (uint64_t)by.part[a];
    if (n == 0)
        return 0;
    if (by.bytes == 2)
        return LS_LAUNCH(move_part<uint16_t>, ls_blocks(n), LS_THREADS, stream, by, take,
                         (uint16_t *)whole, (uint16_t *)part);
    return LS_LAUNCH(move_part<uint32_t>, ls_blocks(n), LS_THREADS, stream, by, take,
                     (uint32_t *)whole, (uint32_t *)part);
}

int ls_cuda_take_part(cudaStream_t stream, const struct ls_cuda_part *of, const void *whole,
                      void *part)
{
    return give_part(stream, of, true, (void *)whole, part);
}

int ls_cuda_put_part(cudaStream_t stream, const struct ls_cuda_part *of, const void *part,
                     void *whole)
{
    return give_part(stream, of, false, whole, (void *)part);
}

__global__ void sum_tiles(int64_t outer, int64_t tiles, int64_t run, const float *dy, float *dx)
{
    for (LS_EACH(i, outer * run)) {
        const int64_t first = (int64_t)i / run * tiles * run + (int64_t)i % run;
        double sum = (double)dy[first];
        for (int64_t t = 1; t < tiles; t++)
            sum += (double)dy[first + t * run];
        dx[i] = (float)sum;
    }
}

int ls_cuda_tile_backward(cudaStream_t stream, int64_t outer, int64_t tiles, int64_t run,
                          const float *dy, float *dx)
{
    return LS_LAUNCH(sum_tiles, ls_blocks((uint64_t)(outer * run)), LS_THREADS, stream, outer,
                     tiles, run, dy, dx);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

__device__ static double term_of(enum ls_reduction method, float x)
{
    const double wide = (double)x;
    return method == LS_REDUCE_ASUM ? fabs(wide) : method == LS_REDUCE_SUMSQ ? wide * wide : wide;
}

/* Chunks of LS_EXACT_CHUNK elements in lanes, each by all threads of a group; chunks are added by
 * halves. The first lane has the sum. All threads of a warp call it with the same n. */
__device__ static double sum_chunk(enum ls_reduction method, const float *x, int64_t n,
                                   uint64_t lane, bool there)
{
    double mine = 0;
    for (int64_t i = (int64_t)lane; there && i < n; i += LS_CUDA_LANES)
        mine += term_of(method, x[i]);
    return ls_fold_lanes(mine);
}

/* As ls_sum_doubles and its like add chunks: the first half is the larger one. */
__device__ static double sum_run(enum ls_reduction method, const float *x, int64_t n, uint64_t lane,
                                 bool there)
{
    double stack[48];
    int64_t chunks[48];
    int top = 0;
    const int64_t all = (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    if (all <= 1)
        return sum_chunk(method, x, n, lane, there);
    /* A walk over the tree of halves, the left one first: what is left to do is on the stack, as a
     * number of chunks; 0 stands for a sum that waits for its right half. */
    double found = 0;
    int64_t at = 0;
    chunks[top++] = all;
    while (top > 0) {
        const int64_t count = chunks[--top];
        if (count == 0) { /* found is the right half of what waits */
            found = stack[top] + found;
            continue;
        }
        if (count < 0) { /* the left half is found: the right one is next */
            stack[top] = found;
            chunks[top++] = 0;
            chunks[top++] = -count;
            continue;
        }
        if (count > 1) {
            chunks[top++] = -(count / 2);
            chunks[top++] = count - count / 2;
            continue;
        }
        const int64_t left = n - at * LS_EXACT_CHUNK;
        found =
            sum_chunk(method, x + at * LS_EXACT_CHUNK,
                      left < (int64_t)LS_EXACT_CHUNK ? left : (int64_t)LS_EXACT_CHUNK, lane, there);
        at++;
    }
    return found;
}

__global__ void reduce_runs(struct ls_cuda_reduction of, const float *x, float *y)
{
    const struct ls_lane_group at = ls_find_lane_group();
    for (uint64_t r = 0; r < ls_lane_rounds((uint64_t)of.count, at.groups); r++) {
        const uint64_t i = r * at.groups + at.group;
        const bool there = i < (uint64_t)of.count;
        const double sum =
            (double)of.coeff * sum_run(of.method, x + (there ? i : UINT64_C(0)) * (uint64_t)of.run,
                                       of.run, at.lane, there);
        if (there && at.lane == 0)
            y[i] = (float)(sum / (of.method == LS_REDUCE_MEAN ? (double)of.run : 1));
    }
}

int ls_cuda_reduce(cudaStream_t stream, const struct ls_cuda_reduction *of, const float *x,
                   float *y)
{
    const struct ls_cuda_reduction by = *of;
    return LS_LAUNCH(reduce_runs, ls_lane_blocks((uint64_t)by.count), LS_THREADS, stream, by, x, y);
}

__global__ void add_reduction(struct ls_cuda_reduction of, const float *x, double *record)
{
    const double sum = sum_run(of.method, x, of.run, threadIdx.x % LS_CUDA_LANES, true);
    if (threadIdx.x == 0) {
        record[0] += (double)of.coeff * sum;
        record[1] += of.uncounted ? 0 : (double)of.run;
    }
}

int ls_cuda_reduce_loss(cudaStream_t stream, const struct ls_cuda_reduction *of, const float *x,
                        double *record)
{
    const struct ls_cuda_reduction by = *of;
    return LS_LAUNCH(add_reduction, 1u, 32u, stream, by, x, record);
}

__global__ void reduce_backward(struct ls_cuda_reduction of, const struct ls_batch_numbers *numbers,
                                const float *dy, const float *x, float *dx)
{
    for (LS_EACH(i, of.count * of.run)) {
        const bool square = of.method == LS_REDUCE_SUMSQ;
        const float value = square || of.method == LS_REDUCE_ASUM ? x[i] : 1;
        double wide = (double)of.coeff;
        if (dy != NULL)
            wide = wide / (of.method == LS_REDUCE_MEAN ? (double)of.run : 1) *
                   (double)dy[i / (uint64_t)of.run];
        else
            wide = wide * (double)of.loss_weight /
                   (of.normalizer < 0 ? 1 : numbers->normalizers[of.normalizer]);
        const float factor = (float)wide;
        dx[i] = square ? 2 * factor * value : value > 0 ? factor : value < 0 ? -factor : 0;
    }
}

int ls_cuda_reduce_backward(cudaStream_t stream, const struct ls_cuda_reduction *of,
                            const struct ls_batch_numbers *numbers, const float *dy, const float *x,
                            float *dx)
{
    const struct ls_cuda_reduction by = *of;
    return LS_LAUNCH(reduce_backward, ls_blocks((uint64_t)(by.count * by.run)), LS_THREADS, stream,
                     by, numbers, dy, x, dx);
}
