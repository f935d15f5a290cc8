/* Convolutions over planes: forward, and the gradient by x. See planes.h.
 *
 * Both are products of matrices, some rows and registers of columns of the result at a time. For
 * the gradient by x, that of u is computed plane by plane and folded back:
 *
 *     t[c, i, j, p] = sum over o of w[o, c, i, j] dy[o, p]
 *     du[c, j, q] = sum over i of t[c, i, j, q - (i dilation) Y]
 *     dx[c, r, s] = sum over j of du[c, j, (r + pad) Y + s + pad - j dilation]
 *
 * where what lies outside of y counts as zero.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/planes.h"

#include "ops/cpu/vector/planes_registers.h"

enum { CACHED_FLOATS = 6144 }; /* 24 KiB */

/* out[i, p] = start[i] + the sum over r of weight(i, r) plane[at[r] + p]; or, where it goes on with
 * what other terms gave, out[i, p] for start[i]. */
struct job {
    const float *weights; /* weight(i, r) at i * row + r * step */
    int64_t row, step;
    const float *plane;
    const int64_t *at;
    int64_t terms, rows, columns;
    const float *start; /* NULL: zeros */
    bool goes_on;
    float *out;
    int64_t out_row;
};

INLINE void start_row(const struct job *job, int row, int vectors, size_t some, REGISTER *sum)
{
    const float *out = job->out + row * job->out_row;
    if (!job->goes_on) {
        const REGISTER start = job->start != NULL ? SPREAD(job->start[row]) : ZERO();
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] = start;
        return;
    }
    UNROLL
    for (int v = 0; v < vectors - 1; v++)
        sum[v] = LOAD(out + v * WIDTH);
    sum[vectors - 1] = LOAD_SOME(out + (vectors - 1) * WIDTH, some);
    (void)some; /* of registers of one float */
}

/* `rows` and `vectors` are constants; `some` (1 to WIDTH) lanes of the last register are wanted. */
INLINE void multiply_piece(const struct job *job, int rows, int vectors, size_t some)
{
    REGISTER sum[PIECE_ROWS][PIECE_VECTORS];
    const float *weights = job->weights;
    (void)some; /* of registers of one float */
    UNROLL
    for (int i = 0; i < rows; i++)
        start_row(job, i, vectors, some, sum[i]);
    for (int64_t r = 0; r < job->terms; r++, weights += job->step) {
        const float *from = job->plane + job->at[r];
        REGISTER x[PIECE_VECTORS];
        UNROLL
        for (int v = 0; v < vectors - 1; v++)
            x[v] = LOAD(from + v * WIDTH);
        x[vectors - 1] = LOAD_SOME(from + (vectors - 1) * WIDTH, some);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const REGISTER weight = SPREAD(weights[i * job->row]);
            UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] = FMA(weight, x[v], sum[i][v]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        float *out = job->out + i * job->out_row;
        UNROLL
        for (int v = 0; v < vectors - 1; v++)
            STORE(out + v * WIDTH, sum[i][v]);
        STORE_SOME(out + (vectors - 1) * WIDTH, some, sum[i][vectors - 1]);
    }
}

#define PIECE(rows, vectors)                                                                       \
    FUSED static void piece_##rows##_##vectors(const struct job *job, size_t some)                 \
    {                                                                                              \
        multiply_piece(job, rows, vectors, some);                                                  \
    }
#define PIECES(vectors)                                                                            \
    PIECE(1, vectors)                                                                              \
    PIECE(2, vectors)                                                                              \
    PIECE(3, vectors)                                                                              \
    PIECE(4, vectors)                                                                              \
    PIECE(5, vectors)                                                                              \
    PIECE(6, vectors)
#define NAMES(vectors)                                                                             \
    {                                                                                              \
        piece_1_##vectors, piece_2_##vectors, piece_3_##vectors, piece_4_##vectors,                \
            piece_5_##vectors, piece_6_##vectors                                                   \
    }

PIECES(1)
PIECES(2)
#if WIDTH != 8
PIECES(3)
PIECES(4)
#endif

static void (*const pieces[PIECE_VECTORS][PIECE_ROWS])(const struct job *, size_t) = {
    NAMES(1),
    NAMES(2),
#if WIDTH != 8
    NAMES(3),
    NAMES(4),
#endif
};

/* All rows of `vectors` registers of columns, for `terms` of the terms. */
static void multiply_rows(struct job job, int64_t vectors, size_t some)
{
    const int64_t count = piece_count(job.rows, PIECE_ROWS);
    for (int64_t i = 0; i < count; i++) {
        const int64_t rows = piece_size(job.rows, count, i);
        pieces[vectors - 1][rows - 1](&job, some);
        job.weights += rows * job.row;
        job.out += rows * job.out_row;
        if (job.start != NULL)
            job.start += rows;
    }
}

/* All terms, in as many goes as let what a go reads of the plane stay in the first cache. */
static void multiply_columns(struct job job, int64_t goes, int64_t vectors, size_t some)
{
    const int64_t terms = job.terms;
    for (int64_t i = 0; i < goes; i++) {
        job.terms = piece_size(terms, goes, i);
        multiply_rows(job, vectors, some);
        job.weights += job.terms * job.step;
        job.at += job.terms;
        job.goes_on = true;
    }
}

static void multiply(struct job job, int64_t goes)
{
    const int64_t registers = (job.columns + WIDTH - 1) / WIDTH;
    const int64_t count = piece_count(registers, PIECE_VECTORS);
    for (int64_t i = 0; i < count; i++) {
        const int64_t vectors = piece_size(registers, count, i);
        const bool last = i == count - 1;
        const int64_t some = last ? job.columns - (vectors - 1) * WIDTH : WIDTH;
        multiply_columns(job, goes, vectors, (size_t)some);
        job.plane += vectors * WIDTH;
        job.out += vectors * WIDTH;
        job.columns -= vectors * WIDTH;
    }
}

/* ---- Forward --------------------------------------------------------------------------------- */

static int64_t forward_scratch(const struct ls_planes *planes)
{
    return planes->sample;
}

/* How many goes the terms of some columns take. */
static int64_t count_goes(const struct ls_planes *planes)
{
    const int64_t plane = planes->rows * planes->y[1];
    const int64_t window = (planes->rows - planes->y[0]) * planes->y[1] + PIECE_VECTORS * WIDTH;
    const int64_t floats = planes->in * planes->kernel[1] * (plane < window ? plane : window);
    const int64_t goes = piece_count(floats, CACHED_FLOATS);
    return goes < planes->terms ? goes : planes->terms;
}

static void apply_relu(float *y, int64_t count, float slope)
{
    if (slope == 0) { /* not -0 */
        LS_ELEMENTWISE
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] <= 0 ? 0 : y[i];
    } else {
        LS_ELEMENTWISE
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] <= 0 ? slope * y[i] : y[i];
    }
}

static void forward(const struct ls_planes *planes, const float *x, const float *w,
                    const float *bias, float *y, float *scratch)
{
    const int64_t size = planes->out * planes->positions;
    struct job job = {.weights = w,
                      .row = planes->terms,
                      .step = 1,
                      .plane = scratch,
                      .at = planes->meets,
                      .terms = planes->terms,
                      .rows = planes->out,
                      .columns = planes->positions,
                      .start = bias,
                      .out_row = planes->positions};
    for (int64_t n = 0; n < planes->samples; n++, y += size) {
        unroll(planes, x + n * planes->in * planes->x[0] * planes->x[1], scratch);
        job.out = y;
        multiply(job, count_goes(planes));
        if (planes->relu)
            apply_relu(y, size, planes->slope);
    }
}

/* ---- The gradient by x ----------------------------------------------------------------------- */

/* Scratch: the terms of a plane, each between so many zeros; then du of a plane. */
struct terms {
    float *term, *du;
    int64_t border, pitch, du_pitch;
};

static struct terms place_terms(const struct ls_planes *planes, float *scratch)
{
    struct terms terms = {.term = scratch};
    terms.border = (planes->kernel[0] - 1) * planes->dilation[0] * planes->y[1];
    terms.pitch = (planes->positions + 2 * terms.border + 2 * LS_LANES - 1) / LS_LANES * LS_LANES;
    terms.du_pitch = (planes->rows * planes->y[1] + 2 * LS_LANES - 1) / LS_LANES * LS_LANES;
    if (scratch != NULL)
        terms.du = scratch + planes->window * terms.pitch;
    return terms;
}

static int64_t data_scratch(const struct ls_planes *planes)
{
    const struct terms terms = place_terms(planes, NULL);
    return planes->window * terms.pitch + planes->kernel[1] * terms.du_pitch;
}

FUSED static void fold_rows(const struct ls_planes *planes, const struct terms *terms)
{
    const int64_t columns = planes->kernel[1], step = planes->dilation[0] * planes->y[1];
    const int64_t next = columns * terms->pitch - step; /* from a row of the window to the next */
    for (int64_t j = 0; j < columns; j++) {
        const float *from = terms->term + j * terms->pitch + terms->border;
        float *du = terms->du + j * terms->du_pitch;
        for (int64_t at = 0; at < planes->rows * planes->y[1]; at += WIDTH) {
            REGISTER sum = LOAD(from + at);
            for (int64_t i = 1; i < planes->kernel[0]; i++)
                sum = ADD(sum, LOAD(from + at + i * next));
            STORE(du + at, sum);
        }
    }
}

/* A register of columns of all rows of dx. */
FUSED static void fold_columns(const struct ls_planes *planes, const struct terms *terms,
                               int64_t at, float *dx)
{
    const int64_t width = planes->y[1], columns = planes->kernel[1];
    const size_t some = count_lanes(planes->x[1], at);
    RANGE range[LS_PLANES_WINDOW_MAX];
    (void)some; /* of registers of one float */
    for (int64_t j = 0; j < columns; j++) {
        const int64_t from = at + first_column(planes, j);
        range[j] = make_range(-from, width - from);
    }
    const float *du = terms->du + planes->pad[0] * width + at + planes->pad[1];
    const int64_t next = terms->du_pitch - planes->dilation[1];
    for (int64_t r = 0; r < planes->x[0]; r++, du += width) {
        REGISTER sum = ZERO();
        for (int64_t j = 0; j < columns; j++)
            sum = ADD(sum, LOAD_RANGE(du + j * next, range[j]));
        STORE_SOME(dx + r * planes->x[1], some, sum);
    }
}

static void data(const struct ls_planes *planes, const float *dy, const float *w, float *dx,
                 float *scratch)
{
    const struct terms terms = place_terms(planes, scratch);
    const int64_t plane = planes->x[0] * planes->x[1];
    struct job job = {.row = 1,
                      .step = planes->terms,
                      .at = planes->gradients,
                      .terms = planes->out,
                      .rows = planes->window,
                      .columns = planes->positions,
                      .out = terms.term + terms.border,
                      .out_row = terms.pitch};
    memset(scratch, 0, (size_t)data_scratch(planes) * sizeof *scratch);
    for (int64_t c = 0; c < planes->in; c++)
        for (int64_t n = 0; n < planes->samples; n++) {
            job.plane = dy + n * planes->out * planes->positions;
            job.weights = w + c * planes->window;
            multiply(job, 1);
            fold_rows(planes, &terms);
            for (int64_t at = 0; at < planes->x[1]; at += WIDTH)
                fold_columns(planes, &terms, at, dx + (n * planes->in + c) * plane + at);
        }
}

const struct ls_vector_planes LS_ISA_NAME(ls_vector_planes) = {
    .forward_scratch = forward_scratch,
    .forward = forward,
    .data_scratch = data_scratch,
    .data = data,
};
