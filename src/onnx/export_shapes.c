/* Shapes, parts and orders of values; sums along axes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/exporter.h"

static void view(struct ls_exporter *x, const struct ls_op *op)
{
    int64_t from[LS_RANK_MAX], to[LS_RANK_MAX];
    const struct ls_shape *in = &op->input[0]->shape, *out = &op->output[0]->shape;
    ls_onnx_dims(x, op->input[0], from);
    ls_onnx_dims(x, op->output[0], to);
    if (in->rank == out->rank && memcmp(from, to, (size_t)in->rank * sizeof *to) == 0)
        ls_onnx_same(x, ls_onnx_in(x, 0), op->output[0]);
    else
        ls_onnx_reshape_as(x, ls_onnx_in(x, 0), ls_onnx_out(x, 0), op->output[0]);
}

static void concat(struct ls_exporter *x, const struct ls_op *op)
{
    const char *parts[LS_OP_VALUES_MAX];
    for (int i = 0; i < op->inputs; i++)
        parts[i] = ls_onnx_in(x, i);
    ls_onnx_emit(x, "Concat", ls_onnx_out(x, 0), parts, (size_t)op->inputs);
    ls_onnx_set_int(x->writer, "axis", op->attr.axis);
}

static void slice(struct ls_exporter *x, const struct ls_op *op)
{
    const char *parts[LS_OP_VALUES_MAX];
    int64_t sizes[LS_OP_VALUES_MAX];
    const int axis = op->attr.axis;
    if (op->input[0]->sample_axis == axis && x->options->batch < 0) {
        ls_onnx_refuse(x, "--batch with the batch of the definition",
                       "it slices the batch, whose size the model would not know");
        return;
    }
    for (int i = 0; i < op->outputs; i++) {
        parts[i] = ls_onnx_out(x, i);
        sizes[i] = op->output[i]->shape.dim[axis];
    }
    const char *inputs[] = {ls_onnx_in(x, 0),
                            ls_onnx_integers(x->writer, sizes, (size_t)op->outputs)};
    ls_onnx_add_node(x->writer, "Split", inputs, 2, parts, (size_t)op->outputs);
    ls_onnx_set_int(x->writer, "axis", axis);
}

static void tile(struct ls_exporter *x, const struct ls_op *op)
{
    int64_t repeats[LS_RANK_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    repeats[op->attr.tile.axis] = op->attr.tile.tiles;
    LS_EMIT(x, "Tile", ls_onnx_out(x, 0), ls_onnx_in(x, 0),
            ls_onnx_integers(x->writer, repeats, (size_t)op->input[0]->shape.rank));
}

static void reduce(struct ls_exporter *x, const struct ls_op *op)
{
    static const char *const types[] = {[LS_REDUCE_SUM] = "ReduceSum",
                                        [LS_REDUCE_ASUM] = "ReduceL1",
                                        [LS_REDUCE_SUMSQ] = "ReduceSumSquare",
                                        [LS_REDUCE_MEAN] = "ReduceMean"};
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    const int rank = op->input[0]->shape.rank;
    const bool sum = attr->method == LS_REDUCE_SUM, scaled = attr->coeff != 1;
    int64_t axes[LS_RANK_MAX];
    const size_t count = (size_t)(rank - attr->axis);
    for (int i = attr->axis; i < rank; i++)
        axes[i - attr->axis] = i;
    const char *out = scaled ? NULL : ls_onnx_out(x, 0);
    const bool kept = op->output[0]->shape.rank == rank;
    const char *y = LS_EMIT(
        x, types[attr->method], kept || op->output[0]->shape.rank == attr->axis ? out : NULL,
        ls_onnx_in(x, 0), sum ? ls_onnx_integers(x->writer, axes, count) : NULL);
    if (!sum) /* version 13 has the axes as an input for sums alone */
        ls_onnx_set_ints(x->writer, "axes", axes, count);
    ls_onnx_set_int(x->writer, "keepdims", kept);
    if (!kept && op->output[0]->shape.rank != attr->axis)
        y = ls_onnx_reshape_as(x, y, out, op->output[0]);
    if (scaled)
        LS_EMIT(x, "Mul", ls_onnx_out(x, 0), y, ls_onnx_number(x->writer, attr->coeff));
}

static void permute(struct ls_exporter *x, const struct ls_op *op)
{
    int64_t order[LS_RANK_MAX];
    for (int i = 0; i < op->input[0]->shape.rank; i++)
        order[i] = op->attr.order[i];
    ls_onnx_transpose(x, ls_onnx_in(x, 0), ls_onnx_out(x, 0), order, op->input[0]->shape.rank);
}

static void crop(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_shape *in = &op->input[0]->shape, *out = &op->output[0]->shape;
    int64_t begin[LS_RANK_MAX], end[LS_RANK_MAX], axes[LS_RANK_MAX];
    size_t count = 0;
    for (int i = 0; i < in->rank; i++) {
        if (in->dim[i] == out->dim[i])
            continue;
        axes[count] = i;
        begin[count] = op->attr.crop.offset[i];
        end[count] = begin[count] + out->dim[i];
        count++;
    }
    if (count == 0)
        ls_onnx_same(x, ls_onnx_in(x, 0), op->output[0]);
    else
        LS_EMIT(x, "Slice", ls_onnx_out(x, 0), ls_onnx_in(x, 0),
                ls_onnx_integers(x->writer, begin, count), ls_onnx_integers(x->writer, end, count),
                ls_onnx_integers(x->writer, axes, count));
}

static void pad(struct ls_exporter *x, const struct ls_op *op)
{
    static const char *const modes[] = {
        [LS_PAD_CONSTANT] = "constant", [LS_PAD_REFLECT] = "reflect", [LS_PAD_EDGE] = "edge"};
    const struct ls_pad_attr *attr = &op->attr.pad;
    const int rank = op->input[0]->shape.rank;
    int64_t pads[2 * LS_RANK_MAX];
    for (int i = 0; i < rank; i++) {
        pads[i] = attr->before[i];
        pads[rank + i] = op->output[0]->shape.dim[i] - op->input[0]->shape.dim[i] - attr->before[i];
    }
    LS_EMIT(x, "Pad", ls_onnx_out(x, 0), ls_onnx_in(x, 0),
            ls_onnx_integers(x->writer, pads, 2 * (size_t)rank),
            attr->mode == LS_PAD_CONSTANT ? ls_onnx_number(x->writer, attr->value) : NULL);
    ls_onnx_set_string(x->writer, "mode", modes[attr->mode]);
}

/* ---- The largest numbers --------------------------------------------------------------------- */

/* Of each sample: places [N, 1, k], or [N, 2, k] with the numbers behind them; else along an axis.
 */
static void argmax(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_argmax_attr *attr = &op->attr.argmax;
    const int axis = attr->axis >= 0 ? attr->axis : 1;
    const char *in = ls_onnx_in(x, 0), *out = ls_onnx_out(x, 0);
    if (attr->axis < 0)
        in = ls_onnx_reshape(
            x, in, NULL,
            (int64_t[]){-1, ls_shape_count(&op->input[0]->shape, 1, op->input[0]->shape.rank)}, 2);
    const char *largest[] = {NULL, NULL}; /* numbers, places */
    if (attr->top_k == 1) { /* of equal numbers the last one, which TopK does not say */
        largest[1] = LS_EMIT(x, "ArgMax", NULL, in);
        ls_onnx_set_int(x->writer, "axis", axis);
        ls_onnx_set_int(x->writer, "select_last_index", 1);
        if (attr->values) {
            largest[0] = LS_EMIT(x, "ReduceMax", NULL, in);
            ls_onnx_set_ints(x->writer, "axes", (int64_t[]){axis}, 1);
        }
    } else {
        const char *inputs[] = {in, ls_onnx_integers(x->writer, &attr->top_k, 1)};
        largest[0] = ls_onnx_name(x->writer, "largest");
        largest[1] = ls_onnx_name(x->writer, "places");
        ls_onnx_add_node(x->writer, "TopK", inputs, 2, largest, 2);
        ls_onnx_set_int(x->writer, "axis", axis);
    }
    const bool both = attr->axis < 0 && attr->values;
    const char *places = both || !attr->values ? ls_onnx_as_numbers(x, largest[1], NULL) : NULL;
    const char *y = both           ? LS_EMIT(x, "Concat", NULL, places, largest[0])
                    : attr->values ? largest[0]
                                   : places;
    if (both)
        ls_onnx_set_int(x->writer, "axis", 1);
    ls_onnx_reshape_as(x, y, out, op->output[0]);
}

/* ---- Values that are given ------------------------------------------------------------------- */

static void constant(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_value *value = op->output[0];
    ls_onnx_same(x, ls_onnx_constant(x->writer, &value->shape, op->attr.constant.numbers), value);
}

static void fill(struct ls_exporter *x, const struct ls_op *op)
{
    const float value =
        op->attr.fill.filler != NULL ? op->attr.fill.filler->value : op->attr.fill.value;
    LS_EMIT(x, "Expand", ls_onnx_out(x, 0), ls_onnx_number(x->writer, value),
            ls_onnx_shape_of(x, op->output[0]));
}

const ls_onnx_exporter ls_onnx_shapes[LS_OP_KINDS] = {
    [LS_OP_VIEW] = view,         [LS_OP_CONCAT] = concat, [LS_OP_SLICE] = slice,
    [LS_OP_TILE] = tile,         [LS_OP_REDUCE] = reduce, [LS_OP_PERMUTE] = permute,
    [LS_OP_CROP] = crop,         [LS_OP_PAD] = pad,       [LS_OP_ARGMAX] = argmax,
    [LS_OP_CONSTANT] = constant, [LS_OP_FILL] = fill,
};
