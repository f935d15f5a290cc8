/* Bilinear resizing of planes. See resize.h.
 *
 * A row of y: two rows of x are blended, element by element, then the columns of the blend. Its
 * gradient goes the same way back: a row of dy is scattered to columns, from left to right, and
 * added to two rows of dx; rows come from the top to the bottom. No order depends on registers or
 * on the layout.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/resize.h"

#include "ops/cpu/vector/lanes.h"

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

static void resize_forward(const struct ls_resize *resize, const float *x, float *y, float *scratch)
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

static void resize_backward(const struct ls_resize *resize, const float *dy, float *dx,
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

const struct ls_vector_resize LS_ISA_NAME(ls_vector_resize) = {
    .forward = resize_forward,
    .backward = resize_backward,
};
