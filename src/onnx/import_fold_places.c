/* Import: constants that are worked out: the same numbers in another place.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import_fold.h"

static int fold_reshape(struct ls_folding *f)
{
    struct ls_shape shape;
    int64_t size = 1;
    int rest = -1;
    LS_TRY(ls_fold_shape_at(f, 1, &shape));
    const int64_t all = ls_shape_size(&f->in[0]->shape);
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] == 0 && i < f->in[0]->shape.rank)
            shape.dim[i] = f->in[0]->shape.dim[i];
        if (shape.dim[i] == -1 && rest < 0)
            rest = i;
        else if (shape.dim[i] < 1 || shape.dim[i] > all / size)
            return ls_import_cannot(f->x, NULL, "its shape does not fit");
        else
            size *= shape.dim[i];
    }
    if (rest >= 0)
        shape.dim[rest] = all / size;
    return ls_fold_keep(f, &shape);
}

/* Unsqueeze and Squeeze. */
static int fold_axes(struct ls_folding *f, bool more)
{
    const int64_t *axes;
    int64_t count;
    bool marked[2 * LS_RANK_MAX + 1] = {false};
    struct ls_shape shape = {0};
    LS_TRY(ls_fold_need(f, 1));
    const struct ls_shape *in = &f->in[0]->shape;
    LS_TRY(ls_import_integers(f->x, "axes", 1, &axes, &count));
    if (count > LS_RANK_MAX || (more && count < 0) || (more && in->rank + count > LS_RANK_MAX))
        return ls_import_cannot(f->x, NULL, "it has too many axes");
    const int rank = in->rank + (more ? (int)count : 0);
    for (int64_t i = 0; i < count; i++) {
        const int axis = ls_import_axis(f->x, axes[i], rank);
        if (axis < 0 || marked[axis])
            return ls_import_cannot(f->x, NULL, "its axes are not valid");
        marked[axis] = true;
    }
    for (int i = 0, from = 0; i < rank; i++) {
        if (more)
            shape.dim[shape.rank++] = marked[i] ? 1 : in->dim[from++];
        else if (count < 0 ? in->dim[i] != 1 : !marked[i])
            shape.dim[shape.rank++] = in->dim[i];
    }
    return ls_fold_keep(f, &shape);
}

static int fold_unsqueeze(struct ls_folding *f)
{
    return fold_axes(f, true);
}

static int fold_squeeze(struct ls_folding *f)
{
    return fold_axes(f, false);
}

/* Takes each number of `shape` from where the strides say. */
static int move(struct ls_folding *f, const struct ls_shape *shape, const int64_t *strides,
                int64_t offset)
{
    LS_TRY(ls_fold_make(f, shape, f->in[0]->integers));
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        ls_fold_put(f, i, f->in[0], offset + ls_fold_place(shape, i, strides));
    return 0;
}

static int fold_transpose(struct ls_folding *f)
{
    const int64_t *perm;
    int64_t count, own[LS_RANK_MAX], strides[LS_RANK_MAX];
    LS_TRY(ls_fold_need(f, 1));
    struct ls_shape shape = f->in[0]->shape;
    LS_TRY(ls_import_integers(f->x, "perm", -1, &perm, &count));
    if (count >= 0 && count != shape.rank)
        return ls_import_cannot(f->x, NULL, "perm does not fit its input");
    ls_fold_strides(&f->in[0]->shape, own);
    bool seen[LS_RANK_MAX] = {false};
    for (int i = 0; i < shape.rank; i++) {
        const int axis = count < 0 ? shape.rank - 1 - i : ls_import_axis(f->x, perm[i], shape.rank);
        if (axis < 0 || seen[axis])
            return ls_import_cannot(f->x, NULL, "perm is no order of its axes");
        seen[axis] = true;
        strides[i] = own[axis];
        shape.dim[i] = f->in[0]->shape.dim[axis];
    }
    LS_TRY(move(f, &shape, strides, 0));
    f->out.learned = f->in[0]->learned;
    f->out.share = f->in[0]->share;
    f->out.uses = f->in[0]->uses;
    f->out.name = f->in[0]->name;
    return 0;
}

static int fold_expand(struct ls_folding *f)
{
    struct ls_shape to, shape;
    int64_t strides[LS_RANK_MAX];
    LS_TRY(ls_fold_shape_at(f, 1, &to));
    if (!ls_import_broadcast(&f->in[0]->shape, &to, &shape))
        return ls_import_cannot(f->x, NULL, "its shape does not fit");
    if (ls_shape_equal(&shape, &f->in[0]->shape))
        return ls_fold_keep(f, &shape);
    ls_fold_lay_strides(&f->in[0]->shape, &shape, strides);
    LS_TRY(move(f, &shape, strides, 0));
    /* A weight for each sample is still that weight: layers take the first. */
    struct ls_shape one = shape;
    one.dim[0] = 1;
    if (shape.rank > 1 && ls_shape_equal(&one, &f->in[0]->shape)) {
        f->out.learned = f->in[0]->learned;
        f->out.name = f->in[0]->name;
        f->out.table = f->in[0]->table;
        f->out.row = f->in[0]->row;
        f->out.one_row = f->in[0]->one_row;
    }
    return 0;
}

static int fold_slice(struct ls_folding *f)
{
    const int64_t *starts, *ends, *axes, *steps;
    int64_t count, end_count, axis_count, step_count, strides[LS_RANK_MAX], offset = 0;
    LS_TRY(ls_fold_need(f, 1));
    struct ls_shape shape = f->in[0]->shape;
    LS_TRY(ls_import_integers(f->x, "starts", 1, &starts, &count));
    LS_TRY(ls_import_integers(f->x, "ends", 2, &ends, &end_count));
    LS_TRY(ls_import_integers(f->x, "axes", 3, &axes, &axis_count));
    LS_TRY(ls_import_integers(f->x, "steps", 4, &steps, &step_count));
    ls_fold_strides(&shape, strides);
    if (count < 1 || count > shape.rank || end_count != count ||
        (axis_count >= 0 && axis_count != count) || (step_count >= 0 && step_count != count))
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    bool seen[LS_RANK_MAX] = {false};
    for (int64_t i = 0; i < count; i++) {
        const int axis = ls_import_axis(f->x, axis_count >= 0 ? axes[i] : i, shape.rank);
        const int64_t by = step_count >= 0 ? steps[i] : 1;
        if (axis < 0 || seen[axis] || (by != 1 && by != -1))
            return ls_import_cannot(f->x, NULL, "its axes or steps are not read");
        seen[axis] = true;
        const int64_t extent = shape.dim[axis];
        const int64_t begin = ls_import_bound(starts[i], extent, by > 0),
                      end = ls_import_bound(ends[i], extent, by > 0);
        shape.dim[axis] = (end - begin) * by > 0 ? (end - begin) * by : 0;
        offset += shape.dim[axis] > 0 ? begin * strides[axis] : 0;
        strides[axis] *= by;
    }
    LS_TRY(move(f, &shape, strides, offset));
    f->out.learned = f->in[0]->learned && !f->in[0]->integers; /* that part of a weight learns */
    return 0;
}

static int fold_concat(struct ls_folding *f)
{
    LS_TRY(ls_fold_need(f, f->count > 0 ? f->count : 1));
    struct ls_shape shape = f->in[0]->shape;
    const int axis = ls_import_axis(f->x, ls_import_integer(f->x, "axis", 0), shape.rank);
    if (axis < 0)
        return f->x->status;
    shape.dim[axis] = 0;
    for (int i = 0; i < f->count; i++) {
        struct ls_shape other = f->in[i]->shape;
        if (other.rank == shape.rank)
            other.dim[axis] = f->in[0]->shape.dim[axis];
        if (!ls_shape_equal(&other, &f->in[0]->shape) || f->in[i]->integers != f->in[0]->integers)
            return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
        shape.dim[axis] += f->in[i]->shape.dim[axis];
    }
    LS_TRY(ls_fold_make(f, &shape, f->in[0]->integers));
    const int64_t before = ls_shape_count(&shape, 0, axis),
                  row = ls_shape_count(&shape, axis, shape.rank);
    int64_t at = 0;
    for (int i = 0; i < f->count; i++) {
        const int64_t part = ls_shape_count(&f->in[i]->shape, axis, shape.rank);
        for (int64_t k = 0; k < before * part; k++)
            ls_fold_put(f, k / part * row + at + k % part, f->in[i], k);
        at += part;
    }
    return 0;
}

static int fold_trilu(struct ls_folding *f)
{
    double by;
    LS_TRY(ls_fold_need(f, 1));
    const struct ls_shape *shape = &f->in[0]->shape;
    LS_TRY(ls_import_number(f->x, NULL, 1, 0, &by));
    if (shape->rank < 2)
        return ls_import_cannot(f->x, NULL, "its input is no matrix");
    const bool upper = ls_import_integer(f->x, "upper", 1) != 0;
    LS_TRY(ls_fold_make(f, shape, f->in[0]->integers));
    const int64_t columns = shape->dim[shape->rank - 1], rows = shape->dim[shape->rank - 2];
    for (int64_t i = 0; i < ls_shape_size(shape); i++) {
        const double diagonal = (double)(i % columns) - (double)(i / columns % rows);
        if (upper ? diagonal >= by : diagonal <= by)
            ls_fold_put(f, i, f->in[0], i);
    }
    return 0;
}

const struct ls_onnx_folder ls_onnx_fold_places[] = {
    {"Concat", fold_concat, false},
    {"Expand", fold_expand, false},
    {"Reshape", fold_reshape, false},
    {"Slice", fold_slice, false},
    {"Squeeze", fold_squeeze, false},
    {"Transpose", fold_transpose, false},
    {"Trilu", fold_trilu, false},
    {"Unsqueeze", fold_unsqueeze, false},
    {NULL, NULL, false},
};
