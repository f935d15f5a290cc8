/* Places along an axis that are taken, added or numbered; see device/defined.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "device/defined.h"
#include "device/label.h"

static int64_t size_of(const struct ls_value *value)
{
    return ls_shape_size(&value->shape);
}

/* ---- Gather ---------------------------------------------------------------------------------- */

/* x [outer, places, inner], y [outer, picks, inner]. Numbers are those of the sample. */
struct gather {
    int64_t outer, places, picks, inner;
    int64_t each; /* outer positions that share a list of numbers */
};

static struct gather gather_of(const struct ls_op *op, const struct ls_shape *x,
                               const struct ls_shape *index)
{
    const struct ls_gather_attr *attr = &op->attr.gather;
    struct gather gather = {.outer = ls_shape_count(x, 0, attr->axis),
                            .places = x->dim[attr->axis],
                            .picks = index->dim[index->rank - 1],
                            .inner = ls_shape_count(x, attr->axis + 1, x->rank)};
    gather.each = attr->shared ? gather.outer : gather.outer / index->dim[0];
    return gather;
}

static void gather(const struct ls_defined_call *call)
{
    const struct gather of =
        gather_of(call->op, &call->op->input[0]->shape, &call->op->input[1]->shape);
    const float *x = call->in[0], *index = call->in[1];
    float *y = call->out[0];
    for (int64_t o = 0; o < of.outer; o++, x += of.places * of.inner) {
        const float *number = index + o / of.each * of.picks;
        for (int64_t k = 0; k < of.picks; k++, y += of.inner)
            memcpy(y, x + (int64_t)number[k] * of.inner, (size_t)of.inner * sizeof *y);
    }
}

static size_t gather_backward_scratch(const struct ls_op *op)
{
    const struct ls_shape *dx = &op->output[0]->shape;
    return (size_t)ls_shape_count(dx, op->attr.gather.axis, dx->rank) * sizeof(double);
}

static void gather_backward(const struct ls_defined_call *call)
{
    const struct gather of =
        gather_of(call->op, &call->op->output[0]->shape, &call->op->input[1]->shape);
    const float *dy = call->in[0], *index = call->in[1];
    const int64_t run = of.places * of.inner;
    float *dx = call->out[0];
    double *sum = call->scratch;
    for (int64_t o = 0; o < of.outer; o++, dx += run) {
        const float *number = index + o / of.each * of.picks;
        memset(sum, 0, (size_t)run * sizeof *sum);
        for (int64_t k = 0; k < of.picks; k++, dy += of.inner)
            for (int64_t i = 0; i < of.inner; i++)
                sum[(int64_t)number[k] * of.inner + i] += (double)dy[i];
        for (int64_t i = 0; i < run; i++)
            dx[i] = (float)sum[i];
    }
}

/* ---- Pad ------------------------------------------------------------------------------------- */

struct pad {
    const struct ls_pad_attr *attr;
    const struct ls_shape *x, *y;
};

/* The place of x that is at place i of y along an axis; -1: none. */
static int64_t place_of(const struct pad *pad, int axis, int64_t i)
{
    const int64_t extent = pad->x->dim[axis], place = i - pad->attr->before[axis];
    if (place >= 0 && place < extent)
        return place;
    switch (pad->attr->mode) {
    case LS_PAD_REFLECT:
        return place < 0 ? -place : 2 * (extent - 1) - place;
    case LS_PAD_EDGE:
        return place < 0 ? 0 : extent - 1;
    default:
        return -1;
    }
}

/* Writes the part of y from `axis` on; x is at the part that it comes from, NULL: none. */
static void pad_axis(const struct pad *pad, int axis, const float *x, float **y)
{
    const int64_t step = ls_shape_count(pad->x, axis + 1, pad->x->rank);
    for (int64_t i = 0; i < pad->y->dim[axis]; i++) {
        const int64_t place = x != NULL ? place_of(pad, axis, i) : -1;
        const float *from = place >= 0 ? x + place * step : NULL;
        if (axis < pad->y->rank - 1)
            pad_axis(pad, axis + 1, from, y);
        else
            *(*y)++ = from != NULL ? *from : pad->attr->value;
    }
}

static void pad(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const struct pad pad = {&op->attr.pad, &op->input[0]->shape, &op->output[0]->shape};
    float *y = call->out[0];
    pad_axis(&pad, 0, call->in[0], &y);
}

/* Adds the part of dy from `axis` on to the part of the sums that it goes back to. */
static void pad_axis_backward(const struct pad *pad, int axis, const float **dy, double *sum)
{
    const int64_t step = ls_shape_count(pad->x, axis + 1, pad->x->rank);
    for (int64_t i = 0; i < pad->y->dim[axis]; i++) {
        const int64_t place = sum != NULL ? place_of(pad, axis, i) : -1;
        double *to = place >= 0 ? sum + place * step : NULL;
        if (axis < pad->y->rank - 1)
            pad_axis_backward(pad, axis + 1, dy, to);
        else if (to != NULL)
            *to += (double)*(*dy)++;
        else
            (*dy)++;
    }
}

/* The first axis that has more places in dy; the last one if none has. */
static int first_axis(const struct ls_op *op)
{
    const struct ls_shape *dy = &op->input[0]->shape, *dx = &op->output[0]->shape;
    int axis = 0;
    while (axis < dx->rank - 1 && dx->dim[axis] == dy->dim[axis])
        axis++;
    return axis;
}

static size_t pad_backward_scratch(const struct ls_op *op)
{
    const struct ls_shape *dx = &op->output[0]->shape;
    return (size_t)ls_shape_count(dx, first_axis(op), dx->rank) * sizeof(double);
}

static void pad_backward(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const struct pad pad = {&op->attr.pad, &op->output[0]->shape, &op->input[0]->shape};
    const int axis = first_axis(op);
    const int64_t outer = ls_shape_count(pad.x, 0, axis);
    const int64_t run = ls_shape_count(pad.x, axis, pad.x->rank);
    const float *dy = call->in[0];
    float *dx = call->out[0];
    double *sum = call->scratch;
    for (int64_t o = 0; o < outer; o++, dx += run) {
        memset(sum, 0, (size_t)run * sizeof *sum);
        pad_axis_backward(&pad, axis, &dy, sum);
        for (int64_t i = 0; i < run; i++)
            dx[i] = (float)sum[i];
    }
}

/* ---- Positions ------------------------------------------------------------------------------- */

static void positions(const struct ls_defined_call *call)
{
    const struct ls_op *op = call->op;
    const float *segment = op->inputs > 0 ? call->in[0] : NULL;
    const int64_t places = op->output[0]->shape.dim[1];
    float *y = call->out[0];
    for (int64_t i = 0, count = 0; i < size_of(op->output[0]); i++, count++) {
        if (i % places == 0)
            count = call->context->position;
        else if (segment != NULL && segment[i] != segment[i - 1])
            count = 0;
        y[i] = (float)(op->attr.offset + count);
    }
}

/* ---- Bags of rows ---------------------------------------------------------------------------- */

/* The inputs of an op of bags; `lengths` and `weights` may be NULL. */
struct bags {
    const struct ls_bag_attr *attr;
    int64_t bags, length; /* indices of a bag, those that do not count among them */
    int64_t rows, columns;
    const float *index, *lengths, *weights;
};

/* `first`: which input the index is. */
static struct bags bags_of(const struct ls_defined_call *call, int first, int64_t columns)
{
    const struct ls_op *op = call->op;
    const struct ls_shape *index = &op->input[first]->shape;
    const int64_t length = index->dim[index->rank - 1];
    return (struct bags){.attr = &op->attr.bag,
                         .bags = ls_shape_size(index) / length,
                         .length = length,
                         .columns = columns,
                         .index = call->in[first],
                         .lengths = op->inputs > first + 1 ? call->in[first + 1] : NULL,
                         .weights = op->inputs > first + 2 ? call->in[first + 2] : NULL};
}

/* Whether entry l of a bag counts. */
static bool counts(const struct bags *bags, int64_t bag, int64_t l)
{
    const struct ls_bag_attr *attr = bags->attr;
    if (bags->lengths != NULL && !((float)l < truncf(bags->lengths[bag])))
        return false;
    return !ls_label_ignored(bags->index[bag * bags->length + l], attr->has_padding, attr->padding);
}

/* What sums of a bag are divided by. */
static double divisor_of(const struct bags *bags, int64_t bag)
{
    int64_t count = 0;
    for (int64_t l = 0; bags->attr->mean && l < bags->length; l++)
        count += counts(bags, bag, l);
    return count > 0 ? (double)count : 1;
}

static double weight_of(const struct bags *bags, int64_t bag, int64_t l)
{
    return bags->weights != NULL ? (double)bags->weights[bag * bags->length + l] : 1;
}

/* The row of the table that entry l of a bag names; NULL: none. */
static const float *row_of(const struct bags *bags, const struct ls_value *table, const float *w,
                           int64_t bag, int64_t l)
{
    const int64_t row = ls_label_class(bags->index[bag * bags->length + l], table->shape.dim[0]);
    return row < 0 ? NULL : w + row * bags->columns;
}

static size_t embed_bag_scratch(const struct ls_op *op)
{
    return (size_t)op->input[0]->shape.dim[1] * sizeof(double);
}

static void embed_bag(const struct ls_defined_call *call)
{
    const struct ls_value *table = call->op->input[0];
    const int64_t columns = table->shape.dim[1];
    const struct bags bags = bags_of(call, 1, columns);
    float *y = call->out[0];
    double *sum = call->scratch;
    for (int64_t bag = 0; bag < bags.bags; bag++, y += columns) {
        const double divisor = divisor_of(&bags, bag);
        memset(sum, 0, (size_t)columns * sizeof *sum);
        for (int64_t l = 0; l < bags.length; l++) {
            if (!counts(&bags, bag, l))
                continue;
            const float *row = row_of(&bags, table, call->in[0], bag, l);
            const double weight = weight_of(&bags, bag, l);
            for (int64_t c = 0; c < columns; c++)
                sum[c] += row != NULL ? weight * (double)row[c] : (double)NAN;
        }
        for (int64_t c = 0; c < columns; c++)
            y[c] = (float)(sum[c] / divisor);
    }
}

/* in: dy, index, (lengths), (weights). */
static void embed_bag_rows(const struct ls_defined_call *call)
{
    const struct ls_shape *dy = &call->op->input[0]->shape;
    const int64_t columns = dy->dim[dy->rank - 1];
    const struct bags bags = bags_of(call, 1, columns);
    const float *from = call->in[0];
    float *to = call->out[0];
    for (int64_t bag = 0; bag < bags.bags; bag++, from += columns) {
        const double divisor = divisor_of(&bags, bag);
        for (int64_t l = 0; l < bags.length; l++, to += columns) {
            const bool counted = counts(&bags, bag, l);
            const double weight = weight_of(&bags, bag, l);
            for (int64_t c = 0; c < columns; c++)
                to[c] = counted ? (float)(weight * (double)from[c] / divisor) : 0;
        }
    }
}

/* in: dy, w, index, (lengths). */
static void embed_bag_factors(const struct ls_defined_call *call)
{
    const struct ls_value *table = call->op->input[1];
    const int64_t columns = table->shape.dim[1];
    const struct bags bags = bags_of(call, 2, columns);
    const float *dy = call->in[0];
    float *to = call->out[0];
    for (int64_t bag = 0; bag < bags.bags; bag++, dy += columns)
        for (int64_t l = 0; l < bags.length; l++) {
            const bool counted = counts(&bags, bag, l);
            const float *row = counted ? row_of(&bags, table, call->in[1], bag, l) : NULL;
            double sum = counted && row == NULL ? (double)NAN : 0;
            for (int64_t c = 0; row != NULL && c < columns; c++)
                sum += (double)dy[c] * (double)row[c];
            *to++ = (float)sum;
        }
}

const struct ls_defined ls_defined_sequences[LS_OP_KINDS] = {
    [LS_OP_GATHER] = {.run = gather, .moves = true},
    [LS_OP_GATHER_BACKWARD] = {.run = gather_backward, .scratch = gather_backward_scratch},
    [LS_OP_PAD] = {.run = pad, .moves = true},
    [LS_OP_PAD_BACKWARD] = {.run = pad_backward, .scratch = pad_backward_scratch},
    [LS_OP_POSITIONS] = {.run = positions, .moves = true},
    [LS_OP_EMBED_BAG] = {.run = embed_bag, .scratch = embed_bag_scratch},
    [LS_OP_EMBED_BAG_ROWS] = {.run = embed_bag_rows},
    [LS_OP_EMBED_BAG_FACTORS] = {.run = embed_bag_factors},
};
