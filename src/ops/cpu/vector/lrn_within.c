/* Local response normalisation within each channel's plane.
 *
 * A plane is height rows of width x block elements, whatever the layout: a neighbour along the row
 * is `block` elements away. The sum over a square is a sum along rows and then over rows, of which
 * the last few are kept in a ring.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/lrn.h"

#include "ops/cpu/vector/chunks.h"
#include "ops/cpu/vector/lrn_parts.h"

/* Sums over squares, row by row. */
struct squares {
    int64_t row;    /* elements of a row */
    int64_t height; /* rows of a plane */
    int64_t step;   /* elements from a neighbour to the next */
    int64_t along;  /* neighbours on each side in the row */
    int64_t rows;   /* and above and below */
    float *line;    /* the row to be pushed, with along * step zeros at both ends */
    float *ring;    /* sums along the last 2 * rows + 1 rows */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct squares make_squares(const struct ls_lrn *lrn)
{
    /* What lies outside the plane adds nothing, so that no window needs to be larger. */
    return (struct squares){.row = lrn->width * lrn->block,
                            .height = lrn->height,
                            .step = lrn->block,
                            .along = smaller(lrn->size / 2, lrn->width - 1),
                            .rows = smaller(lrn->size / 2, lrn->height - 1)};
}

static int64_t squares_scratch(const struct squares *squares)
{
    return squares->row + 2 * squares->along * squares->step +
           (2 * squares->rows + 1) * squares->row;
}

/* Takes its memory from *scratch, which moves on. */
static void place_squares(struct squares *squares, float **scratch)
{
    int64_t margin = squares->along * squares->step;
    memset(*scratch, 0, (size_t)(squares->row + 2 * margin) * sizeof **scratch);
    squares->line = *scratch + margin;
    squares->ring = squares->line + squares->row + margin;
    *scratch += squares_scratch(squares);
}

static float *ring_row(const struct squares *squares, int64_t h)
{
    return squares->ring + h % (2 * squares->rows + 1) * squares->row;
}

/* squares->line is row h. */
static void push_row(const struct squares *squares, int64_t h)
{
    ls_lrn_sum(squares->line - squares->along * squares->step, squares->step,
               2 * squares->along + 1, squares->row, ring_row(squares, h));
}

/* The sums around row h; rows up to h + squares->rows must have been pushed. */
static void sum_rows(const struct squares *squares, int64_t h, float *restrict sum)
{
    int64_t first = h - squares->rows > 0 ? h - squares->rows : 0;
    int64_t last = smaller(h + squares->rows, squares->height - 1);
    memcpy(sum, ring_row(squares, first), (size_t)squares->row * sizeof *sum);
    int64_t r = first + 1;
    for (; r < last; r += 2)
        ls_lrn_add_pair(ring_row(squares, r), ring_row(squares, r + 1), squares->row, sum);
    if (r == last) {
        const float *restrict row = ring_row(squares, r);
        for (int64_t i = 0; i < squares->row; i++)
            sum[i] += row[i];
    }
}

static void push_squares(const struct squares *squares, const float *restrict x, int64_t h)
{
    float *restrict line = squares->line;
    for (int64_t i = 0; i < squares->row; i++)
        line[i] = x[h * squares->row + i] * x[h * squares->row + i];
    push_row(squares, h);
}

/* Rows of s^-beta and 1 / s, for one row after the other. */
struct powers {
    struct squares squares;
    int64_t pushed; /* rows of the plane so far */
    float *sum, *power, *inverse;
};

static void place_powers(struct powers *powers, const struct ls_lrn *lrn, float **scratch)
{
    powers->squares = make_squares(lrn);
    place_squares(&powers->squares, scratch);
    int64_t row = powers->squares.row;
    powers->sum = *scratch;
    powers->power = powers->sum + row;
    powers->inverse = powers->power + row;
    *scratch += 3 * row;
}

/* Those of row h of plane x. */
static void advance_powers(struct powers *powers, const struct ls_lrn *lrn, const float *x,
                           int64_t h)
{
    const struct squares *squares = &powers->squares;
    if (h == 0)
        powers->pushed = 0;
    while (powers->pushed < smaller(h + squares->rows + 1, squares->height))
        push_squares(squares, x, powers->pushed++);
    sum_rows(squares, h, powers->sum);
    ls_lrn_scale(lrn, squares->row, powers->sum);
    ls_lrn_powers(lrn->beta, powers->sum, squares->row, powers->power, powers->inverse);
}

enum { PLANES = 4 }; /* x, y, dy and dx in bf16, as floats */

static int64_t plane_elements(const struct ls_lrn *lrn)
{
    return lrn->height * lrn->width * lrn->block;
}

static int64_t within_scratch(const struct ls_lrn *lrn)
{
    const struct squares squares = make_squares(lrn);
    return 2 * squares_scratch(&squares) + 4 * squares.row +
           (lrn->bf16 ? PLANES * plane_elements(lrn) : 0);
}

static int64_t plane_count(const struct ls_lrn *lrn)
{
    return lrn->samples * ((lrn->channels + lrn->block - 1) / lrn->block);
}

/* Plane `plane` of an array: where it lies, or as a copy. */
static const float *read_plane(const struct ls_lrn *lrn, const void *array, int64_t plane,
                               float *wide)
{
    const int64_t n = plane_elements(lrn);
    if (!lrn->bf16)
        return (const float *)array + plane * n;
    ls_widen_chunk((const uint16_t *)array + plane * n, wide, n);
    return wide;
}

static void forward_plane(const struct ls_lrn *lrn, struct powers *powers, const float *x, float *y)
{
    const int64_t row = powers->squares.row;
    for (int64_t h = 0; h < lrn->height; h++) {
        const float *restrict from = x + h * row, *restrict power = powers->power;
        float *restrict to = y + h * row;
        advance_powers(powers, lrn, x, h);
        for (int64_t i = 0; i < row; i++)
            to[i] = from[i] * power[i];
    }
}

static void within_forward(const struct ls_lrn *lrn, const void *x, void *y, float *scratch)
{
    const int64_t planes = plane_count(lrn), n = plane_elements(lrn);
    struct powers powers;
    place_powers(&powers, lrn, &scratch);
    for (int64_t plane = 0; plane < planes; plane++) {
        float *to = ls_chunk_begin(lrn->bf16, y, plane * n, scratch);
        forward_plane(lrn, &powers, read_plane(lrn, x, plane, scratch + n), to);
        ls_chunk_end(lrn->bf16, y, plane * n, n, to);
    }
}

/* The first part of a row's gradient, dy * s^-beta, and what its neighbours sum, dy * y / s. */
static void own_part(const struct powers *powers, const float *restrict y, const float *restrict dy,
                     float *restrict dx, float *restrict ratio)
{
    const float *restrict power = powers->power, *restrict inverse = powers->inverse;
    for (int64_t i = 0; i < powers->squares.row; i++) {
        dx[i] = dy[i] * power[i];
        ratio[i] = dy[i] * y[i] * inverse[i];
    }
}

static void neighbours_part(const struct squares *ratios, float slope, int64_t h,
                            const float *restrict x, float *restrict sum, float *restrict dx)
{
    sum_rows(ratios, h, sum);
    for (int64_t i = 0; i < ratios->row; i++)
        dx[i] = dx[i] - slope * x[i] * sum[i];
}

/* `line` has room for a row. */
static void backward_plane(const struct ls_lrn *lrn, struct powers *powers,
                           const struct squares *ratios, const float *x, const float *y,
                           const float *dy, float *dx, float *line)
{
    const int64_t row = ratios->row;
    for (int64_t h = 0; h < lrn->height + ratios->rows; h++) {
        int64_t at = h * row, ready = h - ratios->rows;
        if (h < lrn->height) {
            advance_powers(powers, lrn, x, h);
            own_part(powers, y + at, dy + at, dx + at, ratios->line);
            push_row(ratios, h);
        }
        at = ready * row;
        if (ready >= 0)
            neighbours_part(ratios, lrn->slope, ready, x + at, line, dx + at);
    }
}

static void within_backward(const struct ls_lrn *lrn, const void *x, const void *y, const void *dy,
                            void *dx, float *scratch)
{
    const int64_t planes = plane_count(lrn), n = plane_elements(lrn);
    struct powers powers;
    struct squares ratios = make_squares(lrn);
    place_powers(&powers, lrn, &scratch);
    place_squares(&ratios, &scratch);
    float *line = scratch, *wide = line + ratios.row;
    for (int64_t plane = 0; plane < planes; plane++) {
        float *to = ls_chunk_begin(lrn->bf16, dx, plane * n, wide);
        backward_plane(lrn, &powers, &ratios, read_plane(lrn, x, plane, wide + n),
                       read_plane(lrn, y, plane, wide + 2 * n),
                       read_plane(lrn, dy, plane, wide + 3 * n), to, line);
        ls_chunk_end(lrn->bf16, dx, plane * n, n, to);
    }
}

const struct ls_vector_lrn_within LS_ISA_NAME(ls_vector_lrn_within) = {
    .scratch = within_scratch,
    .forward = within_forward,
    .backward = within_backward,
};
