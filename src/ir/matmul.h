/* Products of matrices: where the operands of MATMUL lie. See ir/ops.def.
 *
 * Axes in front of the last two are outer axes. An element of y is a sum over the
 * places of the axes `terms`, and for each of them over `depth` terms.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_MATMUL_H
#define LS_IR_MATMUL_H

#include "ir/shape.h"

struct ls_op;

/* Outer axes of one kind, row-major; `step`: elements from a place to the next in a and b, 0 where
 * the operand is repeated. */
struct ls_matmul_axes {
    int count;
    int64_t extent[LS_RANK_MAX], step[2][LS_RANK_MAX];
    int64_t places; /* of all of them */
};

struct ls_matmul {
    int64_t rows, columns, depth; /* of op(a), of op(b), and what both have */
    struct ls_matmul_axes outer;  /* of y */
    struct ls_matmul_axes terms;  /* along which y has one place and an operand more */
};

struct ls_matmul ls_matmul_of(const struct ls_op *op);

/* Where in operand 0 (a) or 1 (b) the matrix of a place of such axes begins. */
int64_t ls_matmul_at(const struct ls_matmul_axes *axes, int operand, int64_t place);

#endif
