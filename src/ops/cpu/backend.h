/* The CPU backend: kernels by oneDNN and by Lockstep's own loops.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BACKEND_H
#define LS_OPS_CPU_BACKEND_H

#include "ir/kernel.h"

extern const struct ls_backend ls_backend_cpu;

#endif
