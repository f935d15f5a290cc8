/* SPDX-License-Identifier: BSD-2-Clause */
#include "ir/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [LS_F32] = {"F32", 4},   [LS_F64] = {"F64", 8},         [LS_F16] = {"F16", 2},
    [LS_BF16] = {"BF16", 2}, [LS_I8] = {"I8", 1},           [LS_I32] = {"I32", 4},
    [LS_U8] = {"U8", 1},     [LS_I16] = {"I16", 2},         [LS_I64] = {"I64", 8},
    [LS_U16] = {"U16", 2},   [LS_U32] = {"U32", 4},         [LS_U64] = {"U64", 8},
    [LS_BOOL] = {"BOOL", 1}, [LS_F8_E4M3] = {"F8_E4M3", 1}, [LS_F8_E5M2] = {"F8_E5M2", 1},
};

_Static_assert(sizeof types / sizeof *types == LS_DTYPES, "one record for each type");

size_t ls_dtype_size(enum ls_dtype type)
{
    return types[type].size;
}

const char *ls_dtype_name(enum ls_dtype type)
{
    return types[type].name;
}

bool ls_dtype_find(const char *name, enum ls_dtype *type)
{
    for (int i = 0; i < LS_DTYPES; i++)
        if (strcmp(name, types[i].name) == 0) {
            *type = (enum ls_dtype)i;
            return true;
        }
    return false;
}

bool ls_dtype_is_float(enum ls_dtype type)
{
    return type == LS_F32 || type == LS_F64 || type == LS_F16 || type == LS_BF16;
}
