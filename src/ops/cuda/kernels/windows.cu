/* See windows.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/windows.h"

#include <float.h>
#include <math.h>

#include "device/elementary.h"
#include "ops/cuda/kernels/numbers.h"

/* ---- Pooling --------------------------------------------------------------------------------- */

__device__ static int64_t points_of(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

__device__ static void split(int64_t at, const int64_t extent[3], int64_t place[3])
{
    for (int a = 2; a >= 0; at /= extent[a--])
        place[a] = at % extent[a];
}

/* Where tap k of the window of y is along an axis of x; -1: in the padding. */
__device__ static int64_t tap_of(const struct ls_cuda_pooling *of, int a, int64_t y, int64_t k)
{
    const int64_t x = y * of->stride[a] + k * of->dilation[a] - of->pad[a];
    return x >= 0 && x < of->x[a] ? x : -1;
}

/* 1 / the positions of a window that lie in the padded input, as Caffe counts them. */
__device__ static float share_of(const struct ls_cuda_pooling *of, const int64_t y[3])
{
    double size = 1;
    for (int a = 0; a < 3; a++) {
        const int64_t left = of->x[a] + of->pad[a] - (y[a] * of->stride[a] - of->pad[a]);
        size *= (double)(left < of->kernel[a] ? left : of->kernel[a]);
    }
    return size > 0 ? 1.0F / (float)size : 0;
}

/* A plane: where it begins, and how far its points are apart. */
struct plane {
    int64_t first, step;
};

/* That of element i of [samples, channels, points], as it lies, and the point; in another array the
 * same plane has `other` points. */
__device__ static struct plane plane_of(const struct ls_cuda_pooling *of, int64_t i, int64_t points,
                                        int64_t other, int64_t *point)
{
    struct plane plane = {i / points * other, 1};
    *point = i % points;
    if (of->last) {
        *point = i / of->channels % points;
        plane.first = i / of->channels / points * other * of->channels + i % of->channels;
        plane.step = of->channels;
    }
    return plane;
}

struct window_sum {
    float sum, best;
    int64_t winner;
};

template <typename T>
__device__ static struct window_sum go_through(const struct ls_cuda_pooling *of, const int64_t y[3],
                                               const T *x, int64_t step)
{
    struct window_sum found = {0, -FLT_MAX, -1};
    for (int64_t k0 = 0; k0 < of->kernel[0]; k0++)
        for (int64_t k1 = 0; k1 < of->kernel[1]; k1++)
            for (int64_t k2 = 0; k2 < of->kernel[2]; k2++) {
                const int64_t i0 = tap_of(of, 0, y[0], k0), i1 = tap_of(of, 1, y[1], k1);
                const int64_t i2 = tap_of(of, 2, y[2], k2);
                if (i0 < 0 || i1 < 0 || i2 < 0)
                    continue;
                const int64_t at = (i0 * of->x[1] + i1) * of->x[2] + i2;
                const float number = ls_number(x[at * step]);
                found.sum += number;
                found.winner = number > found.best ? at : found.winner;
                found.best = number > found.best ? number : found.best;
            }
    return found;
}

template <typename T>
__global__ void pool(struct ls_cuda_pooling of, const T *x, T *y, int32_t *index)
{
    const int64_t points = points_of(of.y);
    for (LS_EACH(i, of.samples * of.channels * points)) {
        int64_t point, place[3];
        const struct plane plane = plane_of(&of, (int64_t)i, points, points_of(of.x), &point);
        split(point, of.y, place);
        const struct window_sum found = go_through(&of, place, x + plane.first, plane.step);
        ls_put(&y[i], of.maximum ? found.best : found.sum * share_of(&of, place));
        if (index != NULL)
            index[i] = (int32_t)found.winner;
    }
}

int ls_cuda_pool(cudaStream_t stream, const struct ls_cuda_pooling *of, const void *x, void *y,
                 int32_t *index)
{
    const struct ls_cuda_pooling by = *of;
    const uint64_t n = (uint64_t)(by.samples * by.channels * by.y[0] * by.y[1] * by.y[2]);
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(pool<T>, ls_blocks(n), LS_THREADS, stream, by, (const T *)x, (T *)y,
                         index);
    });
}

/* Whether some tap of the window of y is at x. */
__device__ static bool is_in(const struct ls_cuda_pooling *of, int a, int64_t y, int64_t x)
{
    const int64_t apart = x + of->pad[a] - y * of->stride[a];
    return apart >= 0 && apart % of->dilation[a] == 0 && apart / of->dilation[a] < of->kernel[a];
}

/* The first window of an axis that may reach x, and the one behind the last. */
__device__ static void find_windows(const struct ls_cuda_pooling *of, int a, int64_t x,
                                    int64_t range[2])
{
    const int64_t reach = (of->kernel[a] - 1) * of->dilation[a], at = x + of->pad[a];
    range[0] = at <= reach ? 0 : (at - reach + of->stride[a] - 1) / of->stride[a];
    range[1] = at / of->stride[a] + 1;
    range[1] = range[1] < of->y[a] ? range[1] : of->y[a];
}

/* A position of dx gets what windows give it in their order. */
template <typename T>
__device__ static float collect(const struct ls_cuda_pooling *of, int64_t at, const T *dy,
                                const int32_t *index, struct plane plane)
{
    int64_t x[3], range[3][2], y[3];
    float sum = 0;
    split(at, of->x, x);
    for (int a = 0; a < 3; a++)
        find_windows(of, a, x[a], range[a]);
    for (y[0] = range[0][0]; y[0] < range[0][1]; y[0]++)
        for (y[1] = range[1][0]; y[1] < range[1][1]; y[1]++)
            for (y[2] = range[2][0]; y[2] < range[2][1]; y[2]++) {
                const int64_t point = (y[0] * of->y[1] + y[1]) * of->y[2] + y[2];
                const int64_t o = plane.first + point * plane.step;
                const bool in = is_in(of, 0, y[0], x[0]) && is_in(of, 1, y[1], x[1]) &&
                                is_in(of, 2, y[2], x[2]);
                if (in && of->maximum && index[o] == at)
                    sum += ls_number(dy[o]);
                if (in && !of->maximum)
                    sum += ls_number(dy[o]) * share_of(of, y);
            }
    return sum;
}

template <typename T>
__global__ void pool_backward(struct ls_cuda_pooling of, const T *dy, const int32_t *index, T *dx)
{
    const int64_t points = points_of(of.x);
    for (LS_EACH(i, of.samples * of.channels * points)) {
        int64_t at;
        const struct plane plane = plane_of(&of, (int64_t)i, points, points_of(of.y), &at);
        ls_put(&dx[i], collect(&of, at, dy, index, plane));
    }
}

int ls_cuda_pool_backward(cudaStream_t stream, const struct ls_cuda_pooling *of, const void *dy,
                          const int32_t *index, void *dx)
{
    const struct ls_cuda_pooling by = *of;
    const uint64_t n = (uint64_t)(by.samples * by.channels * by.x[0] * by.x[1] * by.x[2]);
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        return LS_LAUNCH(pool_backward<T>, ls_blocks(n), LS_THREADS, stream, by, (const T *)dy,
                         index, (T *)dx);
    });
}

/* ---- Local response normalisation ------------------------------------------------------------ */

/* The numbers of a pass; y and dy NULL: forward. */
template <typename T> struct lrn_pass {
    struct ls_cuda_lrn of;
    const T *x, *y, *dy;
    const float *scale;
};

/* How far neighbours along an axis are apart. */
__device__ static int64_t column_step(const struct ls_cuda_lrn *of)
{
    return of->last ? of->channels : 1;
}

__device__ static int64_t row_step(const struct ls_cuda_lrn *of)
{
    return of->columns * column_step(of);
}

__device__ static double lrn_places(const struct ls_cuda_lrn *of)
{
    return (double)of->size * (of->within ? (double)of->size : 1.0);
}

/* The sum of terms along an axis around a place, where what is outside is zeros. `term` may be that
 * of squares or of ratios. */
struct lrn_axis {
    int64_t dim, step, place;
};

__device__ static struct lrn_axis lrn_axis_of(const struct ls_cuda_lrn *of, int64_t at,
                                              bool columns)
{
    struct lrn_axis axis = {of->channels, of->last ? 1 : of->rows * of->columns, 0};
    if (columns) {
        axis.dim = of->columns;
        axis.step = column_step(of);
    }
    axis.place = at / axis.step % axis.dim;
    return axis;
}

template <typename T>
__device__ static float sum_squares_along(const struct lrn_pass<T> *pass, int64_t at, bool columns)
{
    const struct lrn_axis axis = lrn_axis_of(&pass->of, at, columns);
    const int64_t half = pass->of.size / 2, reach = half < axis.dim ? half : axis.dim - 1;
    float sum = 0;
    for (int64_t i = -reach; i <= reach; i++) {
        const bool inside = axis.place + i >= 0 && axis.place + i < axis.dim;
        const float number = inside ? ls_number(pass->x[at + i * axis.step]) : 0;
        const float term = number * number;
        sum = i == -reach ? term : sum + term;
    }
    return sum;
}

/* Rows of a plane around a position: the first and the last. */
__device__ static void lrn_rows(const struct ls_cuda_lrn *of, int64_t at, int64_t *row,
                                int64_t range[2])
{
    const int64_t half = of->size / 2;
    *row = at / row_step(of) % of->rows;
    range[0] = *row - half > 0 ? *row - half : 0;
    range[1] = *row + half < of->rows - 1 ? *row + half : of->rows - 1;
}

/* s */
template <typename T> __device__ static float lrn_scale(const struct lrn_pass<T> *pass, int64_t at)
{
    const struct ls_cuda_lrn *of = &pass->of;
    const float factor = (float)((double)of->alpha / lrn_places(of));
    if (pass->scale != NULL)
        return pass->scale[at];
    if (!of->within)
        return of->k + factor * sum_squares_along(pass, at, false);
    int64_t row, range[2];
    float sum = 0;
    lrn_rows(of, at, &row, range);
    for (int64_t r = range[0]; r <= range[1]; r++) {
        const float along = sum_squares_along(pass, at + (r - row) * row_step(of), true);
        sum = r == range[0] ? along : sum + along;
    }
    return 1 + factor * sum;
}

template <typename T>
__device__ static float sum_ratios_along(const struct lrn_pass<T> *pass, int64_t at, bool columns)
{
    const struct lrn_axis axis = lrn_axis_of(&pass->of, at, columns);
    const int64_t half = pass->of.size / 2, reach = half < axis.dim ? half : axis.dim - 1;
    float sum = 0;
    for (int64_t i = -reach; i <= reach; i++) {
        const int64_t there = at + i * axis.step;
        const bool inside = axis.place + i >= 0 && axis.place + i < axis.dim;
        const float term = inside ? ls_number(pass->dy[there]) * ls_number(pass->y[there]) *
                                        (1.0F / lrn_scale(pass, there))
                                  : 0;
        sum = i == -reach ? term : sum + term;
    }
    return sum;
}

template <typename T> __device__ static float sum_ratios(const struct lrn_pass<T> *pass, int64_t at)
{
    const struct ls_cuda_lrn *of = &pass->of;
    if (!of->within)
        return sum_ratios_along(pass, at, false);
    int64_t row, range[2];
    float sum = 0;
    lrn_rows(of, at, &row, range);
    for (int64_t r = range[0]; r <= range[1]; r++) {
        const float along = sum_ratios_along(pass, at + (r - row) * row_step(of), true);
        sum = r == range[0] ? along : sum + along;
    }
    return sum;
}

/* s^-beta, for the exponents that networks have by roots and quotients. */
__device__ static float lrn_power(const struct ls_cuda_lrn *of, float s)
{
    const float inverse = 1.0F / s;
    if (of->beta == 0.75F)
        return inverse * sqrtf(sqrtf(s));
    if (of->beta == 0.5F)
        return inverse * sqrtf(s);
    return of->beta == 1 ? inverse : ls_float_pow(s, -of->beta);
}

__device__ static int64_t lrn_size(const struct ls_cuda_lrn *of)
{
    return of->samples * of->channels * of->rows * of->columns;
}

template <typename T> __global__ void lrn(struct lrn_pass<T> pass, T *y, float *scale)
{
    for (LS_EACH(i, lrn_size(&pass.of))) {
        const float s = lrn_scale(&pass, (int64_t)i);
        ls_put(&y[i], ls_number(pass.x[i]) * lrn_power(&pass.of, s));
        if (scale != NULL)
            scale[i] = s;
    }
}

template <typename T> __global__ void lrn_backward(struct lrn_pass<T> pass, T *dx)
{
    const float slope =
        (float)(2 * ((double)pass.of.alpha / lrn_places(&pass.of)) * (double)pass.of.beta);
    for (LS_EACH(i, lrn_size(&pass.of))) {
        const float own = ls_number(pass.dy[i]) * lrn_power(&pass.of, lrn_scale(&pass, (int64_t)i));
        ls_put(&dx[i], own - slope * ls_number(pass.x[i]) * sum_ratios(&pass, (int64_t)i));
    }
}

int ls_cuda_lrn_forward(cudaStream_t stream, const struct ls_cuda_lrn *of, const void *x, void *y,
                        float *scale)
{
    const struct ls_cuda_lrn by = *of;
    const uint64_t n = (uint64_t)(by.samples * by.channels * by.rows * by.columns);
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        const struct lrn_pass<T> pass = {
            by, (const T *)x, NULL, NULL, NULL
        };
        return LS_LAUNCH(lrn<T>, ls_blocks(n), LS_THREADS, stream, pass, (T *)y, scale);
    });
}

int ls_cuda_lrn_backward(cudaStream_t stream, const struct ls_cuda_lrn *of, const void *x,
                         const void *y, const void *dy, const float *scale, void *dx)
{
    const struct ls_cuda_lrn by = *of;
    const uint64_t n = (uint64_t)(by.samples * by.channels * by.rows * by.columns);
    return ls_by_type(by.bf16, [=](auto number) {
        using T = decltype(number);
        const struct lrn_pass<T> pass = {
            by, (const T *)x, (const T *)y, (const T *)dy, scale
        };
        return LS_LAUNCH(lrn_backward<T>, ls_blocks(n), LS_THREADS, stream, pass, (T *)dx);
    });
}
