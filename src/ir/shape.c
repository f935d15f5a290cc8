/* Shapes of tensors: counting, checking, printing.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/shape.h"

#include <stdio.h>

/* So that bytes (times 8 for the 64-bit sums) and products of two sizes stay far from 2^63. */
static const int64_t elements_max = INT64_C(1) << 40;

int64_t ls_shape_count(const struct ls_shape *shape, int from, int to)
{
    int64_t count = 1;
    for (int axis = from; axis < to; axis++)
        count *= shape->dim[axis];
    return count;
}

int64_t ls_shape_size(const struct ls_shape *shape)
{
    return ls_shape_count(shape, 0, shape->rank);
}

bool ls_shape_valid(const struct ls_shape *shape, bool empty_ok)
{
    if (shape->rank < 0 || shape->rank > LS_RANK_MAX)
        return false;
    /* An axis of zero must not hide others that are too long: they count as if it were one. */
    int64_t count = 1;
    for (int axis = 0; axis < shape->rank; axis++) {
        int64_t dim = shape->dim[axis];
        if (dim < 0 || (dim == 0 && !empty_ok))
            return false;
        if (dim == 0)
            continue;
        if (dim > elements_max / count)
            return false;
        count *= dim;
    }
    return true;
}

bool ls_shape_equal(const struct ls_shape *a, const struct ls_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int axis = 0; axis < a->rank; axis++)
        if (a->dim[axis] != b->dim[axis])
            return false;
    return true;
}

const char *ls_shape_text(const struct ls_shape *shape, char *buffer, size_t size)
{
    size_t used = 0;
    if (size > 0)
        buffer[0] = '\0';
    for (int axis = 0; axis < shape->rank && used < size; axis++)
        used += (size_t)snprintf(buffer + used, size - used, "%lld ", (long long)shape->dim[axis]);
    if (used < size)
        snprintf(buffer + used, size - used, "(%lld)", (long long)ls_shape_size(shape));
    return buffer;
}

int ls_shape_axis(const struct ls_shape *shape, int axis)
{
    if (axis < -shape->rank || axis >= shape->rank)
        return -1;
    return axis < 0 ? axis + shape->rank : axis;
}
