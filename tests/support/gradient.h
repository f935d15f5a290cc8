/* Checks a gradient against central differences of the function that it belongs to.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_GRADIENT_H
#define LS_TESTS_GRADIENT_H

#include <stddef.h>

/* Fails the running test unless gradient[i] is the slope of function(x, data) along x[i], for all
 * i < n, within `tolerance` * max(1, |slope|). x is changed and restored. */
void check_gradient(double (*function)(const double *x, void *data), void *data, double *x,
                    size_t n, const double *gradient, double tolerance, const char *what);

#endif
