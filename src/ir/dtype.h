/* Element types of tensors: values, views of weights, inputs, and what files hold.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_DTYPE_H
#define LS_IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

/* Zero is F32: a struct that says nothing is of fp32. */
enum ls_dtype {
    LS_F32,
    LS_F64,
    LS_F16,  /* IEEE 754 binary16 */
    LS_BF16, /* the upper half of an fp32 number */
    LS_I8,
    LS_I32,
    LS_U8,
    /* No op computes with what follows; files of tensors may hold it. */
    LS_I16,
    LS_I64,
    LS_U16,
    LS_U32,
    LS_U64,
    LS_BOOL,
    LS_F8_E4M3,
    LS_F8_E5M2,
    LS_DTYPES
};

/* Bytes of an element. */
size_t ls_dtype_size(enum ls_dtype type);
/* As safetensors writes it: "F32", "BF16". */
const char *ls_dtype_name(enum ls_dtype type);
/* The type of that name; false: there is none. */
bool ls_dtype_find(const char *name, enum ls_dtype *type);
/* Whether elements are floating-point numbers of one of the types that ops compute with: F32, F64,
 * F16, BF16. */
bool ls_dtype_is_float(enum ls_dtype type);

#endif
