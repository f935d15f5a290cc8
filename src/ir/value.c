/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/value.h"

size_t ls_value_bytes(const struct ls_value *value)
{
    return ls_layout_bytes(value->layout, &value->shape, value->type);
}

size_t ls_parameter_elements(const struct ls_parameter *parameter)
{
    return ls_parameter_bytes(parameter) / ls_dtype_size(LS_F32);
}

size_t ls_parameter_bytes(const struct ls_parameter *parameter)
{
    return ls_layout_bytes(parameter->layout, &parameter->shape, LS_F32);
}

size_t ls_parameter_plain_bytes(const struct ls_parameter *parameter)
{
    return ls_layout_bytes(&ls_layout_plain, &parameter->shape, LS_F32);
}
