/* Pieces of gradients that are computed from their factors.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_FACTORS_H
#define LS_DEVICE_FACTORS_H

#include <stddef.h>

#include "ir/factors.h"

/* The factors themselves: `rows` rows of each, one behind the other. */
struct ls_factor_rows {
    const float *side[LS_FACTOR_SIDES];
    size_t rows;
};

enum { LS_GRADIENT_NEXT = 3 }; /* weights and two histories */

/* A piece of a gradient: `rows` times `columns` elements, rows `row` elements apart, the first at
 * `begin`. A bias has one row. The caller reads the same piece of the arrays in `next` (the whole
 * parameter's, or NULL) afterwards: the device may prefetch it. */
struct ls_gradient_piece {
    size_t begin, rows, columns, row;
    const float *next[LS_GRADIENT_NEXT];
};

#endif
