/* Import: rows by number, of weights (embeddings) and of blobs; and weights that are the same for
 * all samples.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/import_view.h"

/* Rows of a table by the numbers in a blob. */
static const char *embed(struct ls_importer *x, const char *numbers, struct ls_onnx_value *table)
{
    const float *reals = ls_import_reals_of(x, table);
    const char *top =
        reals == NULL
            ? NULL
            : LS_LAYER(x, "Embed", numbers,
                       "embed_param { input_dim: %lld num_output: %lld bias_term: false }",
                       (long long)table->shape.dim[0], (long long)table->shape.dim[1]);
    return ls_import_weight(x, top, "weight", table, &table->shape, reals) == 0 ? top : NULL;
}

static int read_embedding(struct ls_importer *x)
{
    struct ls_onnx_value *weight = ls_import_constant(x, 0), *in = ls_import_blob(x, 1);
    if (weight == NULL || in == NULL)
        return x->status;
    if (weight->shape.rank != 2 || ls_import_integer(x, "axis", 0) != 0 || weight->integers ||
        weight->shape.dim[0] >= INT32_MAX || weight->shape.dim[1] >= INT32_MAX ||
        in->shape.rank == LS_RANK_MAX)
        return ls_import_cannot(x, NULL, "numbers that the input chooses must be rows of a matrix");
    ls_import_call(x, weight);
    struct ls_shape out = in->shape;
    out.dim[out.rank++] = weight->shape.dim[1];
    return ls_import_result(x, 0, embed(x, in->top, weight), &out);
}

bool ls_import_is_position_rows(const struct ls_shape *shape, const struct ls_onnx_value *rows)
{
    return rows->table != NULL && !rows->one_row && shape->rank == 3 && rows->shape.rank > 1 &&
           rows->shape.rank <= 3 && rows->shape.dim[rows->shape.rank - 1] == shape->dim[2] &&
           rows->shape.dim[rows->shape.rank - 2] == shape->dim[1] &&
           ls_shape_size(&rows->shape) == shape->dim[1] * shape->dim[2] &&
           rows->table->shape.dim[1] == shape->dim[2] && rows->table->shape.dim[0] < INT32_MAX;
}

const char *ls_import_position_rows(struct ls_importer *x, const struct ls_onnx_value *like,
                                    const struct ls_onnx_value *rows)
{
    struct ls_onnx_value table = *rows->table;
    const char *places = rows->row == 0
                             ? LS_LAYER(x, "Positions", like->top, "%s", "")
                             : LS_LAYER(x, "Positions", like->top,
                                        "positions_param { offset: %lld }", (long long)rows->row);
    ls_import_call(x, &table);
    return places != NULL ? embed(x, places, &table) : NULL;
}

bool ls_import_is_range(const struct ls_onnx_value *index, int64_t count)
{
    if (!index->integers || ls_shape_size(&index->shape) != count)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (index->wholes[i] != i)
            return false;
    return true;
}

/* All places along axis 0, in their order: another shape. */
static int gather_all(struct ls_importer *x, struct ls_onnx_value *in,
                      const struct ls_onnx_value *index)
{
    struct ls_onnx_view view;
    struct ls_shape out = index->shape;
    if (index->shape.rank - 1 + in->shape.rank > LS_RANK_MAX)
        return ls_import_cannot(x, NULL, "its result would have too many axes");
    for (int i = 1; i < in->shape.rank; i++)
        out.dim[out.rank++] = in->shape.dim[i];
    if (!ls_view_of(in, &view) || !ls_view_reshape(&view, &out))
        return ls_import_cannot(x, NULL, "of a blob one place can be taken, not several");
    return ls_import_view(x, 0, &view, &out);
}

/* Several places along an axis, for which the result has the axes of their numbers. */
static int gather_some(struct ls_importer *x, struct ls_onnx_value *in,
                       const struct ls_onnx_value *index, int axis)
{
    const int64_t extent = in->shape.dim[axis], count = ls_shape_size(&index->shape);
    LS_TRY(ls_import_write(x, in));
    if (axis == 0)
        return ls_import_cannot(x, NULL, "it would take samples out of a batch");
    if (in->shape.rank - 1 + index->shape.rank > LS_RANK_MAX)
        return ls_import_cannot(x, NULL, "its result would have too many axes");
    int64_t *places = ls_import_new_places(x, count);
    if (places == NULL)
        return x->status;
    for (int64_t i = 0; i < count; i++) {
        places[i] = index->wholes[i] + (index->wholes[i] < 0 ? extent : 0);
        if (places[i] < 0 || places[i] >= extent)
            return ls_import_cannot(x, NULL, "there is no place %lld", (long long)index->wholes[i]);
    }
    struct ls_shape kept = in->shape, out = {0};
    kept.dim[axis] = count;
    for (int i = 0; i < kept.rank; i++) {
        if (i != axis)
            out.dim[out.rank++] = kept.dim[i];
        for (int k = 0; i == axis && k < index->shape.rank; k++)
            out.dim[out.rank++] = index->shape.dim[k];
    }
    const char *top = ls_import_places(x, in->top, axis, places, count);
    return ls_import_result(x, 0, ls_import_reshaped(x, top, &kept, &out), &out);
}

static int read_gather(struct ls_importer *x)
{
    const struct ls_onnx_value *data = ls_import_input(x, 0);
    if (data != NULL && data->constant)
        return read_embedding(x);
    struct ls_onnx_value *in = ls_import_seen(x, 0), *index = ls_import_constant(x, 1);
    if (in == NULL || index == NULL)
        return x->status;
    if (!x->writing && ls_import_integer(x, "axis", 0) == 0 &&
        ls_import_is_range(index, in->shape.dim[0]))
        return gather_all(x, in, index);
    const int axis = ls_import_axis(x, ls_import_integer(x, "axis", 0), in->shape.rank);
    if (axis < 0)
        return x->status;
    if (!index->integers)
        return ls_import_cannot(x, NULL, "its numbers of places are no integers");
    if (ls_shape_size(&index->shape) != 1 || index->shape.rank > 1)
        return gather_some(x, in, index, axis);
    const int64_t extent = in->shape.dim[axis];
    const int64_t at = index->wholes[0] + (index->wholes[0] < 0 ? extent : 0);
    if (at < 0 || at >= extent)
        return ls_import_cannot(x, NULL, "there is no place %lld", (long long)index->wholes[0]);
    struct ls_shape kept = in->shape, out = {0};
    kept.dim[axis] = 1;
    for (int i = 0; i < kept.rank; i++)
        if (i != axis || index->shape.rank == 1)
            out.dim[out.rank++] = kept.dim[i];
    if (out.rank == 0)
        return ls_import_cannot(x, NULL, "nothing but a number would be left");
    struct ls_onnx_view view;
    if (!x->writing && ls_view_of(in, &view) && ls_view_cut(&view, axis, at, at + 1) &&
        ls_view_reshape(&view, &out))
        return ls_import_view(x, 0, &view, &out);
    LS_TRY(ls_import_write(x, in));
    if (axis == 0)
        return ls_import_cannot(x, NULL, "it would take samples out of a batch");
    const char *top = ls_import_part(x, in, axis, at, at + 1);
    return ls_import_result(x, 0, ls_import_reshaped(x, top, &kept, &out), &out);
}

const char *ls_import_repeated(struct ls_importer *x, struct ls_onnx_value *value, const char *like,
                               const struct ls_shape *shape)
{
    const struct ls_shape *own = &value->shape;
    const float *numbers = ls_import_reals_of(x, value);
    if (numbers == NULL)
        return NULL;
    if (own->rank != 3 || shape->rank < 2 || shape->dim[1] < own->dim[1] ||
        own->dim[1] * own->dim[2] >= INT32_MAX) {
        ls_import_cannot(x, NULL,
                         "a constant that stands beside a blob must be [1, rows, numbers], "
                         "with no more rows than that has");
        return NULL;
    }
    const int64_t rows = own->dim[1], width = own->dim[2];
    for (int64_t i = rows * width; i < ls_shape_size(own); i++)
        if (memcmp(&numbers[i], &numbers[i % (rows * width)], sizeof *numbers) != 0) {
            ls_import_cannot(x, NULL, "a constant is not the same for all samples");
            return NULL;
        }
    /* Its rows by the numbers of their places. */
    const struct ls_shape places = {.rank = 2, .dim = {shape->dim[0], shape->dim[1]}};
    const struct ls_onnx_value all = {.top = LS_LAYER(x, "Positions", like, "%s", ""),
                                      .shape = places};
    const struct ls_shape table = {.rank = 2, .dim = {rows, width}};
    if (all.top == NULL)
        return NULL;
    const char *few = ls_import_part(x, &all, 1, 0, rows);
    struct ls_onnx_value first = *value;
    first.shape = table;
    first.share = NULL;
    ls_import_call_without(x, value, "");
    return embed(x, few, &first);
}

const struct ls_onnx_operator ls_onnx_read_lookups[] = {
    {"Gather", read_gather},
    {NULL, NULL},
};
