/* The part of the OpenMP runtime that Lockstep calls. This file stands in for the compiler's own
 * header, because with every compiler the runtime is gcc's, which the kernel library brings along,
 * and clang cannot read gcc's header.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPENMP_OMP_H
#define LS_OPENMP_OMP_H

void omp_set_num_threads(int threads); /* of the calling thread's parallel regions */
int omp_get_max_threads(void);

#endif
