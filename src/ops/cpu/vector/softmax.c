/* Softmax and its gradient.
 *
 * Where classes are contiguous (inner = 1), vectors lie along them and sums are kept in 16 lanes;
 * else vectors lie along the positions behind the classes and each sum runs over the classes in
 * order. Exponentials are taken of many rows at once, so that few of them are short of a vector.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/softmax.h"

#include <math.h>

#include "ops/cpu/vector/lanes.h"
#include "ops/cpu/vector/math.h"

enum {
    POSITIONS = 256, /* whose maxima and sums are kept at a time; a multiple of 16 */
    GROUP = 4096     /* elements of the rows that are worked on at a time, about */
};

static void exponentials(float *x, int64_t n)
{
    LS_ISA_NAME(ls_vector_math).exp(x, x, (size_t)n);
}

/* The largest of n numbers. A NaN is passed over; it comes back in the difference. */
static float largest(const float *x, int64_t n)
{
    float lane[LS_LANES], result = -INFINITY;
    int64_t whole = n - n % LS_LANES;
    for (int l = 0; l < LS_LANES; l++)
        lane[l] = -INFINITY;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (int64_t i = whole; i < n; i++)
        result = x[i] > result ? x[i] : result;
    for (int l = 0; l < LS_LANES; l++)
        result = lane[l] > result ? lane[l] : result;
    return result;
}

static float sum_row(const float *x, int64_t n)
{
    float lane[LS_LANES] = {0};
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += x[i + l];
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += x[i];
    return ls_fold_lanes(lane);
}

static float dot_row(const float *x, const float *y, int64_t n)
{
    float lane[LS_LANES] = {0};
    int64_t whole = n - n % LS_LANES;
    for (int64_t i = 0; i < whole; i += LS_LANES)
        for (int l = 0; l < LS_LANES; l++)
            lane[l] += x[i + l] * y[i + l];
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] += x[i] * y[i];
    return ls_fold_lanes(lane);
}

static void forward_rows(int64_t rows, int64_t classes, const float *x, float *y)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *from = x + r * classes;
        float *to = y + r * classes, maximum = largest(from, classes);
        LS_ELEMENTWISE
        for (int64_t c = 0; c < classes; c++)
            to[c] = from[c] - maximum;
    }
    exponentials(y, rows * classes);
    for (int64_t r = 0; r < rows; r++) {
        float *to = y + r * classes, sum = sum_row(to, classes);
        for (int64_t c = 0; c < classes; c++)
            to[c] /= sum;
    }
}

/* `positions` of the inner ones, from the first of which x and y point. */
static void forward_columns(const struct ls_softmax_shape *shape, int64_t positions, const float *x,
                            float *y)
{
    float maximum[POSITIONS], sum[POSITIONS];
    int64_t inner = shape->inner;
    for (int64_t i = 0; i < positions; i++) {
        maximum[i] = -INFINITY;
        sum[i] = 0;
    }
    for (int64_t c = 0; c < shape->classes; c++)
        for (int64_t i = 0; i < positions; i++)
            maximum[i] = x[c * inner + i] > maximum[i] ? x[c * inner + i] : maximum[i];
    for (int64_t c = 0; c < shape->classes; c++) {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < positions; i++)
            y[c * inner + i] = x[c * inner + i] - maximum[i];
    }
    if (positions == inner)
        exponentials(y, shape->classes * inner);
    else
        for (int64_t c = 0; c < shape->classes; c++)
            exponentials(y + c * inner, positions);
    for (int64_t c = 0; c < shape->classes; c++)
        for (int64_t i = 0; i < positions; i++)
            sum[i] += y[c * inner + i];
    for (int64_t c = 0; c < shape->classes; c++)
        for (int64_t i = 0; i < positions; i++)
            y[c * inner + i] /= sum[i];
}

static void softmax_forward(const struct ls_softmax_shape *shape, const float *x, float *y)
{
    int64_t classes = shape->classes, inner = shape->inner;
    if (inner == 1) {
        int64_t group = GROUP / classes > 1 ? GROUP / classes : 1;
        for (int64_t r = 0; r < shape->outer; r += group) {
            int64_t rows = group < shape->outer - r ? group : shape->outer - r;
            forward_rows(rows, classes, x + r * classes, y + r * classes);
        }
        return;
    }
    for (int64_t o = 0; o < shape->outer; o++)
        for (int64_t i = 0; i < inner; i += POSITIONS) {
            int64_t first = o * classes * inner + i;
            int64_t positions = POSITIONS < inner - i ? POSITIONS : inner - i;
            forward_columns(shape, positions, x + first, y + first);
        }
}

static void backward_row(int64_t classes, const float *restrict y, const float *restrict dy,
                         float *restrict dx)
{
    float dot = dot_row(dy, y, classes);
    for (int64_t c = 0; c < classes; c++)
        dx[c] = (dy[c] - dot) * y[c];
}

static void backward_columns(const struct ls_softmax_shape *shape, int64_t positions,
                             const float *restrict y, const float *restrict dy, float *restrict dx)
{
    float dot[POSITIONS] = {0};
    int64_t inner = shape->inner;
    for (int64_t c = 0; c < shape->classes; c++)
        for (int64_t i = 0; i < positions; i++)
            dot[i] += dy[c * inner + i] * y[c * inner + i];
    for (int64_t c = 0; c < shape->classes; c++)
        for (int64_t i = 0; i < positions; i++)
            dx[c * inner + i] = (dy[c * inner + i] - dot[i]) * y[c * inner + i];
}

static void softmax_backward(const struct ls_softmax_shape *shape, const float *y, const float *dy,
                             float *dx)
{
    int64_t classes = shape->classes, inner = shape->inner;
    for (int64_t o = 0; o < shape->outer; o++) {
        int64_t first = o * classes * inner;
        if (inner == 1) {
            backward_row(classes, y + first, dy + first, dx + first);
            continue;
        }
        for (int64_t i = 0; i < inner; i += POSITIONS) {
            int64_t positions = POSITIONS < inner - i ? POSITIONS : inner - i;
            backward_columns(shape, positions, y + first + i, dy + first + i, dx + first + i);
        }
    }
}

const struct ls_vector_softmax LS_ISA_NAME(ls_vector_softmax) = {
    .forward = softmax_forward,
    .backward = softmax_backward,
};
