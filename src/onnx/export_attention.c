/* Attention, of products, a softmax and masks. Heads are an axis; where several of them share keys
 * and values, two axes, of groups and of the heads of a group.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <sleef.h>

#include "device/attention.h"
#include "ir/attention.h"
#include "onnx/exporter.h"

struct attention {
    struct ls_exporter *x;
    const struct ls_attention_attr *attr;
    int rank;      /* of values with heads: 4, or 5 with groups */
    int64_t batch; /* -1: any */
};

static const struct ls_value *input(const struct attention *a, int which)
{
    return ls_onnx_has(a->x->op, which) ? a->x->op->input[which] : NULL;
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static const char *operand(const struct attention *a, int which)
{
    const struct ls_attention_attr *attr = a->attr;
    const int64_t q = attr->heads * attr->depth, k = attr->kv_heads * attr->depth;
    const int64_t ends[] = {q, q + k, q + k + attr->kv_heads * attr->value_depth};
    if (!attr->fused)
        return ls_onnx_in(a->x, which);
    return ls_onnx_cut(a->x, ls_onnx_in(a->x, 0), NULL, 2, which > 0 ? ends[which - 1] : 0,
                       ends[which]);
}

/* [N, T, heads depth] as [N, heads, T, depth]; with groups [N, groups, heads, T, depth]. */
static const char *by_head(const struct attention *a, int which, const char *in)
{
    static const int64_t plain[] = {0, 2, 1, 3}, grouped[] = {0, 2, 3, 1, 4};
    const struct ls_attention_attr *attr = a->attr;
    const int64_t rows = which == LS_ATTENTION_Q ? attr->queries : attr->keys;
    const int64_t depth = which == LS_ATTENTION_V ? attr->value_depth : attr->depth;
    const int64_t shared = which == LS_ATTENTION_Q ? attr->heads / attr->kv_heads : 1;
    const int64_t dims[] = {a->batch, rows, attr->kv_heads, shared, depth};
    const int64_t few[] = {a->batch, rows, attr->heads, depth};
    in = ls_onnx_reshape(a->x, in, NULL, a->rank == 5 ? dims : few, a->rank);
    return ls_onnx_transpose(a->x, in, NULL, a->rank == 5 ? grouped : plain, a->rank);
}

/* ---- Rotary positions ------------------------------------------------------------------------ */

/* Cosines and sines [rows, dims / 2], of the places of the rows. */
static void fixed_angles(const struct attention *a, int64_t first, int64_t rows,
                         const char *angles[2])
{
    const struct ls_rotary_attr *rotary = &a->attr->rotary;
    const int64_t pairs = rotary->dims / 2;
    const struct ls_shape shape = {.rank = 2, .dim = {rows, pairs}};
    float *all = ls_onnx_new_numbers(a->x, (size_t)(2 * rows * pairs));
    float *row = ls_onnx_new_numbers(a->x, (size_t)rotary->dims);
    angles[0] = angles[1] = "";
    if (all == NULL || row == NULL)
        return;
    for (int64_t t = 0; t < rows; t++) {
        ls_attention_angles(rotary, (double)(first + t), row);
        for (int64_t i = 0; i < pairs; i++) {
            all[t * pairs + i] = row[i];
            all[(rows + t) * pairs + i] = row[pairs + i];
        }
    }
    angles[0] = ls_onnx_constant(a->x->writer, &shape, all);
    angles[1] = ls_onnx_constant(a->x->writer, &shape, all + rows * pairs);
}

/* The same of positions that are given, [N, (1,) 1, rows, dims / 2]. */
static void given_angles(const struct attention *a, const struct ls_value *positions, int64_t first,
                         int64_t rows, const char *angles[2])
{
    const struct ls_rotary_attr *rotary = &a->attr->rotary;
    const int64_t pairs = rotary->dims / 2;
    const struct ls_shape shape = {.rank = 1, .dim = {pairs}};
    float *frequencies = ls_onnx_new_numbers(a->x, (size_t)pairs);
    angles[0] = angles[1] = "";
    if (frequencies == NULL)
        return;
    for (int64_t i = 0; i < pairs; i++)
        frequencies[i] = (float)Sleef_cinz_powd1_u10purec((double)rotary->base,
                                                          -2 * (double)i / (double)rotary->dims);
    const int64_t axes[] = {1, a->rank - 1, 2};
    const char *of = ls_onnx_as_floats(a->x, positions);
    if (rows != a->attr->keys)
        of = ls_onnx_cut(a->x, of, NULL, 1, first, first + rows);
    of = ls_onnx_unsqueeze(a->x, of, NULL, axes, a->rank == 5 ? 3 : 2);
    of = LS_EMIT(a->x, "Mul", NULL, of, ls_onnx_constant(a->x->writer, &shape, frequencies));
    angles[0] = LS_EMIT(a->x, "Cos", NULL, of);
    angles[1] = LS_EMIT(a->x, "Sin", NULL, of);
}

/* Every second number, from `first` on, of the first `dims`; or half of them. */
static const char *half_of(const struct attention *a, const char *in, int half)
{
    const struct ls_rotary_attr *rotary = &a->attr->rotary;
    struct ls_onnx_writer *writer = a->x->writer;
    const int64_t axis = a->rank - 1, pairs = rotary->dims / 2, end = rotary->dims, two = 2;
    const int64_t first = half;
    if (!rotary->neighbours)
        return ls_onnx_cut(a->x, in, NULL, axis, half * pairs, (half + 1) * pairs);
    return LS_EMIT(a->x, "Slice", NULL, in, ls_onnx_integers(writer, &first, 1),
                   ls_onnx_integers(writer, &end, 1), ls_onnx_integers(writer, &axis, 1),
                   ls_onnx_integers(writer, &two, 1));
}

/* Both halves side by side, or one number of each after the other. */
static const char *join_halves(const struct attention *a, int which, const char *up,
                               const char *down)
{
    const struct ls_attention_attr *attr = a->attr;
    const int64_t last = a->rank;
    const int64_t rows = which == LS_ATTENTION_Q ? attr->queries : attr->keys;
    const int64_t shared = which == LS_ATTENTION_Q ? attr->heads / attr->kv_heads : 1;
    const int64_t dims[] = {a->batch, attr->kv_heads, shared, rows, attr->rotary.dims};
    const int64_t few[] = {a->batch, attr->heads, rows, attr->rotary.dims};
    if (attr->rotary.neighbours) {
        up = ls_onnx_unsqueeze(a->x, up, NULL, &last, 1);
        down = ls_onnx_unsqueeze(a->x, down, NULL, &last, 1);
    }
    const char *both = LS_EMIT(a->x, "Concat", NULL, up, down);
    ls_onnx_set_int(a->x->writer, "axis", attr->rotary.neighbours ? last : last - 1);
    return attr->rotary.neighbours
               ? ls_onnx_reshape(a->x, both, NULL, a->rank == 5 ? dims : few, a->rank)
               : both;
}

static const char *turn(const struct attention *a, int which, const char *in)
{
    const struct ls_attention_attr *attr = a->attr;
    const struct ls_value *positions = input(a, LS_ATTENTION_POSITIONS);
    const int64_t rows = which == LS_ATTENTION_Q ? attr->queries : attr->keys;
    const char *angles[2];
    if (positions != NULL)
        given_angles(a, positions, attr->keys - rows, rows, angles);
    else
        fixed_angles(a, attr->keys - rows, rows, angles);
    const char *first = half_of(a, in, 0), *second = half_of(a, in, 1);
    const char *up = LS_EMIT(a->x, "Sub", NULL, LS_EMIT(a->x, "Mul", NULL, first, angles[0]),
                             LS_EMIT(a->x, "Mul", NULL, second, angles[1]));
    const char *down = LS_EMIT(a->x, "Add", NULL, LS_EMIT(a->x, "Mul", NULL, second, angles[0]),
                               LS_EMIT(a->x, "Mul", NULL, first, angles[1]));
    const char *turned = join_halves(a, which, up, down);
    if (attr->rotary.dims == attr->depth)
        return turned;
    const char *rest = ls_onnx_cut(a->x, in, NULL, a->rank - 1, attr->rotary.dims, attr->depth);
    turned = LS_EMIT(a->x, "Concat", NULL, turned, rest);
    ls_onnx_set_int(a->x->writer, "axis", a->rank - 1);
    return turned;
}

/* ---- Masks ----------------------------------------------------------------------------------- */

/* Both conditions, either of which may be NULL. */
static const char *both(const struct attention *a, const char *first, const char *second)
{
    if (first == NULL || second == NULL)
        return first != NULL ? first : second;
    return LS_EMIT(a->x, "And", NULL, first, second);
}

/* Which pairs see each other by their places, [Q, K]; NULL: all. *blind: some query sees none. */
static const char *by_place(const struct attention *a, bool *blind)
{
    const struct ls_attention_attr *attr = a->attr;
    const struct ls_shape shape = {.rank = 2, .dim = {attr->queries, attr->keys}};
    bool hidden = false;
    unsigned char *seen = ls_arena_alloc(a->x->writer->arena, (size_t)ls_shape_size(&shape), 1);
    if (seen == NULL) {
        a->x->writer->failed = true;
        return NULL;
    }
    for (int64_t i = 0; i < attr->queries; i++) {
        const struct ls_attention_range keys = ls_attention_keys_of(attr, i);
        *blind |= keys.begin >= keys.end;
        for (int64_t j = 0; j < attr->keys; j++) {
            seen[i * attr->keys + j] = j >= keys.begin && j < keys.end;
            hidden |= seen[i * attr->keys + j] == 0;
        }
    }
    return hidden ? ls_onnx_bools(a->x->writer, &shape, seen) : NULL;
}

static const char *not_zero(const struct attention *a, const struct ls_value *value)
{
    const char *zero = LS_EMIT(a->x, "Equal", NULL, ls_onnx_as_floats(a->x, value),
                               ls_onnx_number(a->x->writer, 0));
    return LS_EMIT(a->x, "Not", NULL, zero);
}

/* The mask [N or 1, (H or 1,) Q, K] with an axis of heads, and one of groups where there are such.
 */
static const char *with_heads(const struct attention *a, const char *in)
{
    const struct ls_value *mask = input(a, LS_ATTENTION_MASK);
    const struct ls_attention_attr *attr = a->attr;
    int64_t dims[LS_RANK_MAX];
    const int64_t axes[] = {1, 2};
    ls_onnx_dims(a->x, mask, dims);
    const int64_t shared = attr->heads / attr->kv_heads;
    const int64_t grouped[] = {dims[0], attr->kv_heads, shared, attr->queries, attr->keys};
    if (mask->shape.rank == 3)
        return ls_onnx_unsqueeze(a->x, in, NULL, axes, a->rank == 5 ? 2 : 1);
    if (a->rank == 4)
        return in;
    return mask->shape.dim[1] == 1 ? ls_onnx_unsqueeze(a->x, in, NULL, axes, 1)
                                   : ls_onnx_reshape(a->x, in, NULL, grouped, 5);
}

/* Which keys count, [N, (1,) 1, 1, K]. */
static const char *by_key(const struct attention *a)
{
    const struct ls_value *lengths = input(a, LS_ATTENTION_LENGTHS);
    const struct ls_value *keys = input(a, LS_ATTENTION_KEY_MASK);
    const int64_t axes[] = {1, 2, 3, 4}, keys_count = a->attr->keys;
    const char *seen = NULL;
    if (lengths != NULL) {
        const struct ls_shape shape = {.rank = 1, .dim = {keys_count}};
        float *places = ls_onnx_new_numbers(a->x, (size_t)keys_count);
        for (int64_t j = 0; j < keys_count && places != NULL; j++)
            places[j] = (float)j;
        seen = LS_EMIT(a->x, "Less", NULL,
                       places != NULL ? ls_onnx_constant(a->x->writer, &shape, places) : "",
                       ls_onnx_unsqueeze(a->x, ls_onnx_as_floats(a->x, lengths), NULL, axes,
                                         (size_t)a->rank - 1));
    }
    if (keys != NULL)
        seen = both(a, seen,
                    ls_onnx_unsqueeze(a->x, not_zero(a, keys), NULL, axes, (size_t)a->rank - 2));
    return seen;
}

/* Which pairs count by data. */
static const char *by_data(const struct attention *a)
{
    const struct ls_value *mask = input(a, LS_ATTENTION_MASK);
    const struct ls_value *segments = input(a, LS_ATTENTION_SEGMENTS);
    const int64_t queries[] = {1, a->rank - 1, 2}, keys[] = {1, 2, 3};
    const char *seen = by_key(a);
    if (mask != NULL && !a->attr->added)
        seen = both(a, seen, with_heads(a, not_zero(a, mask)));
    if (segments != NULL) {
        const char *of = ls_onnx_as_floats(a->x, segments);
        const char *first = ls_onnx_unsqueeze(a->x, of, NULL, queries, (size_t)a->rank - 2);
        const char *second = ls_onnx_unsqueeze(a->x, of, NULL, keys, (size_t)a->rank - 2);
        seen = both(a, seen, LS_EMIT(a->x, "Equal", NULL, first, second));
    }
    return seen;
}

/* ---- The layer ------------------------------------------------------------------------------- */

/* The weights of the values, from the scores of all pairs. A query that sees no key gives 0. */
static const char *weights_of(const struct attention *a, const char *scores)
{
    struct ls_onnx_writer *writer = a->x->writer;
    bool blind = false;
    const char *places = by_place(a, &blind), *data = by_data(a), *seen = both(a, places, data);
    if (seen != NULL)
        scores = LS_EMIT(a->x, "Where", NULL, seen, scores, ls_onnx_number(writer, -3.4e38F));
    const char *p = LS_EMIT(a->x, "Softmax", NULL, scores);
    ls_onnx_set_int(writer, "axis", a->rank - 1);
    return data != NULL || blind ? LS_EMIT(a->x, "Where", NULL, seen, p, ls_onnx_number(writer, 0))
                                 : p;
}

static void attention(struct ls_exporter *x, const struct ls_op *op)
{
    static const int64_t turned[] = {0, 1, 3, 2}, turned_groups[] = {0, 1, 2, 4, 3};
    static const int64_t plain[] = {0, 2, 1, 3}, grouped[] = {0, 3, 1, 2, 4};
    const struct ls_attention_attr *attr = &op->attr.attention;
    struct attention a = {.x = x, .attr = attr, .rank = attr->heads == attr->kv_heads ? 4 : 5};
    int64_t dims[LS_RANK_MAX];
    ls_onnx_dims(x, op->input[0], dims);
    a.batch = dims[0];
    const char *q = by_head(&a, LS_ATTENTION_Q, operand(&a, LS_ATTENTION_Q));
    const char *k = by_head(&a, LS_ATTENTION_K, operand(&a, LS_ATTENTION_K));
    const char *v = by_head(&a, LS_ATTENTION_V, operand(&a, LS_ATTENTION_V));
    if (attr->rotary.dims > 0) {
        q = turn(&a, LS_ATTENTION_Q, q);
        k = turn(&a, LS_ATTENTION_K, k);
    }
    k = ls_onnx_transpose(x, k, NULL, a.rank == 5 ? turned_groups : turned, a.rank);
    const char *scores = LS_EMIT(x, "MatMul", NULL, q, k);
    scores = LS_EMIT(x, "Mul", NULL, scores, ls_onnx_number(x->writer, attr->scale));
    if (attr->added && input(&a, LS_ATTENTION_MASK) != NULL)
        scores = LS_EMIT(x, "Add", NULL, scores,
                         with_heads(&a, ls_onnx_as_floats(x, input(&a, LS_ATTENTION_MASK))));
    const char *y = LS_EMIT(x, "MatMul", NULL, weights_of(&a, scores), v);
    y = ls_onnx_transpose(x, y, NULL, a.rank == 5 ? grouped : plain, a.rank);
    ls_onnx_reshape_as(x, y, ls_onnx_out(x, 0), op->output[0]);
}

const ls_onnx_exporter ls_onnx_attention[LS_OP_KINDS] = {[LS_OP_ATTENTION] = attention};
