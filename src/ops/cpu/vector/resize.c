/* Bilinear resizing of planes. See resize.h.
 *
 * A row of y: two rows of x are blended, element by element, then the columns of the blend. Its
 * gradient goes the same way back: a row of dy is scattered to columns, from left to right, and
 * added to two rows of dx; rows come from the top to the bottom. No order depends on registers or
 * on the layout.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/resize.h"

#include "ops/cpu/vector/chunks.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

static void blend_rows(const float *low, const float *high, float near, float far, int64_t n,
                       float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = near * low[i] + far * high[i];
}

static ALWAYS_INLINE void blend_columns(const struct ls_resize_axis *axis, const float *row,
                                        int64_t block, float *restrict y)
{
    for (int64_t j = 0; j < axis->out; j++) {
        const float *low = row + axis->low[j] * block, *high = row + axis->high[j] * block;
        for (int64_t i = 0; i < block; i++)
            y[j * block + i] = axis->near[j] * low[i] + axis->far[j] * high[i];
    }
}

static ALWAYS_INLINE void forward_plane(const struct ls_resize *resize, int64_t block,
                                        const float *x, float *y, float *row)
{
    const struct ls_resize_axis *rows = &resize->row, *columns = &resize->column;
    int64_t in = columns->in * block;
    for (int64_t i = 0; i < rows->out; i++) {
        blend_rows(x + rows->low[i] * in, x + rows->high[i] * in, rows->near[i], rows->far[i], in,
                   row);
        blend_columns(columns, row, block, y + i * columns->out * block);
    }
}

static void forward_planes(const struct ls_resize *resize, const float *x, float *y, float *scratch)
{
    int64_t block = resize->block;
    for (int64_t p = 0; p < resize->planes; p++) {
        if (block == 1)
            forward_plane(resize, 1, x, y, scratch);
        else if (block == 8)
            forward_plane(resize, 8, x, y, scratch);
        else
            forward_plane(resize, 16, x, y, scratch);
        x += resize->row.in * resize->column.in * block;
        y += resize->row.out * resize->column.out * block;
    }
}

/* Two columns are open at a time, `low` and the one behind it; once the positions have moved on
 * nothing is added to a column any more. */
static ALWAYS_INLINE void scatter_columns(const struct ls_resize_axis *axis, const float *dy,
                                          int64_t block, float *restrict row)
{
    float low[LS_LANES] = {0}, high[LS_LANES] = {0};
    int64_t open = axis->low[0];
    for (int64_t j = 0; j < axis->out; j++) {
        while (open < axis->low[j]) {
            for (int64_t i = 0; i < block; i++) {
                row[open * block + i] = low[i];
                low[i] = high[i];
                high[i] = 0;
            }
            open++;
        }
        for (int64_t i = 0; i < block; i++) {
            low[i] += axis->near[j] * dy[j * block + i];
            high[i] += axis->far[j] * dy[j * block + i]; /* far is 0 where there is none */
        }
    }
    for (int64_t i = 0; i < block; i++)
        row[open * block + i] = low[i];
    for (int64_t i = 0; i < block && open + 1 < axis->in; i++)
        row[(open + 1) * block + i] = high[i];
}

static void add_row(const float *row, float factor, int64_t n, float *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += factor * row[i];
}

static ALWAYS_INLINE void backward_plane(const struct ls_resize *resize, int64_t block,
                                         const float *dy, float *dx, float *row)
{
    const struct ls_resize_axis *rows = &resize->row, *columns = &resize->column;
    int64_t in = columns->in * block;
    memset(dx, 0, (size_t)(rows->in * in) * sizeof *dx);
    for (int64_t i = 0; i < rows->out; i++) {
        memset(row, 0, (size_t)in * sizeof *row);
        scatter_columns(columns, dy + i * columns->out * block, block, row);
        add_row(row, rows->near[i], in, dx + rows->low[i] * in);
        add_row(row, rows->far[i], in, dx + rows->high[i] * in);
    }
}

static void backward_planes(const struct ls_resize *resize, const float *dy, float *dx,
                            float *scratch)
{
    int64_t block = resize->block;
    for (int64_t p = 0; p < resize->planes; p++) {
        if (block == 1)
            backward_plane(resize, 1, dy, dx, scratch);
        else if (block == 8)
            backward_plane(resize, 8, dy, dx, scratch);
        else
            backward_plane(resize, 16, dy, dx, scratch);
        dy += resize->row.out * resize->column.out * block;
        dx += resize->row.in * resize->column.in * block;
    }
}

/* ---- In bf16 --------------------------------------------------------------------------------- */

/* The rows of x that were widened last. */
struct rows {
    float *low, *high;
    int64_t low_row, high_row; /* -1: none */
};

/* Neighbouring rows of y mostly lie between the same rows of x, or the upper one is the next one's
 * lower. */
static void load_rows(struct rows *rows, const uint16_t *x, int64_t width, int64_t low,
                      int64_t high)
{
    if (low == rows->high_row && low != rows->low_row) {
        float *other = rows->low;
        rows->low = rows->high;
        rows->high = other;
        rows->high_row = rows->low_row;
        rows->low_row = low;
    }
    if (low != rows->low_row)
        ls_widen_chunk(x + low * width, rows->low, width);
    if (high != rows->high_row)
        ls_widen_chunk(x + high * width, rows->high, width);
    rows->low_row = low;
    rows->high_row = high;
}

/* The rows of x, and what becomes of them, are floats in scratch. */
static void forward_bf16(const struct ls_resize *resize, const uint16_t *x, uint16_t *y,
                         float *scratch)
{
    const struct ls_resize_axis *axis = &resize->row, *columns = &resize->column;
    const int64_t in = columns->in;
    float *blend = scratch, *line = blend + 3 * in;
    for (int64_t p = 0; p < resize->planes; p++, x += axis->in * in) {
        struct rows rows = {blend + in, blend + 2 * in, -1, -1};
        for (int64_t i = 0; i < axis->out; i++, y += columns->out) {
            load_rows(&rows, x, in, axis->low[i], axis->high[i]);
            blend_rows(rows.low, rows.high, axis->near[i], axis->far[i], in, blend);
            blend_columns(columns, blend, 1, line);
            ls_round_chunk(line, y, columns->out);
        }
    }
}

/* A row of dy, and a plane of dx, which is rounded when it is finished. */
static void backward_bf16(const struct ls_resize *resize, const uint16_t *dy, uint16_t *dx,
                          float *scratch)
{
    const struct ls_resize_axis *axis = &resize->row, *columns = &resize->column;
    const int64_t in = columns->in;
    float *row = scratch, *gradient = row + in, *plane = gradient + columns->out;
    for (int64_t p = 0; p < resize->planes; p++, dx += axis->in * in) {
        memset(plane, 0, (size_t)(axis->in * in) * sizeof *plane);
        for (int64_t i = 0; i < axis->out; i++, dy += columns->out) {
            memset(row, 0, (size_t)in * sizeof *row);
            ls_widen_chunk(dy, gradient, columns->out);
            scatter_columns(columns, gradient, 1, row);
            add_row(row, axis->near[i], in, plane + axis->low[i] * in);
            add_row(row, axis->far[i], in, plane + axis->high[i] * in);
        }
        ls_round_chunk(plane, dx, axis->in * in);
    }
}

static int64_t resize_scratch(const struct ls_resize *resize, bool backward)
{
    const int64_t in = resize->column.in, out = resize->column.out;
    if (!resize->bf16)
        return in * resize->block;
    return backward ? in + out + resize->row.in * in : 3 * in + out;
}

static void resize_forward(const struct ls_resize *resize, const void *x, void *y, float *scratch)
{
    if (resize->bf16)
        forward_bf16(resize, x, y, scratch);
    else
        forward_planes(resize, x, y, scratch);
}

static void resize_backward(const struct ls_resize *resize, const void *dy, void *dx,
                            float *scratch)
{
    if (resize->bf16)
        backward_bf16(resize, dy, dx, scratch);
    else
        backward_planes(resize, dy, dx, scratch);
}

const struct ls_vector_resize LS_ISA_NAME(ls_vector_resize) = {
    .scratch = resize_scratch,
    .forward = resize_forward,
    .backward = resize_backward,
};
