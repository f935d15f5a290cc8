/* Functions of arrays: the same bits on every instruction set, at every position and length.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_MATH_H
#define LS_OPS_CPU_VECTOR_MATH_H

#include <stddef.h>

#include "ops/cpu/isa.h"

/* y[i] = f(x[i]) for i < n; y may be x. */
struct ls_vector_math {
    void (*exp)(const float *x, float *y, size_t n);
    void (*log)(const float *x, float *y, size_t n);
    void (*tanh)(const float *x, float *y, size_t n);
    void (*pow)(const float *x, float exponent, float *y, size_t n);
};
LS_VECTOR_TABLES(ls_vector_math)

#endif
