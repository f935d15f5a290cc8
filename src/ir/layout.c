/* The layouts that every backend knows.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/layout.h"

const struct ls_layout ls_layout_plain = {.name = "plain", .block = 1};
const struct ls_layout ls_layout_blocked8 = {.name = "nChw8c", .block = 8};
const struct ls_layout ls_layout_blocked16 = {.name = "nChw16c", .block = 16};

size_t ls_layout_elements(const struct ls_layout *layout, const struct ls_shape *shape)
{
    if (layout->block == 0)
        return layout->elements;
    if (layout->block == 1 || shape->rank < 2)
        return (size_t)ls_shape_size(shape);
    int64_t blocks = (shape->dim[1] + layout->block - 1) / layout->block;
    return (size_t)(shape->dim[0] * blocks * layout->block * ls_shape_count(shape, 2, shape->rank));
}
