/* Exact sums: gradients as 64-bit integers in units of 2^-exponent.
 *
 * A contribution (fp32) is multiplied by 2^exponent, rounded to the nearest integer, ties to even,
 * and added. Integers can be added in any order, so the total does not depend on their order.
 * All functions give the same bits on every instruction set.
 *
 * Magnitudes are passed as the bits of a non-negative float: they compare as integers, and what is
 * not finite is LS_NOT_FINITE or more.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_EXACT_H
#define LS_OPS_CPU_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/exact.h"

/* sum[i] = (`first`) or += the rounded gradient[i] * 2^exponent. Returns the bits of the largest
 * |gradient[i]|; unless that is less than 2^LS_EXACT_LIMIT units, what was added is meaningless
 * (but nothing worse than that). `sum` and `gradient` must not overlap. */
uint32_t ls_exact_add(int64_t *sum, const float *gradient, size_t n, int exponent, bool first);

/* The same with an exponent for each element, or for each lane: element i is in lane
 * i % LS_EXACT_LANES. Exponents are within [-1000, 1000]. largest[i], or that of the lane, is
 * raised to |gradient[i]|'s bits. */
uint32_t ls_exact_add_each(int64_t *sum, const float *gradient, size_t n, const int32_t *exponent,
                           uint32_t *largest, bool first);
uint32_t ls_exact_add_lanes(int64_t *sum, const float *gradient, size_t n,
                            const int32_t exponent[LS_EXACT_LANES],
                            uint32_t largest[LS_EXACT_LANES], bool first);

/* out[i] = sum[i] * 2^-exponent: rounded to double, scaled, rounded to float. Returns the bits of
 * the largest |out[i]|. */
uint32_t ls_exact_to_float(const int64_t *sum, int exponent, float *out, size_t n);
void ls_exact_to_float_each(const int64_t *sum, const int32_t *exponent, float *out, size_t n);
void ls_exact_to_float_lanes(const int64_t *sum, const int32_t exponent[LS_EXACT_LANES], float *out,
                             size_t n);

/* Sum of x, of x^2, of |x| in double: over chunks of LS_EXACT_CHUNK elements in a fixed order,
 * which are added in the order of ls_sum_doubles. */
double ls_sum_floats(const float *x, size_t n);
double ls_sum_squares(const float *x, size_t n);
double ls_sum_magnitudes(const float *x, size_t n);

/* The bits of the largest |x[i]|; 0 for n = 0. */
uint32_t ls_largest(const float *x, size_t n);

/* The same; `largest` as for ls_exact_add_each and ls_exact_add_lanes. */
uint32_t ls_largest_each(const float *x, size_t n, uint32_t *largest);
uint32_t ls_largest_lanes(const float *x, size_t n, uint32_t largest[LS_EXACT_LANES]);

#endif
