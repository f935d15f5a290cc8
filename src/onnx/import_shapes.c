/* Import: other shapes, orders and parts of the same numbers; means and sums along axes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "onnx/import_view.h"

static int reshape(struct ls_importer *x, struct ls_onnx_value *in, const struct ls_shape *to)
{
    struct ls_onnx_view view;
    if (to->rank == 0 || !ls_shape_valid(to, false) ||
        ls_shape_size(to) != ls_shape_size(&in->shape))
        return ls_import_cannot(x, NULL, "its shape has not as many numbers as its input");
    if (ls_shape_equal(&in->shape, to))
        return ls_import_hand_on(x, in, 0);
    if (!x->writing && ls_view_of(in, &view) && ls_view_reshape(&view, to))
        return ls_import_view(x, 0, &view, to);
    LS_TRY(ls_import_write(x, in));
    if (to->dim[0] % in->shape.dim[0] != 0)
        return ls_import_cannot(x, NULL, "it would mix the samples of a batch");
    return ls_import_result(x, 0, ls_import_reshaped(x, in->top, &in->shape, to), to);
}

int ls_import_shape_of_reshape(struct ls_importer *x, const struct ls_onnx_value *in,
                               struct ls_shape *to)
{
    const int64_t *dims;
    int64_t count, rest = -1, size = 1;
    *to = (struct ls_shape){0};
    LS_TRY(ls_import_integers(x, "shape", 1, &dims, &count));
    if (count < 1 || count > LS_RANK_MAX)
        return ls_import_cannot(x, NULL, "a shape of 1 to %d axes is read", LS_RANK_MAX);
    const bool zero = ls_import_integer(x, "allowzero", 0) != 0;
    to->rank = (int)count;
    for (int i = 0; i < to->rank; i++) {
        to->dim[i] = dims[i] == 0 && !zero && i < in->shape.rank ? in->shape.dim[i] : dims[i];
        if (to->dim[i] == -1 && rest < 0)
            rest = i;
        else if (to->dim[i] < 1 || to->dim[i] > ls_shape_size(&in->shape) / size)
            return ls_import_cannot(x, NULL, "extent %d of its shape is %lld", i,
                                    (long long)dims[i]);
        else
            size *= to->dim[i];
    }
    if (rest >= 0)
        to->dim[rest] = ls_shape_size(&in->shape) / size;
    return 0;
}

static int read_reshape(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    struct ls_shape to;
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_shape_of_reshape(x, in, &to));
    return reshape(x, in, &to);
}

static int read_flatten(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    if (in == NULL)
        return x->status;
    const int64_t axis = ls_import_integer(x, "axis", 1);
    const int64_t at = axis < 0 ? axis + in->shape.rank : axis;
    if (at < 1 || at > in->shape.rank)
        return ls_import_cannot(x, NULL, "axis %lld is none behind the samples", (long long)axis);
    const struct ls_shape to = {.rank = 2,
                                .dim = {ls_shape_count(&in->shape, 0, (int)at),
                                        ls_shape_count(&in->shape, (int)at, in->shape.rank)}};
    if (at != 1 || !x->writing || ls_shape_equal(&in->shape, &to))
        return reshape(x, in, &to);
    LS_TRY(ls_import_write(x, in));
    return ls_import_result(x, 0, LS_LAYER(x, "Flatten", in->top, "%s", ""), &to);
}

/* Which of `rank` axes are named by an attribute or an input; `all` where none are. */
static int read_axes(struct ls_importer *x, int index, int rank, bool all,
                     bool marked[LS_RANK_MAX + 1])
{
    const int64_t *axes;
    int64_t count;
    memset(marked, 0, LS_RANK_MAX * sizeof *marked);
    LS_TRY(ls_import_integers(x, "axes", index, &axes, &count));
    for (int i = 0; count <= 0 && i < rank; i++)
        marked[i] = all;
    for (int64_t i = 0; i < count; i++) {
        const int axis = ls_import_axis(x, axes[i], rank);
        if (axis < 0)
            return x->status;
        marked[axis] = true;
    }
    return 0;
}

static int read_squeeze(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    bool gone[LS_RANK_MAX + 1];
    struct ls_shape to = {0};
    if (in == NULL)
        return x->status;
    LS_TRY(read_axes(x, 1, in->shape.rank, false, gone));
    const bool named = ls_import_attribute(x, "axes") != NULL || ls_import_input(x, 1) != NULL;
    for (int i = 0; i < in->shape.rank; i++) {
        if (gone[i] && in->shape.dim[i] != 1)
            return ls_import_cannot(x, NULL, "axis %d is not of extent 1", i);
        if (named ? !gone[i] : in->shape.dim[i] != 1)
            to.dim[to.rank++] = in->shape.dim[i];
    }
    return reshape(x, in, &to);
}

static int read_unsqueeze(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    const int64_t *axes;
    int64_t count;
    bool more[LS_RANK_MAX + 1];
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_integers(x, "axes", 1, &axes, &count));
    if (count < 1 || in->shape.rank + count > LS_RANK_MAX)
        return ls_import_cannot(x, NULL, "at most %d axes are read", LS_RANK_MAX);
    struct ls_shape to = {.rank = in->shape.rank + (int)count};
    LS_TRY(read_axes(x, 1, to.rank, false, more));
    for (int i = 0, from = 0; i < to.rank; i++) {
        if (!more[i] && from == in->shape.rank)
            return ls_import_cannot(x, NULL, "an axis is named twice");
        to.dim[i] = more[i] ? 1 : in->shape.dim[from++];
    }
    return reshape(x, in, &to);
}

static int read_transpose(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    const int64_t *perm;
    int64_t count;
    int order[LS_RANK_MAX];
    bool seen[LS_RANK_MAX] = {false};
    if (in == NULL)
        return x->status;
    LS_TRY(ls_import_integers(x, "perm", -1, &perm, &count));
    if (count >= 0 && count != in->shape.rank)
        return ls_import_cannot(x, NULL, "perm does not fit its input");
    struct ls_shape to = in->shape;
    for (int i = 0; i < to.rank; i++) {
        order[i] = count < 0 ? to.rank - 1 - i : ls_import_axis(x, perm[i], to.rank);
        if (order[i] < 0 || seen[order[i]])
            return ls_import_cannot(x, NULL, "perm is no order of its axes");
        seen[order[i]] = true;
        to.dim[i] = in->shape.dim[order[i]];
    }
    struct ls_onnx_view view;
    if (!x->writing && ls_view_of(in, &view) && ls_view_transpose(&view, order, to.rank))
        return ls_import_view(x, 0, &view, &to);
    LS_TRY(ls_import_write(x, in));
    return ls_import_result(x, 0, ls_import_permuted(x, in->top, order, to.rank), &to);
}

/* A blob, or a constant as one, along axis 1. */
static const char *read_piece(struct ls_importer *x, const struct ls_onnx_value *like, int index,
                              int axis)
{
    struct ls_onnx_value *value = ls_import_input(x, index);
    if (value != NULL && value->constant && axis == 1)
        return ls_import_repeated(x, value, like->top, &like->shape);
    value = ls_import_blob(x, index);
    return value != NULL ? value->top : NULL;
}

/* The first input that is no constant. */
static struct ls_onnx_value *first_blob(struct ls_importer *x)
{
    for (size_t i = 0; i < x->node->n_input; i++) {
        const struct ls_onnx_value *value = ls_import_input(x, (int)i);
        if (value != NULL && !value->constant)
            return ls_import_blob(x, (int)i);
    }
    return ls_import_blob(x, 0);
}

static int read_concat(struct ls_importer *x)
{
    enum { MOST = 512 };
    const char *tops[MOST];
    const size_t count = x->node->n_input;
    struct ls_onnx_value *first = first_blob(x);
    if (first == NULL)
        return x->status;
    const int axis = ls_import_axis(x, ls_import_integer(x, "axis", 0), first->shape.rank);
    if (axis < 0 || count > MOST)
        return axis < 0 ? x->status : ls_import_cannot(x, NULL, "it has more than %d inputs", MOST);
    if (axis == 0 && count > 1)
        return ls_import_cannot(x, NULL, "it would put more samples into a batch");
    struct ls_shape out = first->shape;
    out.dim[axis] = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ls_onnx_value *value = ls_import_input(x, (int)i);
        if (value == NULL)
            return ls_import_cannot(x, NULL, "input %zu is missing", i);
        struct ls_shape other = value->shape;
        if (other.rank == out.rank)
            other.dim[axis] = first->shape.dim[axis];
        if (!ls_shape_equal(&other, &first->shape))
            return ls_import_cannot(x, NULL, "the shapes of its inputs do not fit each other");
        if ((tops[i] = read_piece(x, first, (int)i, axis)) == NULL)
            return x->status;
        out.dim[axis] += value->shape.dim[axis];
    }
    if (count == 1)
        return ls_import_hand_on(x, first, 0);
    return ls_import_result(
        x, 0, ls_import_layer(x, "Concat", tops, count, "concat_param { axis: %d }", axis), &out);
}

/* Means or sums along axes: those are put last, and taken together. */
static int reduce(struct ls_importer *x, const char *operation, int index)
{
    struct ls_onnx_value *in = ls_import_blob(x, 0);
    bool gone[LS_RANK_MAX + 1];
    int order[LS_RANK_MAX], kept = 0, at = 0;
    if (in == NULL)
        return x->status;
    const int rank = in->shape.rank;
    LS_TRY(read_axes(x, index, rank, true, gone));
    if (gone[0])
        return ls_import_cannot(x, NULL, "it would mix the samples of a batch");
    if (in->integers && strcmp(operation, "MEAN") == 0)
        return ls_import_cannot(x, NULL, "means of integers have no equivalent");
    const bool keeps = ls_import_integer(x, "keepdims", 1) != 0;
    struct ls_shape left = {0}, out = {0};
    for (int i = 0; i < rank; i++)
        if (!gone[i]) {
            order[at++] = i;
            left.dim[left.rank++] = in->shape.dim[i];
        }
    kept = at;
    for (int i = 0; i < rank; i++) {
        if (gone[i])
            order[at++] = i;
        if (!gone[i] || keeps)
            out.dim[out.rank++] = gone[i] ? 1 : in->shape.dim[i];
    }
    if (kept == rank)
        return ls_import_hand_on(x, in, 0);
    const char *top;
    if (rank == 4 && kept == 2 && gone[2] && gone[3] && strcmp(operation, "MEAN") == 0) {
        top = LS_LAYER(x, "Pooling", in->top, "pooling_param { pool: AVE global_pooling: true }");
        left.rank = 4;
        left.dim[2] = left.dim[3] = 1;
    } else {
        top = LS_LAYER(x, "Reduction", ls_import_permuted(x, in->top, order, rank),
                       "reduction_param { operation: %s axis: %d }", operation, kept);
    }
    return ls_import_result(x, 0, ls_import_reshaped(x, top, &left, &out), &out);
}

static int read_reduce_mean(struct ls_importer *x)
{
    return reduce(x, "MEAN", x->opset < 18 ? -1 : 1);
}

static int read_reduce_sum(struct ls_importer *x)
{
    return reduce(x, "SUM", x->opset < 13 ? -1 : 1);
}

static int read_identity(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    return in == NULL ? x->status : ls_import_hand_on(x, in, 0);
}

/* Whether a value is an input of the model, or a view of one. */
static bool is_of_input(const struct ls_importer *x, const struct ls_onnx_value *value)
{
    struct ls_onnx_view view;
    for (size_t i = 0; i < x->net->input_count && ls_view_of(value, &view); i++)
        if (view.base == x->net->inputs[i].name)
            return true;
    return false;
}

/* Numbers that a layer computes are fp32; an input of whole numbers is read as it is. */
static int read_cast(struct ls_importer *x)
{
    enum ls_dtype type;
    struct ls_onnx_value *in = ls_import_seen(x, 0);
    if (in == NULL)
        return x->status;
    if (!ls_onnx_type((int32_t)ls_import_integer(x, "to", 0), &type))
        return ls_import_cannot(x, NULL, "its type is none that is read");
    const bool real = type == LS_F32 || type == LS_F64 || type == LS_F16 || type == LS_BF16;
    if (!real && in->maker != SIZE_MAX && in->mask == NULL && !is_of_input(x, in))
        return ls_import_cannot(x, NULL, "a blob cannot be cut down to whole numbers");
    struct ls_onnx_value now = *in;
    now.integers = !real;
    return ls_import_hand_on(x, &now, 0);
}

const struct ls_onnx_operator ls_onnx_read_shapes[] = {
    {"Cast", read_cast},
    {"Concat", read_concat},
    {"Flatten", read_flatten},
    {"Identity", read_identity},
    {"ReduceMean", read_reduce_mean},
    {"ReduceSum", read_reduce_sum},
    {"Reshape", read_reshape},
    {"Squeeze", read_squeeze},
    {"Transpose", read_transpose},
    {"Unsqueeze", read_unsqueeze},
    {NULL, NULL},
};
