/* Numbers that are put elsewhere, looked up or picked; see device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/random.h"
#include "device/defined.h"
#include "device/label.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* ---- Permute --------------------------------------------------------------------------------- */

struct permute {
    int rank;
    const int64_t *extent;     /* of y */
    int64_t step[LS_RANK_MAX]; /* in x, from one position along an axis of y to the next */
};

static void permute_axis(const struct permute *permute, int axis, const float *x, float **y)
{
    const int64_t step = permute->step[axis];
    if (axis < permute->rank - 1) {
        for (int64_t i = 0; i < permute->extent[axis]; i++)
            permute_axis(permute, axis + 1, x + i * step, y);
        return;
    }
    for (int64_t i = 0; i < permute->extent[axis]; i++)
        (*y)[i] = x[i * step];
    *y += permute->extent[axis];
}

static void permute(const struct ls_defined_call *call)
{
    const struct ls_shape *x = &call->op->input[0]->shape, *y = &call->op->output[0]->shape;
    struct permute permute = {.rank = y->rank, .extent = y->dim};
    float *to = call->out[0];
    for (int i = 0; i < y->rank; i++)
        permute.step[i] = ls_shape_count(x, call->op->attr.order[i] + 1, x->rank);
    if (y->rank == 0)
        *to = *(const float *)call->in[0];
    else
        permute_axis(&permute, 0, call->in[0], &to);
}

/* ---- Windows to columns, and back ------------------------------------------------------------ */

enum { AXES = 3 };

/* x [planes, extents...], y [planes, kernel..., positions...]; axes that are not there have 1. */
struct columns {
    int64_t planes, extent[AXES], positions[AXES], kernel_points, points;
    struct ls_window window;
};

static struct columns columns_of(const struct ls_op *op, const struct ls_value *x,
                                 const struct ls_value *y)
{
    const struct ls_window *window = &op->attr.window;
    struct columns columns = {.extent = {1, 1, 1},
                              .positions = {1, 1, 1},
                              .kernel_points = 1,
                              .points = 1,
                              .window = *window};
    columns.planes = ls_shape_count(&x->shape, 0, 2);
    for (int a = 0; a < window->axes; a++) {
        columns.extent[a] = x->shape.dim[2 + a];
        columns.points *= columns.positions[a] = y->shape.dim[2 + a];
        columns.kernel_points *= window->kernel[a];
    }
    return columns;
}

/* Where position `at` of a window's place `k` is in a plane of x; -1: in the padding. */
static int64_t place_in_plane(const struct columns *columns, int64_t k, int64_t at)
{
    const struct ls_window *window = &columns->window;
    int64_t place = 0, step = 1;
    for (int a = window->axes - 1; a >= 0; a--) {
        const int64_t i = at % columns->positions[a] * window->stride[a] +
                          k % window->kernel[a] * window->dilation[a] - window->pad[a];
        if (i < 0 || i >= columns->extent[a])
            return -1;
        place += i * step;
        step *= columns->extent[a];
        at /= columns->positions[a];
        k /= window->kernel[a];
    }
    return place;
}

static void im2col(const struct ls_defined_call *call)
{
    const struct columns columns = columns_of(call->op, call->op->input[0], call->op->output[0]);
    const int64_t plane = columns.extent[0] * columns.extent[1] * columns.extent[2];
    const float *x = call->in[0];
    float *y = call->out[0];
    for (int64_t p = 0; p < columns.planes; p++, x += plane)
        for (int64_t k = 0; k < columns.kernel_points; k++)
            for (int64_t i = 0; i < columns.points; i++) {
                const int64_t place = place_in_plane(&columns, k, i);
                *y++ = place < 0 ? 0 : x[place];
            }
}

static size_t col2im_scratch(const struct ls_op *op)
{
    const struct ls_shape *dx = &op->output[0]->shape;
    return (size_t)ls_shape_count(dx, 2, dx->rank) * sizeof(double);
}

static void col2im(const struct ls_defined_call *call)
{
    const struct columns columns = columns_of(call->op, call->op->output[0], call->op->input[0]);
    const int64_t plane = columns.extent[0] * columns.extent[1] * columns.extent[2];
    const float *dy = call->in[0];
    float *dx = call->out[0];
    double *sum = call->scratch;
    for (int64_t p = 0; p < columns.planes; p++, dx += plane) {
        memset(sum, 0, (size_t)plane * sizeof *sum);
        for (int64_t k = 0; k < columns.kernel_points; k++)
            for (int64_t i = 0; i < columns.points; i++, dy++) {
                const int64_t place = place_in_plane(&columns, k, i);
                if (place >= 0)
                    sum[place] += (double)*dy;
            }
        for (int64_t i = 0; i < plane; i++)
            dx[i] = (float)sum[i];
    }
}

/* ---- Constants, rows of a table -------------------------------------------------------------- */

static void constant(const struct ls_defined_call *call)
{
    float *y = call->out[0];
    memcpy(y, call->op->attr.constant.numbers, (size_t)size_of(call->op->output[0]) * sizeof *y);
}

static void embed(const struct ls_defined_call *call)
{
    const struct ls_shape *table = &call->op->input[0]->shape;
    const float *w = call->in[0], *index = call->in[1];
    const float *b = call->op->inputs > 2 ? call->in[2] : NULL;
    const int64_t columns = table->dim[1];
    float *y = call->out[0];
    for (int64_t i = 0; i < size_of(call->op->input[1]); i++, y += columns) {
        const int64_t row = ls_label_class(index[i], table->dim[0]);
        for (int64_t c = 0; c < columns; c++)
            y[c] = row < 0 ? NAN : b != NULL ? w[row * columns + c] + b[c] : w[row * columns + c];
    }
}

static size_t embed_weights_scratch(const struct ls_op *op)
{
    const struct ls_shape *dy = &op->input[0]->shape;
    return (size_t)dy->dim[dy->rank - 1] * sizeof(double);
}

/* Rows that several positions name are added up in fp32, position by position. */
static void embed_weights(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_shape *shape = &op->input[0]->shape;
    const int64_t columns = shape->dim[shape->rank - 1], n = size_of(op->input[1]);
    const float *dy = call->in[0], *index = call->in[1];
    float *dw = call->out[0], *db = op->outputs > 1 ? call->out[1] : NULL;
    double *sum = memset(call->scratch, 0, (size_t)columns * sizeof *sum);
    const int64_t rows = dw != NULL ? op->output[0]->shape.dim[0] : 0;
    if (dw != NULL)
        memset(dw, 0, (size_t)size_of(op->output[0]) * sizeof *dw);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = ls_label_class(index[i], rows);
        for (int64_t c = 0; row >= 0 && c < columns; c++)
            dw[row * columns + c] += dy[i * columns + c];
        for (int64_t c = 0; c < columns; c++)
            sum[c] += (double)dy[i * columns + c];
    }
    for (int64_t c = 0; db != NULL && c < columns; c++)
        db[c] = (float)sum[c];
}

/* What a position names, to be sorted: by rows, then by positions. */
struct named {
    int64_t row, position;
};

static bool by_row(const void *a, const void *b, const void *user)
{
    const struct named *one = a, *other = b;
    (void)user;
    return one->row != other->row ? one->row < other->row : one->position < other->position;
}

static size_t embed_rows_scratch(const struct ls_op *op)
{
    return (size_t)size_of(op->input[1]) * sizeof(struct named) + embed_weights_scratch(op);
}

/* The rows of embed_weights that occur, with the same sums. */
static void embed_rows(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_shape *shape = &op->input[0]->shape;
    const int64_t columns = shape->dim[shape->rank - 1], n = size_of(op->input[1]);
    const int64_t most = size_of(op->output[1]), classes = op->attr.embed_rows;
    const float *dy = call->in[0], *index = call->in[1];
    float *rows = call->out[0], *db = op->outputs > 2 ? call->out[2] : NULL;
    int32_t *number = call->out[1];
    struct named *named = call->scratch;
    double *sum = memset(named + n, 0, (size_t)columns * sizeof *sum);
    int64_t count = 0, used = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = ls_label_class(index[i], classes);
        if (row >= 0)
            named[count++] = (struct named){row, i};
        for (int64_t c = 0; db != NULL && c < columns; c++)
            sum[c] += (double)dy[i * columns + c];
    }
    for (int64_t c = 0; db != NULL && c < columns; c++)
        db[c] = (float)sum[c];
    ls_heap_sort(&(struct ls_heap){named, sizeof *named, by_row, NULL}, count);
    for (int64_t i = 0; i < count; i++) {
        const float *from = dy + named[i].position * columns;
        if (i == 0 || named[i].row != named[i - 1].row) {
            number[used++] = (int32_t)named[i].row;
            memset(rows + (used - 1) * columns, 0, (size_t)columns * sizeof *rows);
        }
        float *to = rows + (used - 1) * columns;
        for (int64_t c = 0; c < columns; c++)
            to[c] += from[c];
    }
    memset(rows + used * columns, 0, (size_t)((most - used) * columns) * sizeof *rows);
    for (; used < most; used++)
        number[used] = -1;
}

/* ---- Stochastic pooling ---------------------------------------------------------------------- */

/* A window's part inside the input. */
struct part {
    int64_t begin[AXES], end[AXES];
};

static struct part part_of(const struct ls_op *op, int64_t at)
{
    const struct ls_window *window = &op->attr.pooling.window;
    const struct ls_shape *x = &op->input[0]->shape, *y = &op->output[0]->shape;
    struct part part = {{0, 0, 0}, {1, 1, 1}};
    for (int a = window->axes - 1; a >= 0; a--) {
        const int64_t i = at % y->dim[2 + a] * window->stride[a] - window->pad[a];
        const int64_t end = i + window->kernel[a];
        part.begin[a] = i < 0 ? 0 : i;
        part.end[a] = end < x->dim[2 + a] ? end : x->dim[2 + a];
        at /= y->dim[2 + a];
    }
    return part;
}

/* The numbers of a part one after the other: the sum of them and of their squares, and the first
 * with which the sum reaches `wanted`. What is below 0 counts as 0. */
static void add_part(const struct ls_op *op, const struct part *part, const float *plane,
                     double wanted, double sum[2], int64_t *winner)
{
    const struct ls_window *window = &op->attr.pooling.window;
    const int64_t *extent = op->input[0]->shape.dim + 2;
    const int64_t rows = window->axes > 1 ? extent[1] : 1, row = window->axes > 2 ? extent[2] : 1;
    sum[0] = sum[1] = 0;
    *winner = -1;
    for (int64_t i = part->begin[0]; i < part->end[0]; i++)
        for (int64_t j = part->begin[1]; j < part->end[1]; j++)
            for (int64_t k = part->begin[2]; k < part->end[2]; k++) {
                const int64_t at = (i * rows + j) * row + k;
                const double x = plane[at] < 0 ? 0 : (double)plane[at];
                sum[0] += x;
                sum[1] += x * x;
                if (*winner < 0 && sum[0] >= wanted)
                    *winner = at;
            }
}

static bool is_stochastic(const struct ls_op *op)
{
    return op->attr.pooling.method >= LS_POOL_STOCHASTIC;
}

static void pool_stochastic(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_pooling_attr *attr = &op->attr.pooling;
    const struct ls_value *x = op->input[0], *y = op->output[0];
    const int64_t plane = ls_shape_count(&x->shape, 2, x->shape.rank);
    const int64_t points = ls_shape_count(&y->shape, 2, y->shape.rank);
    const int64_t each = size_of(y) / y->shape.dim[0] * (y->rows > 0 ? y->rows : 1);
    const float *from = call->in[0];
    float *to = call->out[0];
    int32_t *index = op->outputs > 1 ? call->out[1] : NULL;
    for (int64_t i = 0; i < size_of(y); i++) {
        const struct part part = part_of(op, i % points);
        const float *numbers = from + i / points * plane;
        double sum[2];
        int64_t winner;
        add_part(op, &part, numbers, 0, sum, &winner);
        if (attr->method == LS_POOL_EXPECTED) {
            to[i] = sum[0] > 0 ? (float)(sum[1] / sum[0]) : sum[0] <= 0 ? 0 : (float)sum[0];
            continue;
        }
        const uint64_t ordinal = (uint64_t)(call->context->first_ordinal + i / each);
        const double drawn = (double)ls_random_u32(attr->key, ordinal, (uint64_t)(i % each)) + 0.5;
        add_part(op, &part, numbers, drawn * 0x1p-32 * sum[0], sum, &winner);
        to[i] = winner < 0 ? (float)sum[0] : numbers[winner]; /* where there is a NaN */
        if (index != NULL)
            index[i] = (int32_t)winner;
    }
}

/* ---- Rows that are left out ------------------------------------------------------------------ */

static void select_rows(const struct ls_defined_call *call)
{
    const float *x = call->in[0], *selected = call->op->inputs > 1 ? call->in[1] : NULL;
    float *y = call->out[0];
    for (int64_t i = 0; i < size_of(call->op->output[0]); i++)
        y[i] = x[i] != 0 && (selected == NULL || selected[i] != 0) ? 1 : 0;
}

static void filter_rows(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const int64_t rows = op->output[0]->shape.dim[0], each = size_of(op->output[0]) / rows;
    const float *x = call->in[0], *selected = op->inputs > 1 ? call->in[1] : NULL;
    float *y = call->out[0];
    for (int64_t row = 0; row < rows; row++, x += each, y += each) {
        if (selected == NULL || selected[row] != 0)
            memcpy(y, x, (size_t)each * sizeof *y);
        else
            for (int64_t i = 0; i < each; i++)
                y[i] = op->attr.left_out;
    }
}

const struct ls_defined ls_defined_moves[LS_OP_KINDS] = {
    [LS_OP_PERMUTE] = {.run = permute, .moves = true},
    [LS_OP_IM2COL] = {.run = im2col, .moves = true},
    [LS_OP_COL2IM] = {.run = col2im, .scratch = col2im_scratch},
    [LS_OP_CONSTANT] = {.run = constant, .moves = true},
    [LS_OP_SELECT] = {.run = select_rows, .moves = true},
    [LS_OP_FILTER] = {.run = filter_rows, .moves = true},
    [LS_OP_EMBED] = {.run = embed},
    [LS_OP_EMBED_WEIGHTS] = {.run = embed_weights, .scratch = embed_weights_scratch},
    [LS_OP_EMBED_ROWS] = {.run = embed_rows, .scratch = embed_rows_scratch},
    [LS_OP_POOLING] = {.run = pool_stochastic, .accepts = is_stochastic},
};
