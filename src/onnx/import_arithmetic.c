/* Import: sums, products and largest numbers of two values.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/import_view.h"

/* Lays `b` over axes of `a`: those from *axis on, as many as `part` has. False: it has axes where
 * it is as large as `a` and such where it is not, in turn, or is larger. */
static bool lay_over(const struct ls_shape *a, const struct ls_shape *b, bool samples, int *axis,
                     struct ls_shape *part)
{
    struct ls_shape both;
    int first = a->rank, last = -1;
    if (!ls_import_broadcast(a, b, &both) || !ls_shape_equal(&both, a))
        return false;
    const int lead = a->rank - b->rank;
    for (int i = 0; i < b->rank; i++)
        if (b->dim[i] != 1) {
            first = lead + i < first ? lead + i : first;
            last = lead + i;
        }
    if (samples) { /* of blobs, each with its own samples along axis 0 */
        if (lead != 0)
            return false;
        first = 0;
        last = last < 0 ? 0 : last;
    }
    part->rank = last < first ? 0 : last - first + 1;
    *axis = part->rank > 0 ? first : 0;
    for (int i = 0; i < part->rank; i++) {
        part->dim[i] = a->dim[first + i];
        if (b->dim[first + i - lead] != part->dim[i])
            return false;
    }
    return true;
}

enum operation { ADD, SUB, MUL, DIV };

/* Numbers of a constant as a Scale or a Bias layer has them. Infinities, of masks, become the
 * largest numbers. */
static float *constant_numbers(struct ls_importer *x, struct ls_onnx_value *value,
                               enum operation operation)
{
    const int64_t count = ls_shape_size(&value->shape);
    const float *from = ls_import_reals_of(x, value);
    float *out = from != NULL ? ls_import_new_reals(x, count) : NULL;
    for (int64_t i = 0; out != NULL && i < count; i++) {
        const float number = operation == SUB ? -from[i] : operation == DIV ? 1 / from[i] : from[i];
        out[i] = fmaxf(fminf(number, 3.4028235e38F), -3.4028235e38F);
    }
    return out;
}

/* `a` and one number. */
static int with_number(struct ls_importer *x, const struct ls_onnx_value *a, double number,
                       enum operation operation, bool turned)
{
    double power = 1, scale = 1, shift = 0;
    switch (operation) {
    case ADD:
        shift = number;
        break;
    case SUB:
        shift = turned ? number : -number;
        scale = turned ? -1 : 1;
        break;
    case MUL:
        scale = number;
        break;
    case DIV:
        if (!turned) {
            scale = 1 / number;
            break;
        }
        return ls_import_result(
            x, 0, ls_import_power(x, ls_import_power(x, a->top, -1, 1, 0), 1, number, 0),
            &a->shape);
    }
    if (scale == 1 && shift == 0)
        return ls_import_hand_on(x, a, 0);
    return ls_import_result(x, 0, ls_import_power(x, a->top, power, scale, shift), &a->shape);
}

/* Two blobs of one shape. */
static const char *eltwise(struct ls_importer *x, const char *a, const char *b,
                           enum operation operation)
{
    static const char *const fields[] = {[ADD] = "",
                                         [SUB] = "eltwise_param { coeff: 1 coeff: -1 }",
                                         [MUL] = "eltwise_param { operation: PROD }",
                                         [DIV] = "eltwise_param { operation: PROD }"};
    const char *second = operation == DIV ? ls_import_power(x, b, -1, 1, 0) : b;
    return LS_LAYER2(x, "Eltwise", a, second, "%s", fields[operation]);
}

/* A constant that is the same for all samples, or for all places, has one for all of them. */
static void reduce_constant(const struct ls_shape *shape, struct ls_onnx_value *constant)
{
    const int64_t count = ls_shape_size(&constant->shape);
    const int rank = constant->shape.rank;
    int64_t part = count;
    if (constant->one_row && rank > 0 &&
        constant->table->shape.dim[1] == constant->shape.dim[rank - 1]) {
        constant->shape = (struct ls_shape){.rank = 1, .dim = {constant->table->shape.dim[1]}};
        return;
    }
    if (count < 1 || rank != shape->rank || rank < 2 || constant->shape.dim[0] == 1 ||
        constant->integers)
        return;
    part /= constant->shape.dim[0];
    for (int64_t i = part; i < count; i++)
        if (constant->reals[i] != constant->reals[i % part])
            return;
    constant->shape.dim[0] = 1;
}

/* A constant that is no weight stays as it is. */
static int with_constant(struct ls_importer *x, const struct ls_onnx_value *a,
                         struct ls_onnx_value *given, enum operation operation, bool turned)
{
    struct ls_shape part;
    int axis;
    if (ls_import_numbers_of(x, given) != 0)
        return x->status;
    struct ls_onnx_value own = *given, *b = &own;
    if (operation == ADD && ls_import_is_position_rows(&a->shape, b))
        return ls_import_result(x, 0, eltwise(x, a->top, ls_import_position_rows(x, a, b), ADD),
                                &a->shape);
    reduce_constant(&a->shape, b);
    if (ls_shape_size(&b->shape) == 1 && b->shape.rank <= a->shape.rank &&
        !(b->learned && (operation == ADD || operation == MUL)))
        return with_number(x, a, ls_import_number_at(b, 0), operation, turned);
    if (!lay_over(&a->shape, &b->shape, false, &axis, &part))
        return ls_import_cannot(x, NULL, "a constant's axes do not fit those of the blob");
    if (part.rank > 0 && axis == 0)
        return ls_import_cannot(x, NULL, "a constant has other numbers for each sample of a batch");
    const char *top = a->top;
    if (turned && operation == DIV)
        top = ls_import_power(x, top, -1, 1, 0);
    if (turned && operation == SUB)
        top = ls_import_power(x, top, 1, -1, 0);
    const float *numbers = constant_numbers(x, b,
                                            turned ? (operation == SUB   ? ADD
                                                      : operation == DIV ? MUL
                                                                         : operation)
                                                   : operation);
    const bool sum = operation == ADD || operation == SUB;
    ls_import_call(x, b);
    const char *layer = LS_LAYER(x, sum ? "Bias" : "Scale", top, "%s { axis: %d num_axes: %d }",
                                 sum ? "bias_param" : "scale_param", axis, part.rank);
    LS_TRY(ls_import_weight(x, layer, sum ? "bias" : "scale", b, &part, numbers));
    return ls_import_result(x, 0, layer, &a->shape);
}

/* `b` goes over some axes of `a`. */
static int with_part(struct ls_importer *x, const struct ls_onnx_value *a,
                     const struct ls_onnx_value *b, enum operation operation, bool turned)
{
    struct ls_shape part;
    int axis;
    if (!lay_over(&a->shape, &b->shape, true, &axis, &part))
        return ls_import_cannot(x, NULL, "the axes of its inputs do not fit each other");
    const char *big = a->top, *small = ls_import_reshaped(x, b->top, &b->shape, &part);
    if (operation == SUB && turned)
        big = ls_import_power(x, big, 1, -1, 0);
    if (operation == SUB && !turned)
        small = ls_import_power(x, small, 1, -1, 0);
    if (operation == DIV && turned)
        big = ls_import_power(x, big, -1, 1, 0);
    if (operation == DIV && !turned)
        small = ls_import_power(x, small, -1, 1, 0);
    const bool sum = operation == ADD || operation == SUB;
    return ls_import_result(x, 0,
                            LS_LAYER2(x, sum ? "Bias" : "Scale", big, small, "%s { axis: %d }",
                                      sum ? "bias_param" : "scale_param", axis),
                            &a->shape);
}

/* A view and one number: another view. Where it does not become a part of attention, a number that
 * is a weight goes on learning. */
static int scale_view(struct ls_importer *x, struct ls_onnx_value *a, struct ls_onnx_value *b,
                      enum operation operation, bool *done)
{
    struct ls_onnx_value *blob = a->constant ? b : a, *constant = a->constant ? a : b;
    struct ls_onnx_view view;
    if (x->writing || ls_shape_size(&constant->shape) != 1 ||
        constant->shape.rank > blob->shape.rank || !ls_view_of(blob, &view) ||
        (operation == DIV && a->constant) || ls_import_output(x, 0) == NULL)
        return 0;
    LS_TRY(ls_import_numbers_of(x, constant));
    const double number = ls_import_number_at(constant, 0);
    const double factor = operation == MUL                  ? number
                          : operation == DIV                ? 1 / number
                          : operation == SUB && a->constant ? -1
                                                            : 1;
    view.scale *= factor;
    view.shift *= factor;
    if (operation == ADD || operation == SUB)
        view.shift += operation == SUB && !a->constant ? -number : number;
    *done = true;
    return ls_import_view(x, 0, &view, &blob->shape);
}

/* A view, and a constant that is one number or has a number for each element of its rows. */
static int with_row(struct ls_importer *x, struct ls_onnx_value *a, struct ls_onnx_value *b,
                    enum operation operation, bool *done)
{
    struct ls_onnx_value *blob = a->constant ? b : a, *constant = a->constant ? a : b;
    struct ls_onnx_rows rows;
    const int64_t count = ls_shape_size(&constant->shape);
    const int rank = constant->shape.rank;
    if (!blob->waiting || count < 1 || (count > 1 && constant->shape.dim[rank - 1] != count))
        return 0;
    LS_TRY(ls_import_rows(x, blob, count > 1, &rows));
    if (!rows.through || ls_import_output(x, 0) == NULL)
        return 0;
    LS_TRY(ls_import_numbers_of(x, constant));
    struct ls_onnx_value base = {.top = rows.top, .shape = rows.shape}, row = *constant;
    row.shape = (struct ls_shape){.rank = count > 1, .dim = {count}};
    *done = true;
    LS_TRY(with_constant(x, &base, &row, operation, a->constant));
    const char *top = ls_import_output(x, 0)->top;
    ls_import_output(x, 0)->top = NULL;
    return ls_import_rows_result(x, 0, top, &rows, 0);
}

/* Views of blobs that have the same order, which the result has, too; and such views and a number
 * for each element of rows. */
static int with_views(struct ls_importer *x, struct ls_onnx_value *a, struct ls_onnx_value *b,
                      enum operation operation, bool *done)
{
    struct ls_onnx_view first, second;
    struct ls_onnx_rows rows;
    *done = false;
    if (!a->waiting && !b->waiting)
        return 0;
    if (a->constant || b->constant) {
        LS_TRY(scale_view(x, a, b, operation, done));
        return *done ? 0 : with_row(x, a, b, operation, done);
    }
    if (!ls_view_of(a, &first) || !ls_view_of(b, &second))
        return 0;
    const char *top = second.base;
    ls_view_join(&first);
    ls_view_join(&second);
    if (!ls_shape_equal(&a->shape, &b->shape) || !ls_view_equal(&first, &second) ||
        !ls_view_is_whole(&first))
        return 0;
    rows = (struct ls_onnx_rows){
        .top = first.base, .shape = first.shape, .seen = a->shape, .view = first, .through = true};
    *done = true;
    return ls_import_rows_result(x, 0, eltwise(x, rows.top, top, operation), &rows, 0);
}

static int combine(struct ls_importer *x, enum operation operation)
{
    struct ls_onnx_value *a = ls_import_input(x, 0), *b = ls_import_input(x, 1);
    struct ls_shape both;
    if (a == NULL || b == NULL)
        return ls_import_cannot(x, NULL, "an input is missing");
    /* Version 6 laid the second input over axes that it named; later ones, over the last axes. */
    const int64_t axis = ls_import_integer(x, "axis", -1);
    if (axis >= 0 && axis != a->shape.rank - b->shape.rank)
        return ls_import_cannot(x, "export it with opset_version 7 or later",
                                "axis %lld of its first input is not read", (long long)axis);
    if (operation == DIV && a->integers && b->integers)
        return ls_import_cannot(x, NULL, "quotients of integers have no equivalent");
    if (!ls_import_broadcast(&a->shape, &b->shape, &both))
        return ls_import_cannot(x, NULL, "the shapes of its inputs do not fit each other");
    bool done = false;
    LS_TRY(with_views(x, a, b, operation, &done));
    if (done)
        return 0;
    LS_TRY(ls_import_write(x, a));
    LS_TRY(ls_import_write(x, b));
    if (b->constant)
        return with_constant(x, a, b, operation, false);
    if (a->constant)
        return with_constant(x, b, a, operation, true);
    if (ls_shape_equal(&a->shape, &b->shape))
        return ls_import_result(x, 0, eltwise(x, a->top, b->top, operation), &a->shape);
    if (ls_shape_equal(&both, &a->shape))
        return with_part(x, a, b, operation, false);
    return with_part(x, b, a, operation, true);
}

static int read_add(struct ls_importer *x)
{
    return combine(x, ADD);
}

static int read_sub(struct ls_importer *x)
{
    return combine(x, SUB);
}

static int read_mul(struct ls_importer *x)
{
    return combine(x, MUL);
}

static int read_div(struct ls_importer *x)
{
    return combine(x, DIV);
}

/* Sum and Max of any number of blobs of one shape. */
static int join(struct ls_importer *x, const char *fields)
{
    enum { MOST = 64 };
    const char *tops[MOST];
    const size_t count = x->node->n_input;
    struct ls_onnx_value *first = ls_import_blob(x, 0);
    if (first == NULL)
        return x->status;
    if (count > MOST)
        return ls_import_cannot(x, NULL, "it has more than %d inputs", MOST);
    for (size_t i = 0; i < count; i++) {
        struct ls_onnx_value *value = ls_import_blob(x, (int)i);
        if (value == NULL)
            return x->status;
        if (!ls_shape_equal(&value->shape, &first->shape))
            return ls_import_cannot(x, NULL, "its inputs are not of one shape");
        tops[i] = value->top;
    }
    if (count == 1)
        return ls_import_hand_on(x, first, 0);
    return ls_import_result(x, 0, ls_import_layer(x, "Eltwise", tops, count, "%s", fields),
                            &first->shape);
}

static int read_sum(struct ls_importer *x)
{
    return x->node->n_input == 2 ? combine(x, ADD) : join(x, "");
}

static int read_max(struct ls_importer *x)
{
    return join(x, "eltwise_param { operation: MAX }");
}

const struct ls_onnx_operator ls_onnx_read_arithmetic[] = {
    {"Add", read_add}, {"Div", read_div}, {"Max", read_max}, {"Mul", read_mul},
    {"Sub", read_sub}, {"Sum", read_sum}, {NULL, NULL},
};
