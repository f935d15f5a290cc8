/* Maximum over windows of 2 x 2 side by side, in plain layouts.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_POOLING_PAIRS_H
#define LS_OPS_CPU_VECTOR_POOLING_PAIRS_H

#include <stdint.h>

#include "ops/cpu/isa.h"

/* Planes of height x width, both even. The bits are those of vector/pooling.h. */
struct ls_pairs {
    int64_t planes, height, width;
};

struct ls_vector_pooling_pairs {
    /* index may be NULL. Both are NULL where registers are too short for it to pay. */
    void (*maximum)(const struct ls_pairs *pairs, const float *x, float *y, int32_t *index);
    void (*maximum_backward)(const struct ls_pairs *pairs, const float *dy, const int32_t *index,
                             float *dx);
};
LS_VECTOR_TABLES(ls_vector_pooling_pairs)

#endif
