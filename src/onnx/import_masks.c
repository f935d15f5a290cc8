/* Import: masks of attention: constants that say which pairs count, and inputs that say which keys
 * do.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "onnx/import_attention.h"
#include "onnx/import_fold.h"

#define PLANE_MAX ((int64_t)1 << 27) /* pairs of queries and keys */
#define ALL_MAX   ((int64_t)1 << 32) /* and of those, of all samples and heads */

/* ---- What a value says ----------------------------------------------------------------------- */

/* A view of zeros and ones, as a condition; or times a large number, as what is added. */
static bool read_keys(const struct ls_onnx_value *value, bool added, struct ls_onnx_mask *mask)
{
    if (!ls_view_of(value, &mask->keys))
        return false;
    struct ls_onnx_view *view = &mask->keys;
    const double scale = view->scale, shift = view->shift;
    /* 1 becomes 0, and 0 a number that hides; or 1 is what hides. */
    const bool straight =
        added ? scale >= -LS_MASK_HIDDEN && shift == -scale : scale == 1 && shift == 0;
    mask->turned = added ? scale <= LS_MASK_HIDDEN && shift == 0 : scale == -1 && shift == 1;
    if (!straight && !mask->turned)
        return false;
    view->scale = 1;
    view->shift = 0;
    mask->has_keys = true;
    return true;
}

bool ls_import_as_mask(struct ls_importer *x, struct ls_onnx_value *value, bool added,
                       struct ls_onnx_mask *mask)
{
    *mask = (struct ls_onnx_mask){.added = added};
    if (value->mask != NULL) {
        *mask = *value->mask;
        return mask->added == added;
    }
    if (!value->constant)
        return read_keys(value, added, mask);
    mask->pairs = value;
    mask->numbers = added;
    return ls_import_numbers_of(x, value) == 0 && (added || value->integers);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static int keep_mask(struct ls_importer *x, const struct ls_onnx_mask *mask,
                     const struct ls_shape *shape, bool *done)
{
    struct ls_onnx_value *out = ls_import_output(x, 0);
    struct ls_onnx_mask *own = ls_arena_alloc(x->arena, 1, sizeof *own);
    if (own == NULL)
        return ls_import_no_memory(x);
    *done = true;
    if (out == NULL)
        return 0;
    *own = *mask;
    out->mask = own;
    out->shape = *shape;
    return ls_import_wait(x, out);
}

/* Both conditions, of which one is a constant. */
static int join(struct ls_importer *x, struct ls_onnx_value *a, struct ls_onnx_value *b, bool *done)
{
    struct ls_onnx_mask first, second;
    struct ls_shape both;
    if (b == NULL || !ls_import_broadcast(&a->shape, &b->shape, &both) ||
        !ls_import_as_mask(x, a, false, &first) || !ls_import_as_mask(x, b, false, &second))
        return x->status;
    if ((first.has_keys && a->shape.rank != both.rank) ||
        (second.has_keys && b->shape.rank != both.rank))
        return 0;
    if (first.turned || second.turned || (first.pairs != NULL && second.pairs != NULL) ||
        (first.has_keys && second.has_keys))
        return 0;
    if (first.pairs == NULL)
        first.pairs = second.pairs;
    if (!first.has_keys && second.has_keys) {
        first.has_keys = true;
        first.keys = second.keys;
    }
    return keep_mask(x, &first, &both, done);
}

/* A condition becomes 0, or a number that hides. */
static int choose(struct ls_importer *x, struct ls_onnx_value *condition, bool *done)
{
    struct ls_onnx_value *yes = ls_import_input(x, 1), *no = ls_import_input(x, 2);
    struct ls_onnx_mask mask;
    struct ls_shape both;
    if (yes == NULL || no == NULL || !yes->constant || ls_shape_size(&yes->shape) != 1 ||
        ls_import_numbers_of(x, yes) != 0 || ls_shape_size(&condition->shape) == 1 ||
        !ls_import_broadcast(&condition->shape, &no->shape, &both))
        return x->status;
    const bool hidden = ls_import_number_at(yes, 0) <= LS_MASK_HIDDEN;
    if (!hidden && ls_import_number_at(yes, 0) != 0)
        return 0;
    if (no->constant) {
        if (ls_shape_size(&no->shape) != 1 || ls_import_numbers_of(x, no) != 0 ||
            (hidden ? ls_import_number_at(no, 0) != 0
                    : ls_import_number_at(no, 0) > LS_MASK_HIDDEN))
            return x->status;
    } else if (!hidden || !ls_import_as_mask(x, no, false, &mask) || !mask.has_keys ||
               !mask.turned) {
        return x->status; /* a one that is hidden is what 1 - mask says */
    }
    if (!ls_import_as_mask(x, condition, false, &mask))
        return x->status;
    if (mask.has_keys && ((hidden && mask.pairs != NULL) || condition->shape.rank != both.rank))
        return 0;
    mask.turned = mask.turned != hidden;
    mask.added = true;
    return keep_mask(x, &mask, &both, done);
}

static int expand(struct ls_importer *x, struct ls_onnx_value *in, bool *done)
{
    struct ls_onnx_view view;
    const struct ls_onnx_value *given = ls_import_constant(x, 1);
    struct ls_shape to = {0}, shape;
    if (given == NULL || !given->integers || ls_shape_size(&given->shape) > LS_RANK_MAX)
        return x->status;
    to.rank = (int)ls_shape_size(&given->shape);
    for (int i = 0; i < to.rank; i++)
        to.dim[i] = given->wholes[i];
    if (!ls_import_broadcast(&in->shape, &to, &shape))
        return ls_import_cannot(x, NULL, "its shape does not fit");
    if (ls_shape_equal(&shape, &in->shape)) {
        *done = true;
        return ls_import_hand_on(x, in, 0);
    }
    if (in->mask != NULL)
        return in->mask->has_keys && shape.rank != in->shape.rank
                   ? 0
                   : keep_mask(x, in->mask, &shape, done);
    if (!ls_view_of(in, &view) || !ls_view_expand(&view, &in->shape, &shape))
        return 0;
    *done = true;
    return ls_import_view(x, 0, &view, &shape);
}

/* Every number, in their order, by their places. */
static int gather_all(struct ls_importer *x, const struct ls_onnx_value *in, bool *done)
{
    const struct ls_onnx_value *index = ls_import_constant(x, 1);
    struct ls_onnx_view view;
    if (index == NULL || !index->integers || index->shape.rank < 1 ||
        ls_import_integer(x, "batch_dims", 0) != 0)
        return x->status;
    const int last = index->shape.rank - 1;
    struct ls_shape out = index->shape;
    out.rank = last;
    if (index->shape.dim[last] != in->shape.rank ||
        ls_shape_size(&out) != ls_shape_size(&in->shape))
        return 0;
    int64_t strides[LS_RANK_MAX];
    ls_fold_strides(&in->shape, strides);
    for (int64_t i = 0; i < ls_shape_size(&out); i++) {
        int64_t at = 0;
        for (int k = 0; k < in->shape.rank; k++) {
            const int64_t place = index->wholes[i * in->shape.rank + k];
            if (place < 0 || place >= in->shape.dim[k])
                return 0;
            at += place * strides[k];
        }
        if (at != i)
            return 0;
    }
    if (!ls_view_of(in, &view) || !ls_view_reshape(&view, &out))
        return 0;
    *done = true;
    return ls_import_view(x, 0, &view, &out);
}

static int turn(struct ls_importer *x, struct ls_onnx_value *in, bool turned, bool *done)
{
    struct ls_onnx_mask mask;
    if (!ls_import_as_mask(x, in, false, &mask) || (mask.has_keys && mask.pairs != NULL))
        return x->status;
    mask.turned = mask.turned != turned;
    return keep_mask(x, &mask, &in->shape, done);
}

int ls_import_mask_node(struct ls_importer *x, bool *done)
{
    const char *type = x->node->op_type;
    struct ls_onnx_value *a = ls_import_input(x, 0), *b = ls_import_input(x, 1);
    double number = 0;
    if (a == NULL || x->writing)
        return 0;
    if (strcmp(type, "And") == 0)
        return join(x, a, b, done);
    if (strcmp(type, "Where") == 0)
        return choose(x, a, done);
    if (a->constant)
        return 0;
    if (strcmp(type, "Expand") == 0)
        return expand(x, a, done);
    if (strcmp(type, "GatherND") == 0)
        return gather_all(x, a, done);
    if (strcmp(type, "Not") == 0)
        return turn(x, a, true, done);
    if (strcmp(type, "Equal") != 0 || b == NULL || !b->constant || ls_shape_size(&b->shape) != 1)
        return 0;
    LS_TRY(ls_import_number(x, NULL, 1, 0, &number));
    return number == 0 ? turn(x, a, true, done) : 0;
}

/* ---- Fields of the layer --------------------------------------------------------------------- */

/* Pairs [queries, keys], or such of each head, of all masks. */
struct grid {
    int64_t queries, keys, heads; /* heads: 1 where all have the same */
    unsigned char *seen;
    float *added; /* NULL: nothing is */
};

/* How many masks the axes in front of a constant tell apart: 1, or (only if it is added) one for
 * each head. 0: others. */
static int64_t count_heads(const struct ls_onnx_value *value, const struct ls_shape *shape)
{
    int64_t strides[LS_RANK_MAX], plane = shape->dim[shape->rank - 2] * shape->dim[shape->rank - 1];
    bool same = true;
    const int64_t heads = shape->rank == 4 ? shape->dim[1] : 1;
    if (ls_shape_size(&value->shape) <= plane)
        return 1;
    ls_fold_lay_strides(&value->shape, shape, strides);
    const int64_t all = ls_shape_size(shape);
    if (all > ALL_MAX)
        return 0;
    for (int64_t i = plane; i < all; i++) {
        const double now = ls_import_number_at(value, ls_fold_place(shape, i, strides));
        if (now != ls_import_number_at(value, ls_fold_place(shape, i % plane, strides)))
            same = false;
        if (now != ls_import_number_at(value, ls_fold_place(shape, i % (heads * plane), strides)))
            return 0;
    }
    return same ? 1 : heads;
}

static int add_pairs(struct ls_importer *x, const struct ls_onnx_mask *mask,
                     const struct ls_shape *shape, struct grid *grid, bool *fits)
{
    const struct ls_onnx_value *value = mask->pairs;
    int64_t strides[LS_RANK_MAX];
    bool plain = true;
    const int64_t heads = count_heads(value, shape);
    *fits = heads == 1 || (heads > 1 && mask->numbers && grid->added == NULL);
    ls_fold_lay_strides(&value->shape, shape, strides);
    const int64_t size = heads * grid->queries * grid->keys, plane = grid->queries * grid->keys;
    for (int64_t i = 0; i < size && *fits && mask->numbers; i++) {
        const double number = ls_import_number_at(value, ls_fold_place(shape, i, strides));
        plain = plain && (number == 0 || number <= LS_MASK_HIDDEN);
    }
    if (!*fits || (plain && heads > 1)) {
        *fits = false;
        return 0;
    }
    if (!plain) {
        if (grid->added != NULL) {
            *fits = false;
            return 0;
        }
        grid->heads = heads;
        grid->added = ls_import_new_reals(x, size);
        if (grid->added == NULL)
            return x->status;
    }
    for (int64_t i = 0; i < size; i++) {
        const double number = ls_import_number_at(value, ls_fold_place(shape, i, strides));
        if (!plain)
            grid->added[i] = (float)(number < -3e38 ? -3e38 : number);
        else if (mask->numbers ? number != 0 : (number != 0) == mask->turned)
            grid->seen[i % plane] = 0;
    }
    return 0;
}

/* Whether places alone say which pairs count: none behind the query, or none too far away. */
static bool read_places(const struct grid *grid, struct ls_onnx_mask_fields *fields)
{
    const int64_t first = grid->keys - grid->queries; /* the key of query 0 */
    if (memchr(grid->seen, 0, (size_t)(grid->queries * grid->keys)) == NULL)
        return true;
    int64_t farthest = 0, behind = 0, longest = 0;
    for (int64_t i = 0; i < grid->queries; i++)
        for (int64_t j = 0; j < grid->keys; j++) {
            const int64_t by = i + first - j, distance = by < 0 ? -by : by;
            const bool seen = grid->seen[i * grid->keys + j] != 0;
            behind = seen && by < 0 ? 1 : behind;
            farthest = seen && distance > farthest ? distance : farthest;
            longest = distance > longest ? distance : longest;
        }
    fields->causal = behind == 0;
    fields->window = farthest < longest ? farthest + 1 : 0;
    bool same = first >= 0, narrow = false;
    for (int64_t i = 0; i < grid->queries; i++)
        for (int64_t j = 0; j < grid->keys; j++) {
            const int64_t by = i + first - j, distance = by < 0 ? -by : by;
            const bool far = fields->window > 0 && distance >= fields->window;
            narrow = narrow || (far && !(fields->causal && by < 0));
            same = same &&
                   (grid->seen[i * grid->keys + j] != 0) == (!far && !(fields->causal && by < 0));
        }
    if (!narrow)
        fields->window = 0;
    return same;
}

/* A constant as a blob that does not learn. */
static int add_blob(struct ls_importer *x, const struct grid *grid, const float *numbers,
                    const char *extra, struct ls_onnx_mask_fields *fields)
{
    struct ls_shape shape = {.rank = 3, .dim = {1, grid->queries, grid->keys}};
    char heads[32] = "";
    if (grid->heads > 1 && numbers == grid->added) {
        shape = (struct ls_shape){.rank = 4, .dim = {1, grid->heads, grid->queries, grid->keys}};
        snprintf(heads, sizeof heads, "dim: %lld ", (long long)grid->heads);
    }
    const char *top = ls_import_layer(x, "Parameter", NULL, 0,
                                      "parameter_param { shape "
                                      "{ dim: 1 %sdim: %lld dim: %lld } }",
                                      heads, (long long)grid->queries, (long long)grid->keys);
    LS_TRY(ls_import_weight(x, top, "parameter", NULL, &shape, numbers));
    fields->bottom[fields->count] = top;
    fields->extra[fields->count++] = extra;
    return 0;
}

/* An input that says which keys count. */
static int add_keys(struct ls_importer *x, const struct ls_onnx_mask *mask, int rank, int64_t keys,
                    struct ls_onnx_mask_fields *fields, bool *fits)
{
    struct ls_onnx_view view = mask->keys;
    ls_view_join(&view);
    *fits = view.shape.rank == 2 && view.shape.dim[1] == keys && view.offset == 0 && rank > 2;
    for (int i = 0; i < view.count; i++) {
        const struct ls_onnx_atom *atom = &view.atom[i];
        const bool last = atom->axis == rank - 1;
        *fits = *fits && (atom->samples ? atom->extent == 1 || (!last && atom->axis < rank - 2)
                          : last        ? atom->stride == 1 && atom->extent == keys
                                        : atom->stride == 0);
    }
    if (!*fits)
        return 0;
    const char *top = mask->turned ? ls_import_power(x, view.base, 1, -1, 1) : view.base;
    fields->bottom[fields->count] = top;
    fields->extra[fields->count++] = "KEY_MASK";
    return top == NULL ? x->status : 0;
}

static int add_grid(struct ls_importer *x, const struct grid *grid,
                    struct ls_onnx_mask_fields *fields)
{
    if (grid->added != NULL)
        LS_TRY(add_blob(x, grid, grid->added, "ADDED_MASK", fields));
    if (read_places(grid, fields))
        return 0;
    fields->causal = false;
    fields->window = 0;
    const int64_t plane = grid->queries * grid->keys;
    float *numbers = ls_import_new_reals(x, plane);
    for (int64_t i = 0; numbers != NULL && i < plane; i++)
        numbers[i] = grid->seen[i];
    return add_blob(x, grid, numbers, "MASK", fields);
}

int ls_import_masks(struct ls_importer *x, const struct ls_onnx_pairs *pairs,
                    const struct ls_shape *shape, struct ls_onnx_mask_fields *fields, bool *fits)
{
    struct grid grid = {shape->dim[shape->rank - 2], shape->dim[shape->rank - 1], 1, NULL, NULL};
    const int64_t plane = grid.queries * grid.keys;
    int keys = 0;
    *fields = (struct ls_onnx_mask_fields){0};
    *fits = pairs->masks == 0 || plane <= PLANE_MAX;
    if (pairs->masks == 0 || !*fits)
        return 0;
    grid.seen = ls_arena_alloc(x->arena, (size_t)plane + 1, 1);
    if (grid.seen == NULL)
        return ls_import_no_memory(x);
    memset(grid.seen, 1, (size_t)plane);
    for (int i = 0; i < pairs->masks && *fits; i++) {
        if (pairs->mask[i].pairs != NULL)
            LS_TRY(add_pairs(x, &pairs->mask[i], &pairs->mask[i].over, &grid, fits));
        if (*fits && pairs->mask[i].has_keys)
            *fits = keys++ == 0;
    }
    for (int i = 0; i < pairs->masks && *fits; i++)
        if (pairs->mask[i].has_keys)
            LS_TRY(add_keys(x, &pairs->mask[i], pairs->mask[i].over.rank, grid.keys, fields, fits));
    return *fits ? add_grid(x, &grid, fields) : 0;
}
