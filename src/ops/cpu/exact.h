/* Exact sums: gradients as 64-bit integers in units of 2^-exponent.
 *
 * A contribution (fp32) is multiplied by 2^exponent, rounded to the nearest integer, ties to even,
 * and added. Integers can be added in any order, so the total does not depend on who adds when.
 * All functions give the same bits on every instruction set.
 *
 * Magnitudes travel as the bits of a non-negative float: they compare as integers, and what is not
 * finite is LS_NOT_FINITE or more.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_EXACT_H
#define LS_OPS_CPU_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LS_NOT_FINITE UINT32_C(0x7f800000)

enum {
    LS_EXACT_EXPONENT_MIN = -200,
    LS_EXACT_EXPONENT_MAX = 400,
    LS_EXACT_TARGET = 38,        /* the largest element of a total should be near 2^38 units */
    LS_EXACT_LIMIT = 51,         /* a contribution must be below 2^51 units ... */
    LS_EXACT_CONTRIBUTIONS = 12, /* ... so that 2^12 of them fit into 63 bits */
    LS_EXACT_CHUNK = 4096        /* elements that a partial sum of squares covers */
};

/* sum[i] = (`first`) or += the rounded gradient[i] * 2^exponent. Returns the bits of the largest
 * |gradient[i]|; unless ls_exact_fits says yes for them, what was added is meaningless (but
 * nothing worse than that). `sum` and `gradient` must not overlap. */
uint32_t ls_exact_add(int64_t *sum, const float *gradient, size_t n, int exponent, bool first);

/* Whether contributions of at most this magnitude can be added with this exponent. */
bool ls_exact_fits(uint32_t largest, int exponent);

/* The exponent that maps a magnitude to [2^37, 2^38) units; the largest one that the smallest
 * normal number could ask for where the magnitude is zero or denormal. Finite magnitudes only. */
int ls_exact_exponent(uint32_t largest);

/* out[i] = sum[i] * 2^-exponent: rounded to double, scaled, rounded to float. Returns the bits of
 * the largest |out[i]|. */
uint32_t ls_exact_to_float(const int64_t *sum, int exponent, float *out, size_t n);

/* chunk[c] = sum of the squares of (float)(sum[i] * 2^-exponent) over elements
 * [c * LS_EXACT_CHUNK, ...), for all chunks that n elements make; in double, in a fixed order. A
 * slice of a parameter that begins at a multiple of LS_EXACT_CHUNK gives the same numbers as the
 * whole. ls_sum_doubles adds them up. */
void ls_exact_squares(const int64_t *sum, int exponent, size_t n, double *chunk);
size_t ls_exact_chunks(size_t n);

/* Sum in pairs, by halves: x[0..ceil(n/2)) + x[ceil(n/2)..n); 0 for none. */
double ls_sum_doubles(const double *x, size_t n);

/* Sum of x, of x^2, of |x|: chunks as above, added in the order of ls_sum_doubles. */
double ls_sum_floats(const float *x, size_t n);
double ls_sum_squares(const float *x, size_t n);
double ls_sum_magnitudes(const float *x, size_t n);

/* The bits of the largest |x[i]|; 0 for n = 0. */
uint32_t ls_largest(const float *x, size_t n);

#endif
