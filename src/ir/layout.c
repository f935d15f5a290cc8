/* The layouts that every device knows.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/layout.h"

const struct ls_layout ls_layout_plain = {.name = "plain", .block = 1};
const struct ls_layout ls_layout_blocked8 = {.name = "nChw8c", .block = 8};
const struct ls_layout ls_layout_blocked16 = {.name = "nChw16c", .block = 16};
const struct ls_layout ls_layout_channels_last = {.name = "nhwc", .block = -1};

const struct ls_layouts ls_layouts_here = {.plain = &ls_layout_plain,
                                           .blocked8 = &ls_layout_blocked8,
                                           .blocked16 = &ls_layout_blocked16,
                                           .channels_last = &ls_layout_channels_last};
const struct ls_layouts *ls_layouts = &ls_layouts_here;

const char *ls_layout_name(const struct ls_layout *layout, int rank)
{
    static const char *const names[3][4] = {{"nC8c", "nCw8c", "nChw8c", "nCdhw8c"},
                                            {"nC16c", "nCw16c", "nChw16c", "nCdhw16c"},
                                            {"nc", "nwc", "nhwc", "ndhwc"}};
    if (layout->block == 0 || layout->block == 1 || rank < 2 || rank > 5)
        return layout->name;
    return names[layout->block < 0 ? 2 : layout->block == 16][rank - 2];
}

size_t ls_layout_elements(const struct ls_layout *layout, const struct ls_shape *shape)
{
    if (layout->block == 0)
        return layout->elements;
    if (layout->block <= 1 || shape->rank < 2)
        return (size_t)ls_shape_size(shape);
    int64_t blocks = (shape->dim[1] + layout->block - 1) / layout->block;
    return (size_t)(shape->dim[0] * blocks * layout->block * ls_shape_count(shape, 2, shape->rank));
}

size_t ls_layout_bytes(const struct ls_layout *layout, const struct ls_shape *shape,
                       enum ls_dtype type)
{
    layout = layout != NULL ? layout : &ls_layout_plain;
    return ls_layout_elements(layout, shape) * ls_dtype_size(type);
}
