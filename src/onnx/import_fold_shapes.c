/* Import: constants that are worked out: those that a node holds, shapes, other types.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "onnx/import_fold.h"

static int fold_constant(struct ls_folding *f)
{
    const Onnx__AttributeProto *a;
    struct ls_importer *x = f->x;
    if ((a = ls_import_attribute(x, "value")) != NULL && a->t != NULL) {
        if (a->t->n_dims > LS_RANK_MAX)
            return ls_import_cannot(x, NULL, "it has too many axes");
        f->out.shape.rank = (int)a->t->n_dims;
        for (size_t i = 0; i < a->t->n_dims; i++)
            f->out.shape.dim[i] = a->t->dims[i];
        if (!ls_shape_valid(&f->out.shape, true))
            return ls_import_cannot(x, NULL, "its shape is not valid");
        f->out.tensor = a->t;
        return ls_import_numbers_of(x, &f->out);
    }
    struct ls_shape list = {.rank = 1};
    const struct ls_shape one = {0};
    if ((a = ls_import_attribute(x, "value_ints")) != NULL) {
        list.dim[0] = (int64_t)a->n_ints;
        LS_TRY(ls_fold_make(f, &list, true));
        for (size_t i = 0; i < a->n_ints; i++)
            f->wholes[i] = a->ints[i];
    } else if ((a = ls_import_attribute(x, "value_floats")) != NULL) {
        list.dim[0] = (int64_t)a->n_floats;
        LS_TRY(ls_fold_make(f, &list, false));
        for (size_t i = 0; i < a->n_floats; i++)
            f->reals[i] = a->floats[i];
    } else if ((a = ls_import_attribute(x, "value_int")) != NULL) {
        LS_TRY(ls_fold_make(f, &one, true));
        f->wholes[0] = a->i;
    } else if ((a = ls_import_attribute(x, "value_float")) != NULL) {
        LS_TRY(ls_fold_make(f, &one, false));
        f->reals[0] = a->f;
    } else {
        return ls_import_cannot(x, NULL,
                                "a constant of texts or of few numbers among zeros is not "
                                "read");
    }
    return 0;
}

static int fold_constant_of_shape(struct ls_folding *f)
{
    const Onnx__AttributeProto *a = ls_import_attribute(f->x, "value");
    const bool given = a != NULL && a->t != NULL; /* otherwise zeros */
    struct ls_shape shape;
    struct ls_onnx_value value = {.constant = true};
    LS_TRY(ls_fold_shape_at(f, 0, &shape));
    if (given) {
        value.tensor = a->t;
        LS_TRY(ls_import_numbers_of(f->x, &value));
        if (a->t->n_dims > 1 || (a->t->n_dims == 1 && a->t->dims[0] != 1))
            return ls_import_cannot(f->x, NULL, "its value is not one number");
    }
    LS_TRY(ls_fold_make(f, &shape, given && value.integers));
    f->out.learned = !f->out.integers; /* weights of models that are written for tests */
    for (int64_t i = 0; given && i < ls_shape_size(&shape); i++)
        ls_fold_put(f, i, &value, 0);
    return 0;
}

static int fold_shape(struct ls_folding *f)
{
    LS_TRY(ls_fold_need(f, 1));
    const struct ls_shape *in = &f->in[0]->shape;
    int64_t begin = ls_import_integer(f->x, "start", 0),
            end = ls_import_integer(f->x, "end", in->rank);
    begin = begin < 0 ? (begin + in->rank < 0 ? 0 : begin + in->rank) : begin;
    end = end < 0 ? end + in->rank : end > in->rank ? in->rank : end;
    const struct ls_shape shape = {.rank = 1, .dim = {end > begin ? end - begin : 0}};
    LS_TRY(ls_fold_make(f, &shape, true));
    for (int64_t i = 0; i < shape.dim[0]; i++)
        f->wholes[i] = in->dim[begin + i];
    return 0;
}

static int fold_size(struct ls_folding *f)
{
    const struct ls_shape one = {0};
    LS_TRY(ls_fold_need(f, 1));
    LS_TRY(ls_fold_make(f, &one, true));
    f->wholes[0] = ls_shape_size(&f->in[0]->shape);
    return 0;
}

static int fold_cast(struct ls_folding *f)
{
    enum ls_dtype type;
    LS_TRY(ls_fold_need(f, 1));
    if (!ls_onnx_type((int32_t)ls_import_integer(f->x, "to", 0), &type))
        return ls_import_cannot(f->x, NULL, "its type is none that is read");
    const bool real = type == LS_F32 || type == LS_F64 || type == LS_F16 || type == LS_BF16;
    if (real != f->in[0]->integers)
        return ls_fold_keep(f, &f->in[0]->shape);
    LS_TRY(ls_fold_make(f, &f->in[0]->shape, !real));
    for (int64_t i = 0; i < ls_shape_size(&f->out.shape); i++) {
        if (!real && !(fabsf(f->in[0]->reals[i]) < 9e18F))
            return ls_import_cannot(f->x, NULL, "a number is too large for an integer");
        ls_fold_put(f, i, f->in[0], i);
        if (type == LS_BOOL)
            f->wholes[i] = f->in[0]->reals[i] != 0;
    }
    return 0;
}

static int fold_identity(struct ls_folding *f)
{
    LS_TRY(ls_fold_need(f, 1));
    LS_TRY(ls_fold_keep(f, &f->in[0]->shape));
    /* A parameter of its own, whose numbers torch's older exporter found to be another's, too. */
    if (f->in[0]->learned && f->in[0]->maker == SIZE_MAX) {
        f->out.name = NULL;
        f->out.share = f->out.twice ? NULL : f->out.share;
    }
    return 0;
}

static int fold_range(struct ls_folding *f)
{
    LS_TRY(ls_fold_need(f, 3));
    for (int i = 0; i < 3; i++)
        if (!f->in[i]->integers || ls_shape_size(&f->in[i]->shape) != 1)
            return ls_import_cannot(f->x, NULL, "only a range of integers is worked out");
    const int64_t begin = f->in[0]->wholes[0], end = f->in[1]->wholes[0], by = f->in[2]->wholes[0];
    const int64_t most = INT64_C(1) << 40;
    if (by == 0 || begin > most || begin < -most || end > most || end < -most || by > most ||
        by < -most)
        return ls_import_cannot(f->x, NULL, "its numbers are out of range");
    const int64_t count = by > 0 ? (end - begin + by - 1) / by : (begin - end - by - 1) / -by;
    const struct ls_shape shape = {.rank = 1, .dim = {count > 0 ? count : 0}};
    LS_TRY(ls_fold_make(f, &shape, true));
    for (int64_t i = 0; i < shape.dim[0]; i++)
        f->wholes[i] = begin + i * by;
    return 0;
}

const struct ls_onnx_folder ls_onnx_fold_shapes[] = {
    {"Cast", fold_cast, false},
    {"Constant", fold_constant, false},
    {"ConstantOfShape", fold_constant_of_shape, false},
    {"Identity", fold_identity, false},
    {"Range", fold_range, false},
    {"Shape", fold_shape, true},
    {"Size", fold_size, true},
    {NULL, NULL, false},
};
