/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/value.h"

size_t ls_value_bytes(const struct ls_value *value)
{
    const struct ls_layout *layout = value->layout != NULL ? value->layout : &ls_layout_plain;
    return ls_layout_elements(layout, &value->shape) * sizeof(float);
}
