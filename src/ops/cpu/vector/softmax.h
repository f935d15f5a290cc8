/* Softmax along the middle axis of a tensor [outer, classes, inner].
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_SOFTMAX_H
#define LS_OPS_CPU_VECTOR_SOFTMAX_H

#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_softmax_shape {
    int64_t outer, classes, inner;
};

struct ls_vector_softmax {
    /* y = exp(x - max) / sum of exp(x - max); y may be x. */
    void (*forward)(const struct ls_softmax_shape *shape, const float *x, float *y);
    /* dx = (dy - sum of dy * y) * y */
    void (*backward)(const struct ls_softmax_shape *shape, const float *y, const float *dy,
                     float *dx);
};
LS_VECTOR_TABLES(ls_vector_softmax)

#endif
