/* What the compiler must not have been told: options that let it change results. The build sets
 * what is needed (cmake/modules.cmake), but CFLAGS of a packager come in, too.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_ARITHMETIC_H
#define LS_BASE_ARITHMETIC_H

#include <float.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) ||           \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "Lockstep cannot be built with -ffast-math, or parts of it: results must be exact"
#endif

#if FLT_EVAL_METHOD != 0
#error "Lockstep needs arithmetic that rounds to the type of its operands (not that of x87 units)"
#endif

#if defined(__FLT_RADIX__) && __FLT_RADIX__ != 2
#error "Lockstep needs binary floating point as IEEE 754 has it"
#endif

#endif
