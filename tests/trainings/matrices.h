/* A net for optimizers that look at whole matrices.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_MATRICES_H
#define LS_TESTS_MATRICES_H

#include "api/api.h"

/* A solver of these settings and options, on the pictures "images" and "labels" of 12 x 12 pixels
 * in the test's folder, whose net has weights of all forms: conv [5, 1, 3, 3], wide [31, 144], row
 * [1, 31], column [60, 1], square [7, 7], high [60, 7], and dead [10, 31], which has a gradient of
 * zeros. */
struct lockstep_solver *load_matrices(const char *settings, const char *options);

#endif
