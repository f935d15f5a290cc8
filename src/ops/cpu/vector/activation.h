/* Functions of one number and their gradients, of arrays. Outputs may be the arrays that inputs
 * are, element by element. See struct ls_activation_attr for what each is.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_ACTIVATION_H
#define LS_OPS_CPU_VECTOR_ACTIVATION_H

#include <stddef.h>

#include "ir/activation.h"
#include "ops/cpu/isa.h"

struct ls_vector_activation {
    /* y = f(x): all but RELU, SIGMOID and TANH, which are in vector/elementwise.h. */
    void (*forward)(const struct ls_activation_attr *attr, const float *x, float *y, size_t n);
    /* dx = dy f'(x); `given` is y or x. */
    void (*backward)(const struct ls_activation_attr *attr, const float *dy, const float *given,
                     float *dx, size_t n);
    /* Both, to the bit, with few exponentials: y = f(x) and dx = dy f'(x), of SWISH, GELU and
     * GELU_TANH alone. y is apart from the others; dx may be dy. */
    void (*both)(const struct ls_activation_attr *attr, const float *dy, const float *x, float *y,
                 float *dx, size_t n);
};
LS_VECTOR_TABLES(ls_vector_activation)

#endif
