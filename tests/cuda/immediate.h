/* Kernels that run on the CPU as soon as they are launched. SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef LS_TESTS_CUDA_IMMEDIATE_H
#define LS_TESTS_CUDA_IMMEDIATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Chooses the order in which threads and blocks run from now on. */
void grid_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
