/* Pooling loops: plain layout here, blocked layouts from the template.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/pooling.h"

#include <float.h>

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* What to do with a window. */
enum task {
    MAX,
    MAX_INDEXED,
    MAX_BACKWARD,
    MAX_BACKWARD_DISJOINT,
    AVERAGE,
    AVERAGE_BACKWARD,
};

/* Positions from one slice (row) of a plane to the next. */
struct strides {
    int64_t slice, row;
};

/* How many inputs a window covers along each axis. */
struct box {
    int64_t d, h, w;
};

/* x or dx, y or dy, and the winners of one plane. Which of them are written depends on the task;
 * the functions of the table restore what is const. */
struct arrays {
    float *inner, *outer;
    int32_t *index;
};

#define BLOCK   16
#define NAME(x) x##16
#include "ops/cpu/vector/pooling_blocked.h"
#undef BLOCK
#undef NAME

#define BLOCK   8
#define NAME(x) x##8
#include "ops/cpu/vector/pooling_blocked.h"
#undef BLOCK
#undef NAME

/* ---- Plain layout: vectors lie along a row of outputs -----------------------------------------
 */

/* The outputs [*begin, *end) of a row for which element `k` of the window lies in the input. */
static void valid_outputs(const struct ls_pooling_axis *axis, int64_t k, int64_t *begin,
                          int64_t *end)
{
    int64_t low = axis->pad - k, high = axis->in - 1 + axis->pad - k;
    *begin = low > 0 ? (low + axis->stride - 1) / axis->stride : 0;
    *end = high >= 0 ? high / axis->stride + 1 : 0;
    if (*end > axis->out)
        *end = axis->out;
}

/* One element of all windows of a row: x is where output 0 has it, and `position` where in the
 * plane that is. */
static ALWAYS_INLINE void max_element(const float *restrict x, int64_t stride, int64_t outputs,
                                      float *restrict y)
{
    for (int64_t o = 0; o < outputs; o++)
        y[o] = x[o * stride] > y[o] ? x[o * stride] : y[o];
}

static ALWAYS_INLINE void max_element_indexed(const float *restrict x, int32_t stride,
                                              int32_t position, int32_t outputs, float *restrict y,
                                              int32_t *restrict index)
{
    for (int32_t o = 0; o < outputs; o++) {
        float value = x[o * stride], best = y[o];
        int32_t here = position + o * stride, at = index[o];
        index[o] = value > best ? here : at;
        y[o] = value > best ? value : best;
    }
}

/* With strides that the compiler makes vectors of. */
static void max_element_any(const float *x, int64_t stride, int64_t position, int64_t outputs,
                            float *y, int32_t *index)
{
    if (index == NULL && stride == 1)
        max_element(x, 1, outputs, y);
    else if (index == NULL && stride == 2)
        max_element(x, 2, outputs, y);
    else if (index == NULL)
        max_element(x, stride, outputs, y);
    else if (stride == 1)
        max_element_indexed(x, 1, (int32_t)position, (int32_t)outputs, y, index);
    else if (stride == 2)
        max_element_indexed(x, 2, (int32_t)position, (int32_t)outputs, y, index);
    else
        max_element_indexed(x, (int32_t)stride, (int32_t)position, (int32_t)outputs, y, index);
}

static ALWAYS_INLINE void add_element(const float *restrict x, int64_t stride, int64_t outputs,
                                      float *restrict y)
{
    for (int64_t o = 0; o < outputs; o++)
        y[o] += x[o * stride];
}

static void add_element_any(const float *x, int64_t stride, int64_t outputs, float *y)
{
    if (stride == 1)
        add_element(x, 1, outputs, y);
    else if (stride == 2)
        add_element(x, 2, outputs, y);
    else
        add_element(x, stride, outputs, y);
}

/* One row of outputs, (od, oh); x is the plane, y and index the row. */
static void plain_row(const struct ls_windows *windows, bool maximum, int64_t od, int64_t oh,
                      const float *x, float *y, int32_t *index)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    for (int64_t o = 0; o < width->out; o++)
        y[o] = maximum ? -FLT_MAX : 0;
    for (int64_t o = 0; index != NULL && o < width->out; o++)
        index[o] = -1;
    for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
        for (int64_t h = height->begin[oh]; h < height->end[oh]; h++)
            for (int64_t k = 0; k < width->kernel; k++) {
                int64_t begin, end;
                valid_outputs(width, k, &begin, &end);
                if (begin >= end)
                    continue;
                int64_t position =
                    (d * height->in + h) * width->in + k - width->pad + begin * width->stride;
                if (maximum)
                    max_element_any(x + position, width->stride, position, end - begin, y + begin,
                                    index != NULL ? index + begin : NULL);
                else
                    add_element_any(x + position, width->stride, end - begin, y + begin);
            }
}

static void maximum_plain(const struct ls_windows *windows, const float *x, float *y,
                          int32_t *index)
{
    const struct ls_pooling_axis *axis = windows->axis;
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                plain_row(windows, true, od, oh, x, y, index);
                y += axis[2].out;
                index = index != NULL ? index + axis[2].out : NULL;
            }
        x += axis[0].in * axis[1].in * axis[2].in;
    }
}

static void average_plain(const struct ls_windows *windows, const float *x, float *y)
{
    const struct ls_pooling_axis *axis = windows->axis;
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                plain_row(windows, false, od, oh, x, y, NULL);
                for (int64_t o = 0; o < axis[2].out; o++)
                    y[o] *= ls_pooling_factor(axis[0].extent[od], axis[1].extent[oh],
                                              axis[2].extent[o]);
                y += axis[2].out;
            }
        x += axis[0].in * axis[1].in * axis[2].in;
    }
}

/* One addition an output beats masks over whole windows here. */
static void maximum_backward_plain(const struct ls_windows *windows, const float *dy,
                                   const int32_t *index, float *dx)
{
    const struct ls_pooling_axis *axis = windows->axis;
    int64_t in = axis[0].in * axis[1].in * axis[2].in;
    int64_t out = axis[0].out * axis[1].out * axis[2].out;
    memset(dx, 0, (size_t)(windows->planes * in) * sizeof *dx);
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        for (int64_t o = 0; o < out; o++)
            if (index[o] >= 0)
                dx[index[o]] += dy[o];
        dx += in;
        dy += out;
        index += out;
    }
}

/* Gradient of `outputs` windows of a row, the first of which begins at x[-pad]. From the last
 * element of the windows to the first, so that an input gets its shares in the order of outputs. */
static void spread_row(const struct ls_pooling_axis *width, int64_t first, int64_t outputs,
                       const float *restrict share, float *restrict dx)
{
    for (int64_t k = width->kernel; k-- > 0;) {
        int64_t begin, end;
        valid_outputs(width, k, &begin, &end);
        begin = begin > first ? begin : first;
        end = end < first + outputs ? end : first + outputs;
        for (int64_t o = begin; o < end; o++)
            dx[o * width->stride + k - width->pad] += share[o - first];
    }
}

static void average_row_backward(const struct ls_windows *windows, int64_t od, int64_t oh,
                                 const float *dy, float *dx)
{
    enum { CHUNK = 256 };
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    for (int64_t first = 0; first < width->out; first += CHUNK) {
        float share[CHUNK];
        int64_t outputs = width->out - first < CHUNK ? width->out - first : CHUNK;
        for (int64_t o = 0; o < outputs; o++)
            share[o] = dy[first + o] * ls_pooling_factor(depth->extent[od], height->extent[oh],
                                                         width->extent[first + o]);
        for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
            for (int64_t h = height->begin[oh]; h < height->end[oh]; h++)
                spread_row(width, first, outputs, share, dx + (d * height->in + h) * width->in);
    }
}

static void average_backward_plain(const struct ls_windows *windows, const float *dy, float *dx)
{
    const struct ls_pooling_axis *axis = windows->axis;
    int64_t in = axis[0].in * axis[1].in * axis[2].in;
    memset(dx, 0, (size_t)(windows->planes * in) * sizeof *dx);
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                average_row_backward(windows, od, oh, dy, dx);
                dy += axis[2].out;
            }
        dx += in;
    }
}

const struct ls_vector_pooling LS_ISA_NAME(ls_vector_pooling) = {
    .plain = {maximum_plain, maximum_backward_plain, average_plain, average_backward_plain},
    .blocked8 = {maximum8, maximum_backward8, average8, average_backward8},
    .blocked16 = {maximum16, maximum_backward16, average16, average_backward16},
};
