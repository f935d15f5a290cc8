/* Pooling in the plain layout: vectors lie along a row of outputs.
 *
 * Input rows are first copied to lines. A line of a row has one part for each remainder of the
 * positions by the stride, so that element k of neighbouring windows are neighbours in it, and is
 * filled up with what changes nothing where windows hang over. The lines of the rows that a window
 * covers are kept until other rows need their place.
 *
 *     stride 2, pad 1:  row a b c d e  ->  line - b d - ..., a c e - ...
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>

#include "ops/cpu/vector/lanes.h"
#include "ops/cpu/vector/pooling.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

#define BLOCK   16
#define NAME(x) x##16
#include "ops/cpu/vector/pooling_registers.h"

enum { KERNEL_MAX = 32 }; /* wider windows are walked one by one */

enum task { MAX, MAX_INDEXED, AVERAGE };

struct lines {
    int64_t part;          /* elements of a part */
    int64_t line;          /* of a line: stride parts */
    int64_t slices, rows;  /* lines that are kept: for d % slices and h % rows */
    int64_t *held;         /* by line: which row of the plane it has; -1: none */
    float *factor;         /* by output: 1 / size of its window, for rows of one extent */
    int64_t factor_extent; /* that extent (depth x height); -1: none yet */
    float *data;
    float filler;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct lines make_lines(const struct ls_windows *windows)
{
    const struct ls_pooling_axis *axis = windows->axis, *width = &axis[2];
    int64_t outputs = (width->out + LS_LANES - 1) / LS_LANES * LS_LANES;
    struct lines lines = {.slices = smaller(axis[0].kernel, axis[0].in),
                          .rows = smaller(axis[1].kernel, axis[1].in)};
    lines.part = outputs + (width->kernel - 1) / width->stride;
    lines.line = lines.part * smaller(width->stride, width->kernel);
    return lines;
}

static int64_t plain_scratch(const struct ls_windows *windows)
{
    const struct lines lines = make_lines(windows);
    int64_t count = lines.slices * lines.rows;
    if (windows->axis[2].kernel > KERNEL_MAX)
        return 0;
    return 2 * count + lines.part + count * lines.line; /* int64 is two floats */
}

static void place_lines(struct lines *lines, float filler, float *scratch)
{
    int64_t count = lines->slices * lines->rows;
    lines->held = (int64_t *)(void *)scratch; /* scratch is aligned */
    lines->factor = scratch + 2 * count;
    lines->factor_extent = -1;
    lines->data = lines->factor + lines->part; /* not less than whole vectors of outputs */
    lines->filler = filler;
}

static ALWAYS_INLINE void copy_part(const float *restrict row, int64_t stride, int64_t n,
                                    float *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = row[i * stride];
}

/* Part `remainder` of a row: element i is row[i * stride + remainder - pad]. */
static void fill_part(const struct ls_pooling_axis *width, const struct lines *lines,
                      int64_t remainder, const float *row, float *to)
{
    int64_t stride = width->stride, shift = width->pad - remainder;
    int64_t begin = shift > 0 ? (shift + stride - 1) / stride : 0;
    int64_t last = width->in - 1 + shift, end = last >= 0 ? last / stride + 1 : 0;
    begin = smaller(begin, lines->part);
    end = smaller(end, lines->part) > begin ? smaller(end, lines->part) : begin;
    const float *from = row + begin * stride - shift;
    for (int64_t i = 0; i < begin; i++)
        to[i] = lines->filler;
    if (stride == 1)
        copy_part(from, 1, end - begin, to + begin);
    else if (stride == 2)
        copy_part(from, 2, end - begin, to + begin);
    else
        copy_part(from, stride, end - begin, to + begin);
    for (int64_t i = end; i < lines->part; i++)
        to[i] = lines->filler;
}

/* Makes sure that lines hold the rows of a window. */
static void load_lines(const struct ls_windows *windows, struct lines *lines, int64_t od,
                       int64_t oh, const float *plane)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
        for (int64_t h = height->begin[oh]; h < height->end[oh]; h++) {
            int64_t row = d * height->in + h;
            int64_t line = d % lines->slices * lines->rows + h % lines->rows;
            if (lines->held[line] == row)
                continue;
            lines->held[line] = row;
            for (int64_t r = 0; r < smaller(width->stride, width->kernel); r++)
                fill_part(width, lines, r, plane + row * width->in,
                          lines->data + line * lines->line + r * lines->part);
        }
}

/* What a vector of outputs has found: the maximum or sum, and where. */
struct found {
    reg16 value;
    ireg16 at;
};

/* One line of the windows of outputs [first, first + LANES); `position` is that of the row. */
static ALWAYS_INLINE void walk_line(enum task task, const struct ls_pooling_axis *width,
                                    const float *line, int64_t part, int64_t position,
                                    struct found *found)
{
    const float *from = line, *next = line;
    int64_t remainder = 0;
    for (int64_t k = 0; k < width->kernel; k++) {
        reg16 value = load16(from);
        if (task == AVERAGE)
            found->value += value;
        else
            challenge16(value, spread_int16((int32_t)(position + k)), &found->value, &found->at,
                        task == MAX_INDEXED);
        from += part;
        if (++remainder == width->stride) {
            remainder = 0;
            from = ++next;
        }
    }
}

static void store_outputs(float *to, reg16 value, int64_t n)
{
    if (n >= LANES)
        store16(to, value);
    else
        memcpy(to, &value, (size_t)n * sizeof *to);
}

static void store_winners(int32_t *to, ireg16 value, int64_t n)
{
    if (n >= LANES)
        *(ireg16 *)to = value;
    else
        memcpy(to, &value, (size_t)n * sizeof *to);
}

/* The outputs of row (od, oh). */
static ALWAYS_INLINE void walk_row(enum task task, const struct ls_windows *windows,
                                   const struct lines *lines, int64_t od, int64_t oh, float *y,
                                   int32_t *index)
{
    static const int32_t count[LS_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    int64_t first_row = height->begin[oh] % lines->rows;
    /* A single output may have any stride; lanes without an output must not overflow with it. */
    int32_t stride = width->out > 1 ? (int32_t)width->stride : 0;
    for (int64_t first = 0; first < width->out; first += LANES) {
        /* Positions are kept relative to where the window begins; ~begin becomes -1. */
        ireg16 begin =
            *(const ireg16 *)count * stride + (int32_t)(first * width->stride - width->pad);
        struct found found = {spread16(task == AVERAGE ? 0 : -FLT_MAX), ~begin};
        for (int64_t d = depth->begin[od]; d < depth->end[od]; d++) {
            int64_t slice = d % lines->slices * lines->rows, row = first_row;
            for (int64_t h = height->begin[oh]; h < height->end[oh]; h++) {
                const float *line = lines->data + (slice + row) * lines->line + first;
                walk_line(task, width, line, lines->part, (d * height->in + h) * width->in, &found);
                row = row + 1 == lines->rows ? 0 : row + 1;
            }
        }
        if (task == AVERAGE)
            found.value *= load16(lines->factor + first);
        store_outputs(y + first, found.value, width->out - first);
        if (task == MAX_INDEXED)
            store_winners(index + first, found.at + begin, width->out - first);
    }
}

/* The factors of the outputs of a row; neighbouring rows have the same. */
static void set_factors(const struct ls_windows *windows, struct lines *lines, int64_t od,
                        int64_t oh)
{
    const struct ls_pooling_axis *axis = windows->axis;
    int64_t depth = axis[0].extent[od], height = axis[1].extent[oh];
    int64_t extent = depth > 0 && height > 0 ? depth * height : 0;
    if (lines->factor_extent == extent)
        return;
    lines->factor_extent = extent;
    for (int64_t o = 0; o < axis[2].out; o++)
        lines->factor[o] = ls_pooling_factor(extent, 1, axis[2].extent[o]);
}

/* Windows one by one, for wide ones. */
static void walk_windows(enum task task, const struct ls_windows *windows, int64_t od, int64_t oh,
                         const float *plane, float *y, int32_t *index)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    for (int64_t o = 0; o < width->out; o++) {
        float best = -FLT_MAX, sum = 0;
        int64_t at = -1;
        for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
            for (int64_t h = height->begin[oh]; h < height->end[oh]; h++) {
                int64_t row = (d * height->in + h) * width->in;
                for (int64_t i = row + width->begin[o]; i < row + width->end[o]; i++) {
                    sum += plane[i];
                    at = plane[i] > best ? i : at;
                    best = plane[i] > best ? plane[i] : best;
                }
            }
        y[o] = task == AVERAGE ? sum * ls_pooling_factor(depth->extent[od], height->extent[oh],
                                                         width->extent[o])
                               : best;
        if (task == MAX_INDEXED)
            index[o] = (int32_t)at;
    }
}

static ALWAYS_INLINE void walk_planes(enum task task, const struct ls_windows *windows,
                                      const float *x, float *y, int32_t *index, float *scratch)
{
    const struct ls_pooling_axis *axis = windows->axis;
    struct lines lines = make_lines(windows);
    bool wide = axis[2].kernel > KERNEL_MAX;
    if (!wide)
        place_lines(&lines, task == AVERAGE ? 0 : -FLT_MAX, scratch);
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        for (int64_t i = 0; !wide && i < lines.slices * lines.rows; i++)
            lines.held[i] = -1;
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                if (wide) {
                    walk_windows(task, windows, od, oh, x, y, index);
                } else {
                    load_lines(windows, &lines, od, oh, x);
                    if (task == AVERAGE)
                        set_factors(windows, &lines, od, oh);
                    walk_row(task, windows, &lines, od, oh, y, index);
                }
                y += axis[2].out;
                index = task == MAX_INDEXED ? index + axis[2].out : NULL;
            }
        x += axis[0].in * axis[1].in * axis[2].in;
    }
}

static void maximum(const struct ls_windows *windows, const float *x, float *y, int32_t *index,
                    float *scratch)
{
    if (index != NULL)
        walk_planes(MAX_INDEXED, windows, x, y, index, scratch);
    else
        walk_planes(MAX, windows, x, y, NULL, scratch);
}

static void average(const struct ls_windows *windows, const float *x, float *y, float *scratch)
{
    walk_planes(AVERAGE, windows, x, y, NULL, scratch);
}

/* One addition an output beats masks over whole windows here. */
static void maximum_backward(const struct ls_windows *windows, const float *dy,
                             const int32_t *index, float *dx)
{
    const struct ls_pooling_axis *axis = windows->axis;
    int64_t in = axis[0].in * axis[1].in * axis[2].in;
    int64_t out = axis[0].out * axis[1].out * axis[2].out;
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        memset(dx, 0, (size_t)in * sizeof *dx);
        for (int64_t o = 0; o < out; o++)
            if (index[o] >= 0)
                dx[index[o]] += dy[o];
        dx += in;
        dy += out;
        index += out;
    }
}

/* The gradient of a row of outputs; outputs in order, as in the other layouts. */
static void average_row_backward(const struct ls_windows *windows, int64_t od, int64_t oh,
                                 const float *dy, float *dx)
{
    const struct ls_pooling_axis *depth = &windows->axis[0], *height = &windows->axis[1];
    const struct ls_pooling_axis *width = &windows->axis[2];
    for (int64_t o = 0; o < width->out; o++) {
        float share =
            dy[o] * ls_pooling_factor(depth->extent[od], height->extent[oh], width->extent[o]);
        for (int64_t d = depth->begin[od]; d < depth->end[od]; d++)
            for (int64_t h = height->begin[oh]; h < height->end[oh]; h++) {
                float *row = dx + (d * height->in + h) * width->in;
                for (int64_t w = width->begin[o]; w < width->end[o]; w++)
                    row[w] += share;
            }
    }
}

static void average_backward(const struct ls_windows *windows, const float *dy, float *dx)
{
    const struct ls_pooling_axis *axis = windows->axis;
    int64_t in = axis[0].in * axis[1].in * axis[2].in;
    for (int64_t plane = 0; plane < windows->planes; plane++) {
        memset(dx, 0, (size_t)in * sizeof *dx);
        for (int64_t od = 0; od < axis[0].out; od++)
            for (int64_t oh = 0; oh < axis[1].out; oh++) {
                average_row_backward(windows, od, oh, dy, dx);
                dy += axis[2].out;
            }
        dx += in;
    }
}

const struct ls_vector_pooling_plain LS_ISA_NAME(ls_vector_pooling_plain) = {
    .plain = {plain_scratch, maximum, maximum_backward, average, average_backward},
};
