/* Rows by number: embeddings, gathering, positions.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/exporter.h"

/* Rows of a table. An index that names none gives NaN here, and is an error there. */
static void embed(struct ls_exporter *x, const struct ls_op *op)
{
    const bool has_bias = ls_onnx_has(op, 2);
    const char *w = ls_onnx_in(x, 0), *index = ls_onnx_as_integers(x, op->input[1]);
    const char *y = LS_EMIT(x, "Gather", has_bias ? NULL : ls_onnx_out(x, 0), w, index);
    ls_onnx_set_int(x->writer, "axis", 0);
    if (has_bias)
        LS_EMIT(x, "Add", ls_onnx_out(x, 0), y, ls_onnx_in(x, 2));
}

/* ---- Bags ------------------------------------------------------------------------------------ */

/* 1 and 0 by index, for those that count and those that do not; NULL: all count. */
static const char *counting(struct ls_exporter *x, const struct ls_op *op)
{
    enum { INDEX = 1, LENGTHS };
    const struct ls_bag_attr *attr = &op->attr.bag;
    struct ls_onnx_writer *writer = x->writer;
    const int rank = op->input[INDEX]->shape.rank;
    const int64_t most = op->input[INDEX]->shape.dim[rank - 1];
    const char *counts = NULL;
    if (attr->has_padding) {
        const char *padding = LS_EMIT(x, "Equal", NULL, ls_onnx_as_integers(x, op->input[INDEX]),
                                      ls_onnx_integer(writer, attr->padding));
        counts = ls_onnx_as_numbers(x, LS_EMIT(x, "Not", NULL, padding), NULL);
    }
    if (ls_onnx_has(op, LENGTHS)) {
        const struct ls_shape row = {.rank = 1, .dim = {most}};
        float *places = ls_onnx_new_numbers(x, (size_t)most);
        for (int64_t i = 0; i < most && places != NULL; i++)
            places[i] = (float)i;
        const char *lengths = ls_onnx_unsqueeze(x, ls_onnx_as_floats(x, op->input[LENGTHS]), NULL,
                                                (int64_t[]){rank - 1}, 1);
        const char *within = LS_EMIT(
            x, "Less", NULL, places != NULL ? ls_onnx_constant(writer, &row, places) : "", lengths);
        within = ls_onnx_as_numbers(x, within, NULL);
        counts = counts != NULL ? LS_EMIT(x, "Mul", NULL, counts, within) : within;
    }
    return counts;
}

static const char *sum_along(struct ls_exporter *x, const char *in, const char *out, int axis,
                             bool kept)
{
    const char *sum =
        LS_EMIT(x, "ReduceSum", out, in, ls_onnx_integers(x->writer, &(int64_t){axis}, 1));
    ls_onnx_set_int(x->writer, "keepdims", kept);
    return sum;
}

static void embed_bag(struct ls_exporter *x, const struct ls_op *op)
{
    enum { TABLE, INDEX, LENGTHS, WEIGHTS };
    const struct ls_bag_attr *attr = &op->attr.bag;
    struct ls_onnx_writer *writer = x->writer;
    const int rank = op->input[INDEX]->shape.rank;
    const int64_t behind = rank;
    const char *index = ls_onnx_as_integers(x, op->input[INDEX]), *counts = counting(x, op);
    if (attr->has_padding) { /* which may name no row */
        const char *padding =
            LS_EMIT(x, "Equal", NULL, index, ls_onnx_integer(writer, attr->padding));
        index = LS_EMIT(x, "Where", NULL, padding, ls_onnx_integer(writer, 0), index);
    }
    const char *rows = LS_EMIT(x, "Gather", NULL, ls_onnx_in(x, TABLE), index);
    ls_onnx_set_int(writer, "axis", 0);
    const char *weights = counts;
    if (ls_onnx_has(op, WEIGHTS))
        weights = counts != NULL ? LS_EMIT(x, "Mul", NULL, counts, ls_onnx_in(x, WEIGHTS))
                                 : ls_onnx_in(x, WEIGHTS);
    if (weights != NULL)
        rows = LS_EMIT(x, "Mul", NULL, rows, ls_onnx_unsqueeze(x, weights, NULL, &behind, 1));
    const char *y = sum_along(x, rows, attr->mean ? NULL : ls_onnx_out(x, 0), rank - 1, false);
    if (!attr->mean)
        return;
    const float most = (float)op->input[INDEX]->shape.dim[rank - 1];
    const char *number = ls_onnx_number(writer, most);
    if (counts != NULL) /* a bag without an index that counts is 0 */
        number = LS_EMIT(x, "Max", NULL, sum_along(x, counts, NULL, rank - 1, true),
                         ls_onnx_number(writer, 1));
    LS_EMIT(x, "Div", ls_onnx_out(x, 0), y, number);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Indices by sample: the axes of samples and of places go to the front, where GatherND takes the
 * first for a batch. */
static void gather_by_sample(struct ls_exporter *x, const struct ls_op *op)
{
    const int rank = op->input[0]->shape.rank, axis = op->attr.gather.axis;
    const int samples = op->input[0]->sample_axis;
    int64_t order[LS_RANK_MAX], back[LS_RANK_MAX], two = 2;
    int count = 2;
    if (samples < 0) {
        ls_onnx_refuse(x, NULL, "what it gathers from has no samples");
        return;
    }
    order[0] = samples;
    order[1] = axis;
    for (int i = 0; i < rank; i++)
        if (i != samples && i != axis)
            order[count++] = i;
    for (int i = 0; i < rank; i++)
        back[order[i]] = i;
    const bool moved = samples != 0 || axis != 1;
    const char *from = ls_onnx_transpose(x, ls_onnx_in(x, 0), NULL, order, rank);
    const char *index = ls_onnx_unsqueeze(x, ls_onnx_as_integers(x, op->input[1]), NULL, &two, 1);
    const char *y = LS_EMIT(x, "GatherND", moved ? NULL : ls_onnx_out(x, 0), from, index);
    ls_onnx_set_int(x->writer, "batch_dims", 1);
    if (moved)
        ls_onnx_transpose(x, y, ls_onnx_out(x, 0), back, rank);
}

static void gather(struct ls_exporter *x, const struct ls_op *op)
{
    if (!op->attr.gather.shared) {
        gather_by_sample(x, op);
        return;
    }
    LS_EMIT(x, "Gather", ls_onnx_out(x, 0), ls_onnx_in(x, 0), ls_onnx_as_integers(x, op->input[1]));
    ls_onnx_set_int(x->writer, "axis", op->attr.gather.axis);
}

static void pick(struct ls_exporter *x, const struct ls_op *op)
{
    LS_EMIT(x, "Gather", ls_onnx_out(x, 0), ls_onnx_in(x, 0), ls_onnx_as_integers(x, op->input[1]));
    ls_onnx_set_int(x->writer, "axis", 0);
}

/* Which rows there are, as booleans for Compress. Of rows that were left out before, both the
 * selector and what it selects from have none in the model. */
static void select_rows(struct ls_exporter *x, const struct ls_op *op)
{
    const char *numbers = ls_onnx_as_floats(x, op->input[0]);
    if (op->input[0]->shape.rank > 1)
        numbers = ls_onnx_reshape(x, numbers, NULL, (int64_t[]){-1}, 1);
    const char *none = LS_EMIT(x, "Equal", NULL, numbers, ls_onnx_number(x->writer, 0));
    LS_EMIT(x, "Not", ls_onnx_out(x, 0), none);
}

/* Rows that are left out keep their places here, and in Caffe and the model they do not. */
static void filter(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_value *in = op->input[0], *selected = ls_onnx_has(op, 1) ? op->input[1] : NULL;
    if (selected == NULL || in->selected == selected) {
        ls_onnx_same(x, ls_onnx_in(x, 0), op->output[0]);
        return;
    }
    LS_EMIT(x, "Compress", ls_onnx_out(x, 0), ls_onnx_in(x, 0), ls_onnx_in(x, 1));
    ls_onnx_set_int(x->writer, "axis", 0);
}

/* Where the segment of each place begins: of all places up to it the last one at which the segment
 * is another than in front, which is a maximum over a triangle. */
static const char *begins(struct ls_exporter *x, const struct ls_value *segments, int64_t places)
{
    const struct ls_shape square = {.rank = 2, .dim = {places, places}};
    const char *numbers = ls_onnx_as_floats(x, segments);
    float *triangle = ls_onnx_new_numbers(x, (size_t)(places * places));
    const int64_t pads[] = {0, 1, 0, 0}, middle = 1;
    for (int64_t i = 0; i < places && triangle != NULL; i++)
        for (int64_t j = 0; j <= i; j++)
            triangle[i * places + j] = (float)j;
    const char *equal = LS_EMIT(x, "Equal", NULL, ls_onnx_cut(x, numbers, NULL, 1, 1, places),
                                ls_onnx_cut(x, numbers, NULL, 1, 0, places - 1));
    const char *other = ls_onnx_as_numbers(x, LS_EMIT(x, "Not", NULL, equal), NULL);
    other = LS_EMIT(x, "Pad", NULL, other, ls_onnx_integers(x->writer, pads, 4),
                    ls_onnx_number(x->writer, 0));
    const char *places_of = triangle != NULL ? ls_onnx_constant(x->writer, &square, triangle) : "";
    const char *all =
        LS_EMIT(x, "Mul", NULL, ls_onnx_unsqueeze(x, other, NULL, &middle, 1), places_of);
    const char *largest = LS_EMIT(x, "ReduceMax", NULL, all);
    ls_onnx_set_ints(x->writer, "axes", (int64_t[]){2}, 1);
    ls_onnx_set_int(x->writer, "keepdims", 0);
    return largest;
}

static void positions(struct ls_exporter *x, const struct ls_op *op)
{
    const int64_t places = op->output[0]->shape.dim[1];
    const struct ls_shape row = {.rank = 2, .dim = {1, places}};
    float *numbers = ls_onnx_new_numbers(x, (size_t)places);
    for (int64_t i = 0; i < places && numbers != NULL; i++)
        numbers[i] = (float)(i + op->attr.offset);
    const char *all = numbers != NULL ? ls_onnx_constant(x->writer, &row, numbers) : "";
    if (ls_onnx_has(op, 0) && places > 1)
        LS_EMIT(x, "Sub", ls_onnx_out(x, 0), all, begins(x, op->input[0], places));
    else
        LS_EMIT(x, "Expand", ls_onnx_out(x, 0), all, ls_onnx_shape_of(x, op->output[0]));
}

const ls_onnx_exporter ls_onnx_lookups[LS_OP_KINDS] = {
    [LS_OP_EMBED] = embed,   [LS_OP_EMBED_BAG] = embed_bag, [LS_OP_GATHER] = gather,
    [LS_OP_PICK] = pick,     [LS_OP_POSITIONS] = positions, [LS_OP_SELECT] = select_rows,
    [LS_OP_FILTER] = filter,
};
