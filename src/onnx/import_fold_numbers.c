/* Import: constants that are worked out: arithmetic, comparisons and choices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "onnx/import_fold.h"

static int64_t of_wholes(const char *type, int64_t a, int64_t b)
{
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    if (strcmp(type, "Add") == 0)
        return (int64_t)(ua + ub);
    if (strcmp(type, "Sub") == 0)
        return (int64_t)(ua - ub);
    if (strcmp(type, "Mul") == 0)
        return (int64_t)(ua * ub);
    if (strcmp(type, "Div") == 0)
        return b == 0 ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    if (strcmp(type, "Mod") == 0)
        return b == 0 || b == -1 ? 0 : (a % b + b) % b;
    if (strcmp(type, "Min") == 0)
        return a < b ? a : b;
    if (strcmp(type, "Max") == 0)
        return a > b ? a : b;
    if (strcmp(type, "And") == 0)
        return a != 0 && b != 0;
    if (strcmp(type, "Or") == 0)
        return a != 0 || b != 0;
    return 0;
}

static double of_reals(const char *type, double a, double b)
{
    if (strcmp(type, "Add") == 0)
        return a + b;
    if (strcmp(type, "Sub") == 0)
        return a - b;
    if (strcmp(type, "Mul") == 0)
        return a * b;
    if (strcmp(type, "Div") == 0)
        return a / b;
    if (strcmp(type, "Min") == 0)
        return fmin(a, b);
    return fmax(a, b);
}

static bool compare(const char *type, double a, double b)
{
    if (strcmp(type, "Equal") == 0)
        return a == b;
    if (strcmp(type, "Less") == 0)
        return a < b;
    if (strcmp(type, "LessOrEqual") == 0)
        return a <= b;
    if (strcmp(type, "Greater") == 0)
        return a > b;
    return a >= b;
}

static bool compares(const char *type)
{
    return strcmp(type, "Equal") == 0 || strncmp(type, "Less", 4) == 0 ||
           strncmp(type, "Greater", 7) == 0;
}

static int fold_two(struct ls_folding *f)
{
    const char *type = f->x->node->op_type;
    struct ls_shape shape;
    int64_t sa[LS_RANK_MAX], sb[LS_RANK_MAX];
    LS_TRY(ls_fold_need(f, 2));
    const struct ls_onnx_value *a = f->in[0], *b = f->in[1];
    if (f->count != 2 || !ls_import_broadcast(&a->shape, &b->shape, &shape))
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    const bool asks = compares(type), whole = a->integers && b->integers;
    if (strcmp(type, "Mod") == 0 && !whole)
        return ls_import_cannot(f->x, NULL, "only integers are worked out");
    LS_TRY(ls_fold_make(f, &shape, asks || whole));
    ls_fold_lay_strides(&a->shape, &shape, sa);
    ls_fold_lay_strides(&b->shape, &shape, sb);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++) {
        const int64_t ia = ls_fold_place(&shape, i, sa), ib = ls_fold_place(&shape, i, sb);
        if (asks)
            f->wholes[i] = compare(type, ls_import_number_at(a, ia), ls_import_number_at(b, ib));
        else if (whole)
            f->wholes[i] = of_wholes(type, a->wholes[ia], b->wholes[ib]);
        else
            f->reals[i] =
                (float)of_reals(type, ls_import_number_at(a, ia), ls_import_number_at(b, ib));
    }
    return 0;
}

static int fold_where(struct ls_folding *f)
{
    struct ls_shape two, shape;
    int64_t s[3][LS_RANK_MAX] = {{0}};
    LS_TRY(ls_fold_need(f, 3));
    if (!ls_import_broadcast(&f->in[1]->shape, &f->in[2]->shape, &two) ||
        !ls_import_broadcast(&f->in[0]->shape, &two, &shape) || !f->in[0]->integers)
        return ls_import_cannot(f->x, NULL, "its inputs do not fit each other");
    LS_TRY(ls_fold_make(f, &shape, f->in[1]->integers && f->in[2]->integers));
    for (int i = 0; i < 3; i++)
        ls_fold_lay_strides(&f->in[i]->shape, &shape, s[i]);
    for (int64_t i = 0; i < ls_shape_size(&shape); i++) {
        const int from = f->in[0]->wholes[ls_fold_place(&shape, i, s[0])] != 0 ? 1 : 2;
        ls_fold_put(f, i, f->in[from], ls_fold_place(&shape, i, s[from]));
    }
    return 0;
}

static int fold_one(struct ls_folding *f)
{
    const char *type = f->x->node->op_type;
    LS_TRY(ls_fold_need(f, 1));
    const bool whole = f->in[0]->integers;
    if (whole && (strcmp(type, "Sqrt") == 0))
        return ls_import_cannot(f->x, NULL, "the root of integers is not worked out");
    LS_TRY(ls_fold_make(f, &f->in[0]->shape, whole));
    for (int64_t i = 0; i < ls_shape_size(&f->out.shape); i++) {
        if (whole) {
            const int64_t n = f->in[0]->wholes[i];
            f->wholes[i] = strcmp(type, "Not") == 0   ? n == 0
                           : strcmp(type, "Neg") == 0 ? (int64_t)(0 - (uint64_t)n)
                                                      : n;
            continue;
        }
        const float n = f->in[0]->reals[i];
        f->reals[i] = strcmp(type, "Neg") == 0     ? -n
                      : strcmp(type, "Sqrt") == 0  ? sqrtf(n)
                      : strcmp(type, "Floor") == 0 ? floorf(n)
                                                   : ceilf(n);
    }
    return 0;
}

const struct ls_onnx_folder ls_onnx_fold_numbers[] = {
    {"Add", fold_two, false},     {"And", fold_two, false},
    {"Ceil", fold_one, false},    {"Div", fold_two, false},
    {"Equal", fold_two, false},   {"Floor", fold_one, false},
    {"Greater", fold_two, false}, {"GreaterOrEqual", fold_two, false},
    {"Less", fold_two, false},    {"LessOrEqual", fold_two, false},
    {"Max", fold_two, false},     {"Min", fold_two, false},
    {"Mod", fold_two, false},     {"Mul", fold_two, false},
    {"Neg", fold_one, false},     {"Not", fold_one, false},
    {"Or", fold_two, false},      {"Sqrt", fold_one, false},
    {"Sub", fold_two, false},     {"Where", fold_where, false},
    {NULL, NULL, false},
};
