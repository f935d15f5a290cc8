/* The CPU: kernels by oneDNN and by Lockstep's own loops.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_DEVICE_H
#define LS_OPS_CPU_DEVICE_H

#include "device/device.h"

extern const struct ls_device ls_device_cpu;

#endif
