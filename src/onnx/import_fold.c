/* Import: nodes whose inputs are constants are worked out: arithmetic of shapes, masks, and weights
 * in another shape or order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/import_fold.h"

#include <string.h>

#define FOLDED_MAX ((size_t)2 << 30) /* bytes of all that is worked out */

int ls_fold_make(struct ls_folding *f, const struct ls_shape *shape, bool integers)
{
    if (!ls_shape_valid(shape, true))
        return ls_import_cannot(f->x, NULL, "its result would be too large");
    const int64_t count = ls_shape_size(shape);
    const size_t size = integers ? sizeof *f->wholes : sizeof *f->reals;
    if ((size_t)count > (FOLDED_MAX - f->x->folded) / size)
        return ls_import_cannot(f->x, NULL, "its constants would take more than 2 GiB");
    f->x->folded += (size_t)count * size;
    void *numbers = ls_arena_alloc(f->x->arena, (size_t)count + 1, size);
    if (numbers == NULL)
        return ls_import_no_memory(f->x);
    f->out.shape = *shape;
    f->out.integers = integers;
    if (integers)
        f->out.wholes = f->wholes = numbers;
    else
        f->out.reals = f->reals = numbers;
    return 0;
}

void ls_fold_put(struct ls_folding *f, int64_t at, const struct ls_onnx_value *from, int64_t index)
{
    if (f->out.integers)
        f->wholes[at] = from->integers ? from->wholes[index] : (int64_t)from->reals[index];
    else
        f->reals[at] = from->integers ? (float)from->wholes[index] : from->reals[index];
}

int64_t ls_fold_place(const struct ls_shape *shape, int64_t i, const int64_t *strides)
{
    int64_t at = 0;
    int rank = shape->rank < LS_RANK_MAX ? shape->rank : LS_RANK_MAX; /* for clang's analyzer */
    for (int axis = rank - 1; axis >= 0; axis--) {
        at += i % shape->dim[axis] * strides[axis];
        i /= shape->dim[axis];
    }
    return at;
}

void ls_fold_strides(const struct ls_shape *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        stride *= shape->dim[axis];
    }
}

void ls_fold_lay_strides(const struct ls_shape *in, const struct ls_shape *out, int64_t *strides)
{
    int64_t own[LS_RANK_MAX];
    ls_fold_strides(in, own);
    for (int i = 0; i < out->rank; i++) {
        const int axis = i - (out->rank - in->rank);
        strides[i] = axis < 0 || in->dim[axis] == 1 ? 0 : own[axis];
    }
}

int ls_fold_need(struct ls_folding *f, int count)
{
    for (int i = 0; i < count; i++)
        if (i >= f->count || f->in[i] == NULL)
            return ls_import_cannot(f->x, NULL, "input %d is missing", i);
    return 0;
}

int ls_fold_keep(struct ls_folding *f, const struct ls_shape *shape)
{
    if (ls_shape_size(shape) != ls_shape_size(&f->in[0]->shape))
        return ls_import_cannot(f->x, NULL, "its shape has not as many numbers as its input");
    f->out = *f->in[0];
    f->out.shape = *shape;
    return 0;
}

int ls_fold_shape_at(struct ls_folding *f, int index, struct ls_shape *shape)
{
    LS_TRY(ls_fold_need(f, index + 1));
    const int64_t count = ls_shape_size(&f->in[index]->shape);
    if (!f->in[index]->integers || count > LS_RANK_MAX)
        return ls_import_cannot(f->x, NULL, "input %d is no shape", index);
    shape->rank = (int)count;
    for (int i = 0; i < shape->rank; i++)
        shape->dim[i] = f->in[index]->wholes[i];
    return 0;
}

static const struct ls_onnx_folder *find_folder(const char *type)
{
    static const struct ls_onnx_folder *const folders[] = {
        ls_onnx_fold_gather, ls_onnx_fold_numbers, ls_onnx_fold_places, ls_onnx_fold_shapes};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (const struct ls_onnx_folder *f = folders[i]; f->type != NULL; f++)
            if (strcmp(f->type, type) == 0)
                return f;
    return NULL;
}

bool ls_import_folds(const char *type)
{
    return find_folder(type) != NULL;
}

/* Where the numbers of the result come from. */
static void note_sources(struct ls_folding *f)
{
    if (f->out.integers)
        return;
    f->out.written = f->count == 0;
    for (int i = 0; i < f->count; i++)
        if (f->in[i] != NULL && !f->in[i]->integers) {
            f->out.derived |= f->in[i]->learned || f->in[i]->derived;
            f->out.written |= f->in[i]->written;
        }
}

int ls_import_fold(struct ls_importer *x, bool *done)
{
    struct ls_folding f = {.x = x, .count = (int)x->node->n_input, .out = {.constant = true}};
    const struct ls_onnx_folder *folder = find_folder(x->node->op_type);
    *done = folder != NULL;
    if (folder == NULL)
        return 0;
    if (x->node->n_input > LS_FOLD_INPUTS)
        return ls_import_cannot(x, NULL, "it has more than %d inputs", LS_FOLD_INPUTS);
    for (int i = 0; i < f.count; i++) {
        f.in[i] = ls_import_input(x, i);
        if (f.in[i] != NULL && !folder->shape_only)
            LS_TRY(ls_import_numbers_of(x, f.in[i]));
    }
    LS_TRY(folder->fold(&f));
    note_sources(&f);
    const struct ls_onnx_value *out = ls_import_output(x, 0);
    if (f.out.name == NULL && out != NULL)
        f.out.name = out->name;
    const char *name = f.out.name;
    LS_TRY(ls_import_hand_on(x, &f.out, 0));
    if (out != NULL)
        ls_import_output(x, 0)->name = name;
    return 0;
}
