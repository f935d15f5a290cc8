/* See ir/matmul.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/matmul.h"

#include "ir/op.h"

static void add_axis(struct ls_matmul_axes *axes, int64_t extent,
                     const struct ls_shape *const of[2], int axis)
{
    const int at = axes->count++;
    axes->extent[at] = extent;
    axes->places *= extent;
    for (int i = 0; i < 2; i++)
        axes->step[i][at] = of[i]->dim[axis] > 1 ? ls_shape_count(of[i], axis + 1, of[i]->rank) : 0;
}

struct ls_matmul ls_matmul_of(const struct ls_op *op)
{
    const struct ls_matmul_attr *attr = &op->attr.matmul;
    const struct ls_shape *const of[2] = {&op->input[0]->shape, &op->input[1]->shape};
    const struct ls_shape *y = &op->output[0]->shape;
    const int last = y->rank - 1;
    struct ls_matmul matmul = {.rows = y->dim[last - 1],
                               .columns = y->dim[last],
                               .depth = of[0]->dim[attr->transpose_a ? last - 1 : last],
                               .outer = {.places = 1},
                               .terms = {.places = 1}};
    for (int axis = 0; axis < last - 1; axis++) {
        const int64_t a = of[0]->dim[axis], b = of[1]->dim[axis], most = a > b ? a : b;
        add_axis(y->dim[axis] == most ? &matmul.outer : &matmul.terms, most, of, axis);
    }
    return matmul;
}

int64_t ls_matmul_at(const struct ls_matmul_axes *axes, int operand, int64_t place)
{
    int64_t at = 0;
    for (int i = axes->count - 1; i >= 0; i--) {
        at += place % axes->extent[i] * axes->step[operand][i];
        place /= axes->extent[i];
    }
    return at;
}
