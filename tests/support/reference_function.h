/* Functions of one number in double precision, and their derivatives, as their definitions have
 * them: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_FUNCTION_H
#define LS_TESTS_REFERENCE_FUNCTION_H

#include "ir/activation.h"

/* ELU to THRESHOLD of enum ls_activation. */
double reference_function(const struct ls_activation_attr *attr, double x);
double reference_function_slope(const struct ls_activation_attr *attr, double x);

#endif
