/* The reference device: every op in plain scalar C, in double where it adds up. It is slow, and it
 * is what other devices are compared with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_REFERENCE_DEVICE_H
#define LS_OPS_REFERENCE_DEVICE_H

#include "device/device.h"

extern const struct ls_device ls_device_reference;

#endif
