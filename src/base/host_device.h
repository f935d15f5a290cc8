/* Functions that host code and kernels of a GPU share: formulas that are defined to the bit.
 *
 * LS_HOST_DEVICE stands before them in place of `static inline`. They are C that is C++, too; a
 * compiler of kernels gets them with contraction turned off.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_HOST_DEVICE_H
#define LS_BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define LS_HOST_DEVICE __host__ __device__ static inline
#else
#define LS_HOST_DEVICE static inline
#endif

#endif
