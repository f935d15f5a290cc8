/* Exact sums: what they have in common on all devices. Gradients are added as 64-bit integers in
 * units of 2^-exponent.
 *
 * Magnitudes are passed as the bits of a non-negative float: they compare as integers, and what is
 * not finite is LS_NOT_FINITE or more.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_EXACT_H
#define LS_DEVICE_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

#define LS_NOT_FINITE UINT32_C(0x7f800000)

enum {
    LS_EXACT_LIMIT = 51,  /* contributions must be smaller than 2^51 units, to be rounded rightly */
    LS_EXACT_LANES = 16,  /* neighbours that may have exponents of their own */
    LS_EXACT_CHUNK = 4096 /* elements that a partial sum of squares covers */
};

/* The magnitude of a number, and the larger of two. */
LS_HOST_DEVICE uint32_t ls_magnitude(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & UINT32_C(0x7fffffff);
}
LS_HOST_DEVICE uint32_t ls_larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Sum in pairs, by halves: x[0..ceil(n/2)) + x[ceil(n/2)..n); 0 for none. */
double ls_sum_doubles(const double *x, size_t n);

#endif
