/* Elementwise operations in double precision by plain loops: what kernels are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_REFERENCE_ELEMENTWISE_H
#define LS_TESTS_REFERENCE_ELEMENTWISE_H

#include <stddef.h>
#include <stdint.h>

enum reference_activation { REFERENCE_RELU, REFERENCE_SIGMOID, REFERENCE_TANH };

double reference_activation(enum reference_activation function, double slope, double x);
/* The derivative at x. */
double reference_activation_slope(enum reference_activation function, double slope, double x);

/* y = x * keep / (1 - ratio) for one sample of n elements in plain order. */
void reference_dropout(uint64_t key, uint64_t ordinal, double ratio, const double *x, double *y,
                       size_t n);

enum reference_eltwise { REFERENCE_PROD, REFERENCE_SUM, REFERENCE_MAX };
enum { REFERENCE_INPUTS_MAX = 8 };

/* One element: the value of op(x[0..count)), and its derivative by x[which] (MAX: 1 for the
 * winner; the second of the first two where they are equal, then the earlier one). */
double reference_eltwise(enum reference_eltwise method, const double *coefficient, const double *x,
                         int count);
double reference_eltwise_slope(enum reference_eltwise method, const double *coefficient,
                               const double *x, int count, int which);

#endif
