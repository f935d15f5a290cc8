/* Elements of any type as numbers, and figures of many of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_INSPECT_ELEMENTS_H
#define LS_INSPECT_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "ir/dtype.h"

/* Elements that are converted at a time. */
enum { LS_ELEMENTS_BLOCK = 1024 };

/* Converts n elements, which need not be aligned; of 64-bit integers the nearest numbers. */
void ls_elements_read(enum ls_dtype type, const void *bytes, size_t n, double *out);

/* Figures of elements; what is not finite is counted and left out of them. */
struct ls_figures {
    double least, most, mean,
        norm; /* norm: the root of the sum of squares; 0 where there are none */
    int64_t count, zeros, not_finite;
};
struct ls_figures ls_elements_figures(enum ls_dtype type, const void *bytes, size_t n);

/* How two arrays of one type and length differ, by their bytes. */
struct ls_array_difference {
    size_t differing, first; /* elements, and which is the first */
    double first_a, first_b;
    size_t at; /* where the largest |a - b| of those that are finite is */
    double absolute;
    double norm; /* of the difference, as a part of that of the first array */
};
void ls_elements_compare(enum ls_dtype type, const void *a, const void *b, size_t n,
                         struct ls_array_difference *difference);

#endif
