/* Import: nodes of attention: products of queries and keys, their scaling, masks and softmax, as
 * exporters write them. They wait until weights meet values.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/import_attention.h"

static bool is(const struct ls_importer *x, const char *type)
{
    return strcmp(x->node->op_type, type) == 0;
}

static int keep_pairs(struct ls_importer *x, const struct ls_onnx_pairs *pairs,
                      const struct ls_shape *shape)
{
    struct ls_onnx_value *out = ls_import_output(x, 0);
    struct ls_onnx_pairs *own = ls_arena_alloc(x->arena, 1, sizeof *own);
    if (own == NULL)
        return ls_import_no_memory(x);
    if (out == NULL)
        return 0;
    *own = *pairs;
    out->pairs = own;
    out->shape = *shape;
    return ls_import_wait(x, out);
}

static int multiply(struct ls_importer *x, struct ls_onnx_value *a, struct ls_onnx_value *b,
                    bool *done)
{
    struct ls_onnx_view view;
    if (a == NULL || b == NULL || a->constant || b->constant || x->writing)
        return 0;
    if (a->pairs != NULL)
        return a->pairs->weighed && !a->pairs->is_nan ? ls_import_attention(x, a, b, done) : 0;
    const int rank = a->shape.rank;
    struct ls_shape front_a = a->shape, front_b = b->shape;
    if (rank < 3 || b->shape.rank != rank || a->shape.dim[rank - 1] != b->shape.dim[rank - 2] ||
        !ls_view_of(a, &view) || !ls_view_of(b, &view))
        return 0;
    front_a.rank = front_b.rank = rank - 2;
    if (!ls_shape_equal(&front_a, &front_b))
        return 0;
    const struct ls_onnx_pairs pairs = {.q = a, .k = b, .scale = 1};
    struct ls_shape out = a->shape;
    out.dim[rank - 1] = b->shape.dim[rank - 1];
    *done = true;
    return keep_pairs(x, &pairs, &out);
}

/* The scores are multiplied by a number. */
static int scale_scores(struct ls_importer *x, const struct ls_onnx_value *scores, bool divide,
                        bool *done)
{
    struct ls_onnx_pairs pairs = *scores->pairs;
    double number = 1;
    const int at = ls_import_input(x, 0) == scores ? 1 : 0;
    const struct ls_onnx_value *other = ls_import_input(x, at);
    if (pairs.weighed || other == NULL || !other->constant || (divide && at == 0) ||
        pairs.masks > 0 || ls_shape_size(&other->shape) != 1 ||
        other->shape.rank > scores->shape.rank)
        return 0;
    LS_TRY(ls_import_number(x, NULL, at, 1, &number));
    pairs.scale = divide ? pairs.scale / number : pairs.scale * number;
    *done = true;
    return keep_pairs(x, &pairs, &scores->shape);
}

static int mask_scores(struct ls_importer *x, const struct ls_onnx_value *scores,
                       struct ls_onnx_value *value, bool added, bool turned, bool *done)
{
    struct ls_onnx_pairs pairs = *scores->pairs;
    struct ls_onnx_mask mask;
    struct ls_shape both;
    if (pairs.weighed || pairs.masks == 2 || value == NULL ||
        !ls_import_broadcast(&scores->shape, &value->shape, &both) ||
        !ls_shape_equal(&both, &scores->shape) || !ls_import_as_mask(x, value, added, &mask))
        return x->status;
    mask.turned = mask.turned != turned;
    mask.over = scores->shape;
    if (mask.has_keys &&
        ((mask.turned && mask.pairs != NULL) || value->shape.rank != scores->shape.rank))
        return 0;
    pairs.mask[pairs.masks++] = mask;
    *done = true;
    return keep_pairs(x, &pairs, &scores->shape);
}

/* A number that hides a pair. */
static bool hides(struct ls_importer *x, struct ls_onnx_value *value)
{
    if (value == NULL || !value->constant || ls_shape_size(&value->shape) != 1 ||
        ls_import_numbers_of(x, value) != 0)
        return false;
    return ls_import_number_at(value, 0) <= LS_MASK_HIDDEN;
}

static int choose(struct ls_importer *x, bool *done)
{
    struct ls_onnx_value *condition = ls_import_input(x, 0), *yes = ls_import_input(x, 1),
                         *no = ls_import_input(x, 2);
    if (condition == NULL || yes == NULL || no == NULL)
        return 0;
    /* Weights that are no numbers become 0: a row without any key has such. */
    if (condition->pairs != NULL && condition->pairs->is_nan && no->pairs != NULL &&
        yes->constant) {
        *done = true;
        return keep_pairs(x, no->pairs, &no->shape);
    }
    if (yes->pairs != NULL && !yes->constant && hides(x, no))
        return mask_scores(x, yes, condition, false, false, done);
    if (no->pairs != NULL && !no->constant && hides(x, yes))
        return mask_scores(x, no, condition, false, true, done);
    return 0;
}

static int soften(struct ls_importer *x, const struct ls_onnx_value *scores, bool *done)
{
    struct ls_onnx_pairs pairs = *scores->pairs;
    const int rank = scores->shape.rank;
    const int64_t axis = ls_import_integer(x, "axis", x->opset < 13 ? 1 : -1);
    if (pairs.weighed || (axis != -1 && axis != rank - 1))
        return 0;
    pairs.weighed = *done = true;
    return keep_pairs(x, &pairs, &scores->shape);
}

/* Another shape whose last two axes are the same. */
static int reshape_pairs(struct ls_importer *x, const struct ls_onnx_value *in, bool *done)
{
    struct ls_shape to;
    const struct ls_onnx_value *shape = ls_import_input(x, 1);
    if (shape == NULL || !shape->constant)
        return 0;
    LS_TRY(ls_import_shape_of_reshape(x, in, &to));
    const int rank = in->shape.rank;
    if (to.rank < 2 || ls_shape_size(&to) != ls_shape_size(&in->shape) ||
        to.dim[to.rank - 1] != in->shape.dim[rank - 1] ||
        to.dim[to.rank - 2] != in->shape.dim[rank - 2])
        return 0;
    struct ls_onnx_pairs pairs = *in->pairs;
    struct ls_onnx_value *both[2] = {pairs.q, pairs.k};
    for (int i = 0; i < 2; i++) { /* their axes in front are the scores' */
        struct ls_onnx_view *view = ls_arena_alloc(x->arena, 1, sizeof *view);
        struct ls_onnx_value *value = ls_arena_alloc(x->arena, 1, sizeof *value);
        if (view == NULL || value == NULL)
            return ls_import_no_memory(x);
        *value = *both[i];
        value->shape = to;
        value->shape.dim[to.rank - 2] = both[i]->shape.dim[rank - 2];
        value->shape.dim[to.rank - 1] = both[i]->shape.dim[rank - 1];
        if (!ls_view_of(both[i], view) || !ls_view_reshape(view, &value->shape))
            return 0;
        value->view = view;
        value->waiting = false;
        value->top = NULL;
        both[i] = value;
    }
    pairs.q = both[0];
    pairs.k = both[1];
    *done = true;
    return keep_pairs(x, &pairs, &to);
}

static int change(struct ls_importer *x, const struct ls_onnx_value *in, bool *done)
{
    struct ls_onnx_pairs pairs = *in->pairs;
    double ratio;
    if (is(x, "Softmax"))
        return soften(x, in, done);
    if (is(x, "Reshape"))
        return reshape_pairs(x, in, done);
    if (is(x, "IsNaN") && pairs.weighed) {
        pairs.is_nan = *done = true;
        return keep_pairs(x, &pairs, &in->shape);
    }
    if (!is(x, "Dropout") || !pairs.weighed || pairs.dropout > 0)
        return 0;
    const struct ls_onnx_value *mask = ls_import_output(x, 1);
    LS_TRY(ls_import_number(x, "ratio", 1, 0.5, &ratio));
    if (!(ratio >= 0 && ratio < 1) || (mask != NULL && mask->uses > 0))
        return 0;
    pairs.dropout = (float)ratio;
    *done = true;
    return keep_pairs(x, &pairs, &in->shape);
}

int ls_import_attend(struct ls_importer *x, bool *done)
{
    struct ls_onnx_value *a = ls_import_input(x, 0), *b = ls_import_input(x, 1);
    *done = false;
    if (is(x, "MatMul"))
        return multiply(x, a, b, done);
    if (is(x, "Where"))
        LS_TRY(choose(x, done));
    if (*done)
        return 0;
    struct ls_onnx_value *scores = a != NULL && a->pairs != NULL   ? a
                                   : b != NULL && b->pairs != NULL ? b
                                                                   : NULL;
    if (scores == NULL)
        return ls_import_mask_node(x, done);
    if (is(x, "Mul") || is(x, "Div"))
        return scale_scores(x, scores, is(x, "Div"), done);
    if (is(x, "Add"))
        return mask_scores(x, scores, scores == a ? b : a, true, false, done);
    return scores == a ? change(x, scores, done) : 0;
}

/* These are read as parts of attention, and not alone. */
static int read_part_alone(struct ls_importer *x)
{
    return ls_import_cannot(x, NULL,
                            "it is read as a part of attention and in shapes and masks "
                            "that do not depend on the input, and not in this place");
}

const struct ls_onnx_operator ls_onnx_read_attention[] = {
    {"And", read_part_alone},    {"Equal", read_part_alone},
    {"Expand", read_part_alone}, {"GatherND", read_part_alone},
    {"IsNaN", read_part_alone},  {"Not", read_part_alone},
    {"Where", read_part_alone},  {NULL, NULL},
};
