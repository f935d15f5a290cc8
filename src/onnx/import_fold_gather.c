/* Import: constants that are worked out: numbers by the numbers of their places, parts, and sums
 * along an axis.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import_fold.h"

/* Rows of a learned table go on learning: those one behind the other, or one and the same. */
static void note_rows(struct ls_folding *f, const struct ls_onnx_value *table,
                      const struct ls_onnx_value *index)
{
    const int64_t count = ls_shape_size(&index->shape);
    bool follow = true, same = true;
    if (!table->learned || table->shape.rank != 2 || table->integers || count < 1)
        return;
    for (int64_t i = 0; i < count; i++) {
        follow = follow && index->wholes[i] == index->wholes[0] + i;
        same = same && index->wholes[i] == index->wholes[0];
    }
    if ((!follow && !same) || index->wholes[0] < 0)
        return;
    f->out.table = table;
    f->out.row = index->wholes[0];
    f->out.one_row = same;
    f->out.learned = true;
    f->out.name = table->name;
}

static int fold_gather(struct ls_folding *f)
{
    LS_TRY(ls_fold_need(f, 2));
    const struct ls_onnx_value *in = f->in[0], *index = f->in[1];
    const int axis = ls_import_axis(f->x, ls_import_integer(f->x, "axis", 0), in->shape.rank);
    if (axis < 0)
        return f->x->status;
    if (!index->integers || in->shape.rank - 1 + index->shape.rank > LS_RANK_MAX)
        return ls_import_cannot(f->x, NULL, "its numbers of places are not read");
    struct ls_shape shape = {0};
    for (int i = 0; i < in->shape.rank; i++) {
        if (i != axis)
            shape.dim[shape.rank++] = in->shape.dim[i];
        for (int k = 0; i == axis && k < index->shape.rank; k++)
            shape.dim[shape.rank++] = index->shape.dim[k];
    }
    LS_TRY(ls_fold_make(f, &shape, in->integers));
    if (axis == 0)
        note_rows(f, in, index);
    const int64_t extent = in->shape.dim[axis], places = ls_shape_size(&index->shape);
    const int64_t before = ls_shape_count(&in->shape, 0, axis),
                  behind = ls_shape_count(&in->shape, axis + 1, in->shape.rank);
    for (int64_t p = 0; p < places; p++) {
        const int64_t at = index->wholes[p] + (index->wholes[p] < 0 ? extent : 0);
        if (at < 0 || at >= extent)
            return ls_import_cannot(f->x, NULL, "there is no place %lld", (long long)at);
        for (int64_t i = 0; i < before; i++)
            for (int64_t k = 0; k < behind; k++)
                ls_fold_put(f, (i * places + p) * behind + k, in, (i * extent + at) * behind + k);
    }
    return 0;
}

/* A place of an axis, from the front or (negative) the end. False: there is none such. */
static bool find_place(int64_t number, int64_t extent, int64_t *place)
{
    *place = number + (number < 0 ? extent : 0);
    return *place >= 0 && *place < extent;
}

static int fold_gather_elements(struct ls_folding *f)
{
    int64_t strides[LS_RANK_MAX], own[LS_RANK_MAX], place;
    LS_TRY(ls_fold_need(f, 2));
    const struct ls_onnx_value *in = f->in[0], *index = f->in[1];
    const int axis = ls_import_axis(f->x, ls_import_integer(f->x, "axis", 0), in->shape.rank);
    if (axis < 0)
        return f->x->status;
    bool fits = index->integers && index->shape.rank == in->shape.rank;
    for (int i = 0; i < in->shape.rank && fits; i++)
        fits = i == axis || index->shape.dim[i] <= in->shape.dim[i];
    if (!fits)
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    ls_fold_strides(&in->shape, own);
    ls_fold_strides(&index->shape, strides);
    LS_TRY(ls_fold_make(f, &index->shape, in->integers));
    for (int64_t i = 0; i < ls_shape_size(&index->shape); i++) {
        int64_t at = 0;
        if (!find_place(index->wholes[i], in->shape.dim[axis], &place))
            return ls_import_cannot(f->x, NULL, "there is no place %lld",
                                    (long long)index->wholes[i]);
        for (int k = 0; k < in->shape.rank; k++)
            at += (k == axis ? place : i / strides[k] % index->shape.dim[k]) * own[k];
        ls_fold_put(f, i, in, at);
    }
    return 0;
}

static int fold_gather_nd(struct ls_folding *f)
{
    int64_t own[LS_RANK_MAX], place;
    LS_TRY(ls_fold_need(f, 2));
    const struct ls_onnx_value *in = f->in[0], *index = f->in[1];
    const int rank = index->shape.rank;
    const int64_t named = rank > 0 ? index->shape.dim[rank - 1] : 0;
    if (!index->integers || named < 1 || named > in->shape.rank ||
        rank - 1 + in->shape.rank - named > LS_RANK_MAX ||
        ls_import_integer(f->x, "batch_dims", 0) != 0)
        return ls_import_cannot(f->x, NULL, "its numbers of places are not read");
    struct ls_shape shape = index->shape;
    shape.rank = rank - 1;
    const int64_t places = ls_shape_size(&shape);
    for (int64_t i = named; i < in->shape.rank; i++)
        shape.dim[shape.rank++] = in->shape.dim[i];
    const int64_t behind = ls_shape_count(&in->shape, (int)named, in->shape.rank);
    ls_fold_strides(&in->shape, own);
    LS_TRY(ls_fold_make(f, &shape, in->integers));
    for (int64_t p = 0; p < places; p++) {
        int64_t at = 0;
        for (int64_t k = 0; k < named; k++) {
            if (!find_place(index->wholes[p * named + k], in->shape.dim[k], &place))
                return ls_import_cannot(f->x, NULL, "there is no place %lld",
                                        (long long)index->wholes[p * named + k]);
            at += place * own[k];
        }
        for (int64_t k = 0; k < behind; k++)
            ls_fold_put(f, p * behind + k, in, at + k);
    }
    return 0;
}

static int fold_cumsum(struct ls_folding *f)
{
    const int64_t *at;
    int64_t count;
    LS_TRY(ls_fold_need(f, 2));
    const struct ls_onnx_value *in = f->in[0];
    LS_TRY(ls_import_integers(f->x, "axis", 1, &at, &count));
    const int axis = count == 1 ? ls_import_axis(f->x, *at, in->shape.rank) : -1;
    if (axis < 0)
        return ls_import_cannot(f->x, NULL, "its axis is not one number");
    if (ls_import_integer(f->x, "exclusive", 0) != 0 || ls_import_integer(f->x, "reverse", 0) != 0)
        return ls_import_cannot(f->x, NULL, "exclusive and reverse are not worked out");
    LS_TRY(ls_fold_make(f, &in->shape, in->integers));
    const int64_t extent = in->shape.dim[axis],
                  behind = ls_shape_count(&in->shape, axis + 1, in->shape.rank);
    for (int64_t i = 0; i < ls_shape_size(&in->shape); i++) {
        const bool first = i / behind % extent == 0;
        ls_fold_put(f, i, in, i);
        if (!first && in->integers)
            f->wholes[i] = (int64_t)((uint64_t)f->wholes[i] + (uint64_t)f->wholes[i - behind]);
        else if (!first)
            f->reals[i] += f->reals[i - behind];
    }
    return 0;
}

/* Part `index` of a constant along an axis. */
static int take_part(struct ls_folding *f, int index, int axis, int64_t begin, int64_t size)
{
    const struct ls_onnx_value *in = f->in[0];
    struct ls_shape shape = in->shape;
    shape.dim[axis] = size;
    LS_TRY(ls_fold_make(f, &shape, in->integers));
    const int64_t behind = ls_shape_count(&shape, axis + 1, shape.rank);
    const int64_t row = size * behind, whole = in->shape.dim[axis] * behind;
    for (int64_t i = 0; i < ls_shape_size(&shape); i++)
        ls_fold_put(f, i, in, i / row * whole + begin * behind + i % row);
    f->out.learned = in->learned;
    return index == 0 ? 0 : ls_import_hand_on(f->x, &f->out, index);
}

static int fold_split(struct ls_folding *f)
{
    const int64_t *sizes;
    int64_t count;
    const int64_t parts = (int64_t)f->x->node->n_output;
    LS_TRY(ls_fold_need(f, 1));
    const struct ls_shape *shape = &f->in[0]->shape;
    const int axis = ls_import_axis(f->x, ls_import_integer(f->x, "axis", 0), shape->rank);
    if (axis < 0)
        return f->x->status;
    LS_TRY(ls_import_integers(f->x, "split", 1, &sizes, &count));
    const int64_t extent = shape->dim[axis], each = parts > 0 ? (extent + parts - 1) / parts : 0;
    int64_t end = extent;
    if (parts < 1 || (count >= 0 && count != parts))
        return ls_import_cannot(f->x, NULL, "its parts do not fit its input");
    for (int64_t i = parts - 1; i >= 0; i--) { /* the first one last: it is the result */
        const int64_t size = count >= 0 ? sizes[i] : end - i * each;
        if (size < 1 || size > end)
            return ls_import_cannot(f->x, NULL, "its parts are not as large as its input together");
        end -= size;
        LS_TRY(take_part(f, (int)i, axis, end, size));
    }
    return end == 0 ? 0
                    : ls_import_cannot(f->x, NULL,
                                       "its parts are not as large as its input "
                                       "together");
}

const struct ls_onnx_folder ls_onnx_fold_gather[] = {
    {"CumSum", fold_cumsum, false},
    {"Gather", fold_gather, false},
    {"GatherElements", fold_gather_elements, false},
    {"GatherND", fold_gather_nd, false},
    {"Split", fold_split, false},
    {NULL, NULL, false},
};
