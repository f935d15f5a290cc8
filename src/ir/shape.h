/* Shapes of tensors, checked for overflow.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_SHAPE_H
#define LS_IR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_RANK_MAX = 8 };

struct ls_shape {
    int rank; /* 0: a scalar */
    int64_t dim[LS_RANK_MAX];
};

/* Elements of axes [from, to); the shape must have been checked (see ls_shape_valid). */
int64_t ls_shape_count(const struct ls_shape *shape, int from, int to);
int64_t ls_shape_size(const struct ls_shape *shape); /* all elements */
/* Every dimension >= 1 (0 only where `empty_ok`) and at most 2^40 elements in all. */
bool ls_shape_valid(const struct ls_shape *shape, bool empty_ok);
bool ls_shape_equal(const struct ls_shape *a, const struct ls_shape *b);
/* "10 3 32 32 (30720)", as Caffe prints a shape. */
const char *ls_shape_text(const struct ls_shape *shape, char *buffer, size_t size);
/* Turns axis -1 into rank - 1 and so on; -1 if it is out of range. */
int ls_shape_axis(const struct ls_shape *shape, int axis);

#endif
