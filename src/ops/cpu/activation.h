/* Functions of one number of arrays (enum ls_activation), for kernels that have one inside.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ACTIVATION_H
#define LS_OPS_CPU_ACTIVATION_H

#include <stddef.h>

#include "ir/activation.h"

/* y = f(x); y may be x. */
void ls_activation_run(const struct ls_activation_attr *attr, const float *x, float *y, size_t n);
/* dx = dy f'(x); `given` is x or y, as ls_activation_keeps_x says. dx may be one of them. */
void ls_activation_run_backward(const struct ls_activation_attr *attr, const float *dy,
                                const float *given, float *dx, size_t n);

#endif
