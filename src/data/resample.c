/* Resampling; see the header.
 *
 * For each axis a list says which pixels an output is made of, and by which weights; rows are
 * resampled first, to sums of 32 bits, then columns. Pixels beyond the border are those at the
 * border.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/resample.h"

#include <string.h>

static const int32_t ONE = 1 << 14; /* the sum of weights */
enum { SUM_BITS = 28 };             /* of the product of two of them */

/* The filter of one axis: `taps` pixels and weights for each output. */
struct axis {
    int64_t inputs, outputs;
    int64_t taps;
    int32_t *pixel, *weight; /* outputs x taps */
};

/* sin(pi x) for x in [-4, 4]: a polynomial around the next whole number, so that its bits are the
 * same everywhere. */
static double sine_of_pi(double x)
{
    static const double pi = 3.14159265358979323846;
    const int64_t whole = (int64_t)(x + (x < 0 ? -0.5 : 0.5));
    const double y = pi * (x - (double)whole), square = y * y;
    double sum = 1;
    for (int k = 17; k >= 3; k -= 2)
        sum = 1 - square / (double)(k * (k - 1)) * sum;
    return whole % 2 == 0 ? y * sum : -(y * sum);
}

static double lanczos(double x)
{
    static const double pi = 3.14159265358979323846;
    if (x > -1e-9 && x < 1e-9)
        return 1;
    return 4 * sine_of_pi(x) * sine_of_pi(x / 4) / (pi * pi * x * x);
}

/* The weight of a pixel at this distance. */
static double cubic(double x)
{
    static const double a = -0.75;
    x = x < 0 ? -x : x;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t below(double x)
{
    const int64_t whole = (int64_t)x;
    return (double)whole > x ? whole - 1 : whole;
}

/* Weights as integers that add up to ONE: the largest takes what rounding left over. */
static void round_weights(const double *exact, int64_t taps, int32_t *weight)
{
    double sum = 0;
    for (int64_t k = 0; k < taps; k++)
        sum += exact[k];
    int32_t total = 0;
    int64_t largest = 0;
    for (int64_t k = 0; k < taps; k++) {
        weight[k] = (int32_t)below(exact[k] / sum * ONE + 0.5);
        total += weight[k];
        if (weight[k] > weight[largest])
            largest = k;
    }
    weight[largest] += ONE - total;
}

/* Fills in output i of a filter with few taps, the first of which is `first`. */
static void set_taps(const struct axis *axis, int64_t i, int64_t first, const double *exact)
{
    int32_t *pixel = axis->pixel + i * axis->taps;
    for (int64_t k = 0; k < axis->taps; k++) {
        const int64_t at = first + k;
        pixel[k] = (int32_t)(at < 0 ? 0 : at >= axis->inputs ? axis->inputs - 1 : at);
    }
    round_weights(exact, axis->taps, axis->weight + i * axis->taps);
}

/* Output i covers [i m / n, (i + 1) m / n): lengths in units of 1 / n are integers. */
static void cover(const struct axis *axis, int64_t i, double *exact)
{
    const int64_t m = axis->inputs, n = axis->outputs, begin = i * m, end = begin + m;
    const int64_t first = begin / n;
    for (int64_t k = 0; k < axis->taps; k++) {
        const int64_t from = (first + k) * n, to = from + n;
        const int64_t low = from > begin ? from : begin, high = to < end ? to : end;
        exact[k] = high > low ? (double)(high - low) : 0;
    }
    set_taps(axis, i, first, exact);
}

static int64_t taps_of(enum ls_filter filter, int64_t inputs, int64_t outputs, bool shrinks)
{
    switch (filter) {
    case LS_FILTER_NEAREST:
        return 1;
    case LS_FILTER_CUBIC:
        return 4;
    case LS_FILTER_LANCZOS4:
        return 8;
    case LS_FILTER_AREA:
        return shrinks ? inputs / outputs + 2 : 2;
    case LS_FILTER_LINEAR:
        break;
    }
    return 2;
}

static void fill_output(const struct axis *axis, enum ls_filter filter, bool shrinks, int64_t i,
                        double *exact)
{
    const double step = (double)axis->inputs / (double)axis->outputs;
    const double centre = ((double)i + 0.5) * step - 0.5;
    const int64_t before = below(centre);
    const double rest = centre - (double)before;
    if (filter == LS_FILTER_AREA && shrinks) {
        cover(axis, i, exact);
    } else if (filter == LS_FILTER_NEAREST) {
        exact[0] = 1;
        set_taps(axis, i, i * axis->inputs / axis->outputs, exact);
    } else if (filter == LS_FILTER_CUBIC || filter == LS_FILTER_LANCZOS4) {
        const int64_t half = axis->taps / 2;
        for (int64_t k = 0; k < axis->taps; k++)
            exact[k] = filter == LS_FILTER_CUBIC ? cubic((double)(k - half + 1) - rest)
                                                 : lanczos((double)(k - half + 1) - rest);
        set_taps(axis, i, before - half + 1, exact);
    } else {
        double share = rest;
        int64_t first = before;
        if (filter == LS_FILTER_AREA) { /* what of the output lies on the second pixel */
            first = i * axis->inputs / axis->outputs;
            share = (double)(i + 1) - (double)(first + 1) / step;
            share = share <= 0 ? 0 : share - (double)below(share);
        }
        exact[0] = 1 - share;
        exact[1] = share;
        set_taps(axis, i, first, exact);
    }
}

/* One row of a plane to sums of 14 + 8 bits. */
static void resample_row(const struct axis *axis, const uint8_t *in, int32_t *out)
{
    const int32_t *pixel = axis->pixel, *weight = axis->weight;
    for (int64_t i = 0; i < axis->outputs; i++, pixel += axis->taps, weight += axis->taps) {
        int32_t sum = 0;
        for (int64_t k = 0; k < axis->taps; k++)
            sum += in[pixel[k]] * weight[k];
        out[i] = sum;
    }
}

static void resample_column(const struct axis *axis, const int32_t *rows, int64_t width, int64_t i,
                            int64_t *sum, uint8_t *out)
{
    for (int64_t x = 0; x < width; x++)
        sum[x] = (int64_t)1 << (SUM_BITS - 1);
    for (int64_t k = 0; k < axis->taps; k++) {
        const int32_t weight = axis->weight[i * axis->taps + k];
        const int32_t *row = rows + axis->pixel[i * axis->taps + k] * width;
        for (int64_t x = 0; weight != 0 && x < width; x++)
            sum[x] += (int64_t)weight * row[x];
    }
    for (int64_t x = 0; x < width; x++) {
        const int64_t value = sum[x] < 0 ? 0 : sum[x] >> SUM_BITS;
        out[x] = (uint8_t)(value > 255 ? 255 : value);
    }
}

/* Everything that resampling needs besides its input and its output, in one piece. */
struct room {
    struct axis columns, rows;
    double *exact;
    int64_t *sum;
    int32_t *plane; /* the rows of a plane, resampled */
};

static bool make_room(const struct ls_pixel_planes *in, enum ls_filter filter, bool shrinks,
                      int64_t height, int64_t width, struct ls_buffer *scratch, struct room *room)
{
    room->rows = (struct axis){.inputs = in->height, .outputs = height};
    room->columns = (struct axis){.inputs = in->width, .outputs = width};
    room->rows.taps = taps_of(filter, in->height, height, shrinks);
    room->columns.taps = taps_of(filter, in->width, width, shrinks);
    const size_t rows = (size_t)(height * room->rows.taps);
    const size_t columns = (size_t)(width * room->columns.taps);
    const size_t exact = (size_t)(room->rows.taps + room->columns.taps);
    const size_t plane = (size_t)(in->height * width);
    const size_t bytes = (exact + (size_t)width) * sizeof(int64_t) +
                         (2 * rows + 2 * columns + plane) * sizeof(int32_t);
    char *at = ls_buffer_reserve(scratch, bytes, 1);
    if (at == NULL)
        return false;
    room->exact = (double *)(void *)at;
    room->sum = (int64_t *)(void *)(at + exact * sizeof(double));
    room->rows.pixel = (int32_t *)(void *)(room->sum + width);
    room->rows.weight = room->rows.pixel + rows;
    room->columns.pixel = room->rows.weight + rows;
    room->columns.weight = room->columns.pixel + columns;
    room->plane = room->columns.weight + columns;
    return true;
}

int ls_resample(const struct ls_pixel_planes *in, enum ls_filter filter, int64_t height,
                int64_t width, struct ls_buffer *scratch, uint8_t *out, struct ls_problem *problem)
{
    const bool shrinks = height <= in->height && width <= in->width;
    struct room room;
    if (!make_room(in, filter, shrinks, height, width, scratch, &room))
        return ls_problem_set(problem, LOCKSTEP_RESOURCE, NULL, "out of memory");
    for (int64_t i = 0; i < height; i++)
        fill_output(&room.rows, filter, shrinks, i, room.exact);
    for (int64_t i = 0; i < width; i++)
        fill_output(&room.columns, filter, shrinks, i, room.exact);
    for (int64_t c = 0; c < in->count; c++) {
        const uint8_t *plane = in->pixels + c * in->height * in->width;
        for (int64_t y = 0; y < in->height; y++)
            resample_row(&room.columns, plane + y * in->width, room.plane + y * width);
        for (int64_t y = 0; y < height; y++, out += width)
            resample_column(&room.rows, room.plane, width, y, room.sum, out);
    }
    return 0;
}
